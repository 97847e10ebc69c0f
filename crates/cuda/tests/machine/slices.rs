//! Ops on slices of device arrays, which variables for blocks of words order.

use super::{Machine, Words};
use std::ops::Range;
use std::sync::Arc;
use weft_cuda::driver::{Dimensions, Pattern};
use weft_cuda::{BufferAccess, DeviceBuffer, HostMemory, Label, Landing, Launch, Parameter, PinnedBlock, Region};
use weft_engine::{AccessKind, Cause, OpContext, Payload, Variable};

/// A device array with a variable for each block.
#[derive(Clone)]
pub(crate) struct Sliced {
    pub(crate) buffer: Arc<DeviceBuffer>,
    variables: Arc<[Variable]>,
}

/// Words of one.
#[derive(Clone)]
pub(crate) struct Slice {
    pub(crate) of: Sliced,
    pub(crate) words: Range<usize>,
}

impl Sliced {
    fn words(&self) -> usize {
        self.buffer.bytes() / 8
    }

    pub(crate) fn slice(&self, words: Range<usize>) -> Slice {
        Slice { of: self.clone(), words }
    }

    pub(crate) fn whole(&self) -> Slice {
        self.slice(0..self.words())
    }
}

impl Slice {
    fn bytes(&self) -> Range<usize> {
        self.words.start * 8..self.words.end * 8
    }

    fn region(&self) -> Region {
        let bytes = self.bytes();
        Region::new(&self.of.buffer, bytes.start, bytes.len()).expect("it lies within")
    }

    fn access(&self, kind: AccessKind) -> BufferAccess {
        BufferAccess::part(&self.of.buffer, self.bytes(), kind)
    }

    /// The variables of the blocks in which it lies.
    fn variables(&self) -> &[Variable] {
        let block = self.of.words().div_ceil(self.of.variables.len());
        &self.of.variables[self.words.start / block..self.words.end.div_ceil(block)]
    }
}

impl Machine {
    /// A device array with so many blocks.
    pub(crate) fn sliced(&self, device: usize, words: usize, blocks: usize) -> Sliced {
        let buffer = DeviceBuffer::new(&self.device(device), words * 8);
        Sliced { buffer, variables: (0..blocks).map(|_| self.engine.new_variable(None)).collect() }
    }

    /// Pushes an op on slices, and variables besides.
    fn push_on<P: Payload>(&self, payload: P, slices: &[(&Slice, AccessKind)], variables: &[(&Variable, AccessKind)]) {
        let own = slices.iter().flat_map(|(slice, kind)| slice.variables().iter().map(|own| (own, *kind)));
        let mut op = self.engine.op_of(payload);
        for (variable, kind) in own.chain(variables.iter().copied()) {
            op = if kind == AccessKind::Read { op.read(variable) } else { op.mutate(variable) };
        }
        op.push().expect("an open engine");
    }

    /// A launch of a kernel with the parameters of `axpy`.
    pub(crate) fn prepared_slice(&self, kernel: &'static str, out: &Slice, x: &Slice, factor: u64) -> Launch {
        let kernel = self.kernel(out.of.buffer.device(), kernel);
        let plan = [Parameter::Pointer, Parameter::Pointer, Parameter::Scalar(8), Parameter::Scalar(4)];
        let plan = kernel.plan(&plan).expect("a plan");
        let dimensions = Dimensions { grid: [1; 3], block: [64, 1, 1], shared_memory: 0 };
        let count = u32::try_from(x.words.len()).expect("few words");
        let pointer = |slice: &Slice, kind| (slice.bytes().start, slice.access(kind));
        let ((out_at, out), (x_at, x)) = (pointer(out, AccessKind::Mutate), pointer(x, AccessKind::Read));
        // SAFETY: the kernels do what their arguments say.
        unsafe { Launch::new(&kernel, &plan, dimensions, Label::new(Arc::clone(kernel.name()), factor)) }
            .and_then(|launch| launch.pointer(out_at, out))
            .and_then(|launch| launch.pointer(x_at, x))
            .and_then(|launch| launch.scalar(&factor.to_ne_bytes()))
            .and_then(|launch| launch.scalar(&count.to_ne_bytes()))
            .expect("fitting arguments")
    }

