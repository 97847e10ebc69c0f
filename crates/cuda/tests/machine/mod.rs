//! A simulated machine, an engine, and the ops that the tests push.
#![allow(dead_code)] // not every test needs all of it

pub(crate) mod bundles;
mod slices;

pub(crate) use slices::{Slice, Sliced};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use weft_cuda::driver::{Dimensions, Pattern};
use weft_cuda::simulated::{Kernel as Simulated, KernelCall, Settings, SimulatedDriver};
use weft_cuda::{
    Cuda, CudaError, Device, DeviceBuffer, HostMemory, Kernel, Label, Landing, Launch, Parameter, PinnedBlock, Region,
};
use weft_engine::{AccessKind, Cause, Completion, Engine, EngineError, OpContext, Policy, Variable};

/// Words of 64 bits in a test's buffers, unless it says otherwise.
pub(crate) const WORDS: usize = 64;
/// Bytes of a staged chunk: little, so that copies have many.
pub(crate) const CHUNK: usize = 4096;
/// Parts of a buffer: few, so that they are merged.
pub(crate) const PARTS: usize = 12;

pub(crate) struct Machine {
    pub(crate) driver: SimulatedDriver,
    pub(crate) cuda: Cuda,
    pub(crate) engine: Engine,
    /// Blocks that arrays have at most at a time.
    storages: usize,
    kernels: Mutex<HashMap<(usize, &'static str), Kernel>>,
}

/// Device memory with its variable.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) buffer: Arc<DeviceBuffer>,
    pub(crate) variable: Variable,
}

/// Pageable host memory with its variable.
#[derive(Clone)]
pub(crate) struct Host {
    words: Arc<Words>,
    pub(crate) variable: Variable,
}

struct Words(UnsafeCell<Vec<u64>>);

// SAFETY: ops touch the words as their variable grants it.
unsafe impl Sync for Words {}
// SAFETY: as above.
unsafe impl Send for Words {}

impl Words {
    fn memory(&self) -> HostMemory {
        // SAFETY: ops touch the words as their variable grants it; they are not pinned.
        unsafe {
            let words = &mut *self.0.get();
            HostMemory::new(words.as_mut_ptr().cast(), words.len() * 8)
        }
    }
}

/// `out[i] = x[i] * factor + out[i]`: reads x, mutates out.
fn axpy(call: &mut KernelCall<'_>) {
    let (out, x, factor, count) = (call.parameter(0), call.parameter(1), call.parameter(2), call.count(3));
    let (x, before) = (call.read_words(x, count), call.read_words(out, count));
    let after: Vec<u64> = x.iter().zip(before).map(|(x, old)| x.wrapping_mul(factor).wrapping_add(old)).collect();
    call.write_words(out, &after);
}

/// `out[i] = x[i] * factor`: reads x, overwrites out.
fn scale(call: &mut KernelCall<'_>) {
    let (out, x, factor, count) = (call.parameter(0), call.parameter(1), call.parameter(2), call.count(3));
    let after: Vec<u64> = call.read_words(x, count).iter().map(|x| x.wrapping_mul(factor)).collect();
    call.write_words(out, &after);
}

/// Virtual nanoseconds of a kernel, which takes a quarter of the device.
pub(crate) const KERNEL: u64 = 10_000;

impl Machine {
    pub(crate) fn new(settings: Settings, workers: usize) -> Self {
        Self::with_parts(settings, workers, PARTS)
    }

    /// One on which buffers have so many parts at most.
    pub(crate) fn with_parts(settings: Settings, workers: usize, parts: usize) -> Self {
        Self::with(settings, workers, weft_cuda::Settings { chunk: CHUNK, parts, ahead: 0 })
    }

    /// One on which so many chunks of pinned memory are made ready.
    pub(crate) fn with_chunks_ahead(settings: Settings, workers: usize, ahead: usize) -> Self {
        Self::with(settings, workers, weft_cuda::Settings { chunk: CHUNK, parts: PARTS, ahead })
    }

