//! Launches: a kernel with arguments, ready to be issued. Issuing one allocates nothing.

use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::driver::Dimensions;
use crate::error::CudaError;
use crate::fence::Fence;
use crate::issue::{Access, Issuing, Request};
use crate::kernel::{Kernel, LaunchPlan, Parameter};
use crate::label::Label;
use crate::stream::Stream;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::Arc;
use weft_engine::{AccessKind, Cause, OpContext, Payload};

/// Threads of a block at most, on every device.
const THREADS: u64 = 1024;

/// A pointer that is known when the op is issued.
#[derive(Debug, Clone, Copy)]
struct Patch {
    word: usize,
    access: usize,
    offset: u64,
}

/// A kernel with its arguments: give them in order, then push it as an op, or [issue](Self::issue) it inside of one.
///
/// Whoever launches vouches that the kernel touches what the arguments say, and nothing else: the same promise that
/// any call of native code needs.
#[derive(Debug, Clone)]
pub struct Launch {
    kernel: Kernel,
    plan: Arc<LaunchPlan>,
    dimensions: Dimensions,
    label: Label,
    priority: i32,
    stream: Option<Stream>,
    /// The parameters, packed; each starts with a word of its own.
    words: SmallVec<[u64; 16]>,
    patches: SmallVec<[Patch; 8]>,
    accesses: SmallVec<[Access; 8]>,
    given: usize,
}

impl Launch {
    /// A launch without arguments yet.
    ///
    /// # Safety
    ///
    /// The plan's parameters are those of the kernel. With the arguments to come, the kernel reads no device
    /// memory but what the accesses to buffers say, and writes to none but what those say that mutate or overwrite.
    pub unsafe fn new(
        kernel: &Kernel,
        plan: &Arc<LaunchPlan>,
        dimensions: Dimensions,
        label: Label,
    ) -> Result<Self, CudaError> {
        let threads: u64 = dimensions.block.iter().map(|count| u64::from(*count)).product();
        if dimensions.grid.contains(&0) || threads == 0 || threads > THREADS {
            return Err(CudaError::InvalidArgument(format!(
                "kernel '{}' cannot be launched with grid {:?} and block {:?}: all counts are at least 1, and a block \
                 has {THREADS} threads at most",
                kernel.name(),
                dimensions.grid,
                dimensions.block
            )));
        }
        if plan.function != kernel.function() {
            let message = format!("the plan was made for another kernel than '{}'", kernel.name());
            return Err(CudaError::InvalidArgument(message));
        }
        kernel.allow_shared_memory(dimensions.shared_memory)?;
        Ok(Self {
            kernel: kernel.clone(),
            plan: Arc::clone(plan),
            dimensions,
            label,
            priority: 0,
            stream: None,
            words: SmallVec::with_capacity(plan.words),
            patches: SmallVec::new(),
            accesses: SmallVec::new(),
            given: 0,
        })
    }

    fn mismatch(&self, given: &str) -> CudaError {
        let wanted = match self.plan.parameters.get(self.given) {
            None => "none".to_owned(),
            Some(Parameter::Pointer) => "a buffer".to_owned(),
            Some(Parameter::Scalar(bytes)) => format!("a value of {bytes} bytes"),
        };
        let (at, name) = (self.given, self.kernel.name());
        CudaError::InvalidArgument(format!("argument {at} of kernel '{name}' is {given}, and {wanted} is expected"))
    }

    /// Gives a buffer, from this byte on. The kernel may touch all of it.
    pub fn buffer(self, buffer: &Arc<DeviceBuffer>, offset: usize, kind: AccessKind) -> Result<Self, CudaError> {
        self.pointer(offset, Access::whole(buffer, kind))
    }

    /// Gives a buffer, from this byte on. The kernel touches nothing of it but what the access says.
    pub fn pointer(mut self, offset: usize, access: Access) -> Result<Self, CudaError> {
        let buffer = &access.buffer;
        if self.plan.parameters.get(self.given) != Some(&Parameter::Pointer) {
            return Err(self.mismatch("a buffer"));
        }
        if offset > buffer.bytes() {
            return Err(CudaError::InvalidArgument(format!(
                "argument {} of kernel '{}' begins at byte {offset} of a buffer of {} bytes",
                self.given,
                self.kernel.name(),
                buffer.bytes()
            )));
        }
        if buffer.device() != self.kernel.device() {
            return Err(CudaError::InvalidArgument(format!(
                "argument {} of kernel '{}' lies on cuda:{}, and the kernel is loaded for cuda:{}; copy it there first",
                self.given,
                self.kernel.name(),
                buffer.device().index(),
                self.kernel.device().index()
            )));
        }
        let patch = Patch { word: self.words.len(), access: self.accesses.len(), offset: offset as u64 };
        self.patches.push(patch);
        self.words.push(0);
        self.accesses.push(access);
        self.given += 1;
        Ok(self)
    }

    /// Gives a value.
    pub fn scalar(mut self, bytes: &[u8]) -> Result<Self, CudaError> {
        if self.plan.parameters.get(self.given) != Some(&Parameter::Scalar(bytes.len())) {
            return Err(self.mismatch(&format!("a value of {} bytes", bytes.len())));
        }
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words.push(u64::from_ne_bytes(word));
        }
        self.given += 1;
        Ok(self)
    }

    /// Says what the kernel does with memory that no argument names: pointers within buffers, for example.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.accesses.push(access);
        self
    }

    /// Ahead of others, if above 0.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// On this stream.
    #[must_use]
    pub fn stream(mut self, stream: Option<Stream>) -> Self {
        self.stream = stream;
        self
    }

    /// What it does with which buffers.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Refuses a launch with too few arguments. A push should, so that the mistake is told where it was made.
    pub fn check(&self) -> Result<(), CudaError> {
        let (given, wanted) = (self.given, self.plan.parameters.len());
        if given == wanted {
            return Ok(());
        }
        let name = self.kernel.name();
        Err(CudaError::InvalidArgument(format!("kernel '{name}' was given {given} arguments, and takes {wanted}")))
    }

    fn device(&self) -> &Device {
        self.kernel.device()
    }

    /// Puts it on a stream.
    pub(crate) fn put(&self, issuing: &Issuing<'_>) -> Result<(), CudaError> {
        let mut words: SmallVec<[u64; 16]> = SmallVec::from_slice(&self.words);
        for patch in &self.patches {
            words[patch.word] = issuing.addresses[patch.access] + patch.offset;
        }
        let mut pointers: SmallVec<[*mut c_void; 32]> = SmallVec::new();
        let mut rest = words.as_mut_ptr();
        for parameter in &self.plan.parameters {
            pointers.push(rest.cast());
            // SAFETY: check() has found all parameters given, so these are within the words, or right behind them.
            rest = unsafe { rest.add(parameter.words()) };
        }
        // SAFETY: there is a pointer for each parameter; what they are is promised to new(), and the stream is behind
        // all that the accesses ask for.
        unsafe {
            issuing.driver.launch(
                self.kernel.function(),
                &self.dimensions,
                issuing.stream.handle(),
                pointers.as_mut_ptr(),
            )
        }
        .map_err(|error| issuing.refused(error))
    }

    /// Issues it, inside of an op that was granted its accesses.
    #[inline]
    pub fn issue(&self) -> Result<Fence, CudaError> {
        self.check()?;
        let request = Request {
            priority: self.priority,
            stream: self.stream.as_ref(),
            ..Request::new(&self.label, &self.accesses)
        };
        self.device().issue(&request, |issuing| self.put(issuing))
    }
}

impl Payload for Launch {
    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.issue().map(drop).map_err(Cause::from)
    }
}