    pub(crate) fn launch_slice(&self, kernel: &'static str, out: &Slice, x: &Slice, factor: u64) {
        let launch = self.prepared_slice(kernel, out, x, factor);
        self.push_on(launch, &[(out, AccessKind::Mutate), (x, AccessKind::Read)], &[]);
    }

    pub(crate) fn fill_slice(&self, to: &Slice, value: u32) {
        let region = to.region();
        let op = move |_: &mut OpContext<'_>| {
            weft_cuda::fill(&Label::from("fill"), &region, Pattern::Word(value)).map(drop).map_err(Cause::from)
        };
        self.push_on(to.of.buffer.device().issuing(op), &[(to, AccessKind::Mutate)], &[]);
    }

    pub(crate) fn copy_slice(&self, to: &Slice, from: &Slice) {
        let (target, source) = (to.region(), from.region());
        let op = move |_: &mut OpContext<'_>| {
            weft_cuda::copy(&Label::from("copy"), &target, &source).map(drop).map_err(Cause::from)
        };
        self.push_on(to.of.buffer.device().issuing(op), &[(to, AccessKind::Mutate), (from, AccessKind::Read)], &[]);
    }

    /// Pushes a copy from pageable memory, which is kept until it has landed.
    pub(crate) fn copy_in_slice(&self, to: &Slice, words: Vec<u64>) {
        let words = Arc::new(Words(words.into()));
        let (own, memory) = (self.engine.new_variable(None), words.memory());
        let ((landing, land), region) = (Landing::keeping(to.of.buffer.device(), Box::new(words)), to.region());
        let issue = move |context: &mut OpContext<'_>| {
            weft_cuda::copy_in(context, &Label::from("copy in"), &region, memory, landing).map_err(Cause::from)
        };
        self.push_on(to.of.buffer.device().issuing(issue), &[(to, AccessKind::Mutate)], &[(&own, AccessKind::Read)]);
        self.push_on(land, &[], &[(&own, AccessKind::Read)]);
    }

    /// Pushes a copy to pageable memory.
    pub(crate) fn copy_out_slice(&self, from: &Slice) -> super::Host {
        let to = self.host(vec![0; from.words.len()]);
        let ((landing, land), region) =
            (Landing::keeping(from.of.buffer.device(), Box::new(Arc::clone(&to.words))), from.region());
        let memory = to.words.memory();
        let issue = move |context: &mut OpContext<'_>| {
            weft_cuda::copy_out(context, &Label::from("copy out"), memory, &region, landing).map_err(Cause::from)
        };
        self.push_on(
            from.of.buffer.device().issuing(issue),
            &[(from, AccessKind::Read)],
            &[(&to.variable, AccessKind::Mutate)],
        );
        self.push_on(land, &[], &[(&to.variable, AccessKind::Mutate)]);
        to
    }

    /// Pushes a copy between a slice and the words of a pinned block from this one on, and its landing on `host`; without
    /// that nobody lands it, and the host is not told when it ends.
    pub(crate) fn copy_pinned_slice(
        &self,
        slice: &Slice,
        (block, at): (&Arc<PinnedBlock>, usize),
        kind: AccessKind,
        host: Option<&Variable>,
    ) {
        let ((landing, land), region) =
            (Landing::keeping(slice.of.buffer.device(), Box::new(Arc::clone(block))), slice.region());
        // SAFETY: the landing keeps the block; the variable orders who uses it.
        let memory = unsafe { HostMemory::new(block.start().add(at * 8), region.bytes()) };
        let issue = move |context: &mut OpContext<'_>| {
            let label = Label::from("pinned");
            match kind {
                AccessKind::Read => weft_cuda::copy_out(context, &label, memory, &region, landing),
                _ => weft_cuda::copy_in(context, &label, &region, memory, landing),
            }
            .map_err(Cause::from)
        };
        let of_host = if kind == AccessKind::Read { AccessKind::Mutate } else { AccessKind::Read };
        let host: Vec<_> = host.map(|host| (host, of_host)).into_iter().collect();
        self.push_on(slice.of.buffer.device().issuing(issue), &[(slice, kind)], &host);
        if !host.is_empty() {
            self.push_on(land, &[], &host);
        }
    }
}