    fn with(settings: Settings, workers: usize, cuda: weft_cuda::Settings) -> Self {
        let driver = SimulatedDriver::new(settings);
        for (name, body) in [("axpy", axpy as fn(&mut KernelCall<'_>)), ("scale", scale)] {
            driver.add_kernel(Simulated::new(name, &[8, 8, 8, 4], body).takes(KERNEL, 0.25));
        }
        let cuda = Cuda::with_settings(Arc::new(driver.clone()), cuda);
        let policy = if workers == 0 { Policy::Serial } else { Policy::WorkStealing };
        let workers = Some(workers.max(1));
        let settings = weft_engine::Settings { workers, policy, ..weft_engine::Settings::default() };
        let engine = Engine::new(settings).expect("an engine");
        Self { driver, cuda, engine, storages: 1, kernels: Mutex::default() }
    }

    /// The same, with arrays that have so many blocks at most at a time.
    pub(crate) fn renaming(self, storages: usize) -> Self {
        Self { storages, ..self }
    }

    pub(crate) fn device(&self, index: usize) -> Device {
        self.cuda.device(index).expect("a device")
    }

    pub(crate) fn array(&self, device: usize, words: usize) -> Array {
        let buffer = DeviceBuffer::renamed(&self.device(device), words * 8, self.storages);
        Array { buffer, variable: self.engine.new_variable(None) }
    }

    pub(crate) fn host(&self, words: Vec<u64>) -> Host {
        Host { words: Arc::new(Words(words.into())), variable: self.engine.new_variable(None) }
    }

    fn kernel(&self, device: &Device, name: &'static str) -> Kernel {
        let mut kernels = self.kernels.lock().expect("no panic");
        let made = kernels.entry((device.index(), name)).or_insert_with(|| {
            // SAFETY: the simulated driver takes any image.
            let module = unsafe { device.load_module(b"image") }.expect("a module");
            module.kernel(name).expect("a kernel")
        });
        made.clone()
    }

    /// A launch of a kernel with the parameters of `axpy`.
    pub(crate) fn prepared(&self, kernel: &'static str, out: &Array, x: &Array, factor: u64) -> Launch {
        let kernel = self.kernel(out.buffer.device(), kernel);
        let plan = [Parameter::Pointer, Parameter::Pointer, Parameter::Scalar(8), Parameter::Scalar(4)];
        let plan = kernel.plan(&plan).expect("a plan");
        let dimensions = Dimensions { grid: [1; 3], block: [64, 1, 1], shared_memory: 0 };
        let kind = if &**kernel.name() == "scale" { AccessKind::Overwrite } else { AccessKind::Mutate };
        let count = u32::try_from(x.buffer.bytes() / 8).expect("few words");
        // SAFETY: the kernels do what their arguments say.
        unsafe { Launch::new(&kernel, &plan, dimensions, Label::new(Arc::clone(kernel.name()), factor)) }
            .and_then(|launch| launch.buffer(&out.buffer, 0, kind))
            .and_then(|launch| launch.buffer(&x.buffer, 0, AccessKind::Read))
            .and_then(|launch| launch.scalar(&factor.to_ne_bytes()))
            .and_then(|launch| launch.scalar(&count.to_ne_bytes()))
            .expect("fitting arguments")
            .brief(factor % 2 == 1)
    }

    /// Pushes a launch: a brief one, if the factor is odd.
    pub(crate) fn launch(&self, kernel: &'static str, out: &Array, x: &Array, factor: u64) {
        let launch = self.prepared(kernel, out, x, factor);
        let op = self.engine.op_of(launch).name(kernel).read(&x.variable);
        let op = if kernel == "scale" { op.overwrite(&out.variable) } else { op.mutate(&out.variable) };
        op.push().expect("an open engine");
    }

    /// Pushes a fill with a word of 32 bits.
    pub(crate) fn fill(&self, to: &Array, value: u32) {
        let region = Region::whole(&to.buffer);
        let op = move |_: &mut OpContext<'_>| {
            weft_cuda::fill(&Label::from("fill"), &region, Pattern::Word(value)).map(drop).map_err(Cause::from)
        };
        self.engine
            .op_of(to.buffer.device().issuing(op))
            .name("fill")
            .overwrite(&to.variable)
            .push()
            .expect("an open engine");
    }

    /// Pushes a copy between buffers.
    pub(crate) fn copy(&self, to: &Array, from: &Array) {
        let (target, source) = (Region::whole(&to.buffer), Region::whole(&from.buffer));
        let op = move |_: &mut OpContext<'_>| {
            weft_cuda::copy(&Label::from("copy"), &target, &source).map(drop).map_err(Cause::from)
        };
        self.engine
            .op_of(to.buffer.device().issuing(op))
            .name("copy")
            .read(&from.variable)
            .overwrite(&to.variable)
            .push()
            .expect("an open engine");
    }

    /// Pushes a copy from the host, as its two ops.
    pub(crate) fn copy_in(&self, to: &Array, from: &Host) {
        let ((landing, land), words, region) =
            (Landing::new(to.buffer.device()), Arc::clone(&from.words), Region::whole(&to.buffer));
        let issue = move |context: &mut OpContext<'_>| {
            let host = words.memory();
            weft_cuda::copy_in(context, &Label::from("copy in"), &region, host, landing).map_err(Cause::from)
        };
        let op = self.engine.op_of(to.buffer.device().issuing(issue)).name("copy in");
        op.overwrite(&to.variable).read(&from.variable).push().expect("an open engine");
        self.engine.op_of(land).name("land").read(&from.variable).push().expect("an open engine");
    }

    /// Pushes a copy to the host, as its two ops.
    pub(crate) fn copy_out(&self, to: &Host, from: &Array) {
        let keeper = Box::new(Arc::clone(&to.words));
        let ((landing, land), words, region) =
            (Landing::keeping(from.buffer.device(), keeper), Arc::clone(&to.words), Region::whole(&from.buffer));
        let issue = move |context: &mut OpContext<'_>| {
            let host = words.memory();
            weft_cuda::copy_out(context, &Label::from("copy out"), host, &region, landing).map_err(Cause::from)
        };
        let op = self.engine.op_of(from.buffer.device().issuing(issue)).name("copy out");
        op.read(&from.variable).overwrite(&to.variable).push().expect("an open engine");
        self.engine.op_of(land).name("land").mutate(&to.variable).push().expect("an open engine");
    }

    /// Pushes a copy between a buffer and pinned memory, which nobody lands: the host is not told when it ends.
    pub(crate) fn copy_pinned(&self, block: &Arc<PinnedBlock>, array: &Array, kind: AccessKind) {
        let (block, region) = (Arc::clone(block), Region::whole(&array.buffer));
        let op = move |context: &mut OpContext<'_>| {
            // SAFETY: the test keeps the block until the machine is idle.
            let host = unsafe { HostMemory::new(block.start(), region.bytes()) };
            let (label, (landing, _)) = (Label::from("pinned"), Landing::new(region.device()));
            match kind {
                AccessKind::Read => weft_cuda::copy_out(context, &label, host, &region, landing),
                _ => weft_cuda::copy_in(context, &label, &region, host, landing),
            }
            .map_err(Cause::from)
        };
        let op = self.engine.op_of(array.buffer.device().issuing(op)).name("pinned");
        let op = if kind == AccessKind::Read { op.read(&array.variable) } else { op.overwrite(&array.variable) };
        op.push().expect("an open engine");
    }

    /// Pushes an op of the host that adds to each word.
    pub(crate) fn add(&self, host: &Host, term: u64) {
        let (words, driver) = (Arc::clone(&host.words), self.driver.clone());
        let op = move |_: &mut OpContext<'_>| {
            // SAFETY: the op mutates the words' variable.
            let words = unsafe { &mut *words.0.get() };
            driver.check_host_access(words.as_ptr().cast(), words.len() * 8, true);
            words.iter_mut().for_each(|word| *word = word.wrapping_add(term));
            Ok(())
        };
        self.engine.op_of(op).name("add").mutate(&host.variable).push().expect("an open engine");
    }

    /// What the host memory holds when all that was pushed on it is done.
    pub(crate) fn read(&self, host: &Host) -> Vec<u64> {
        self.engine.wait_for_var(&host.variable).expect("no op fails");
        // SAFETY: the wait has ended, and the test pushes nothing meanwhile.
        unsafe { (*host.words.0.get()).clone() }
    }

    /// What the array holds when all that was pushed on it is done.
    pub(crate) fn value(&self, array: &Array) -> Vec<u64> {
        let host = self.host(vec![0; array.buffer.bytes() / 8]);
        self.copy_out(&host, array);
        self.read(&host)
    }

    /// Pushes an op on this variable that stays unfinished until the answered token is used.
    pub(crate) fn shut(&self, variable: &Variable) -> Completion {
        let (sender, receiver) = std::sync::mpsc::channel();
        let gate = move |context: &mut OpContext<'_>| {
            sender.send(context.defer()).expect("the test waits for it");
            Ok(())
        };
        self.engine.op_of(gate).name("gate").mutate(variable).push().expect("an open engine");
        receiver.recv().expect("the gate starts")
    }

    /// The error of this crate with which a variable's last version failed.
    pub(crate) fn failure(&self, variable: &Variable) -> CudaError {
        let Err(EngineError::Failed(failure)) = self.engine.wait_for_var(variable) else { panic!("it did not fail") };
        let Cause::Error(error) = failure.cause() else { panic!("it failed otherwise: {failure}") };
        error.downcast_ref::<CudaError>().expect("an error of the crate").clone()
    }

    /// Nothing was found wrong.
    pub(crate) fn check(&self) {
        assert_eq!(self.driver.take_hazards(), Vec::<String>::new());
    }
}
