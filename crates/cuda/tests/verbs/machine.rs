//! A simulated machine and an engine on it.

use std::sync::Arc;
use weft_cuda::driver::Dimensions;
use weft_cuda::simulated::{Kernel, KernelCall, Settings, SimulatedDriver};
use weft_cuda::{Cuda, Device, DeviceBuffer, HostMemory, Label, Landing, Launch, Parameter, Region};
use weft_engine::{AccessKind, Cause, Engine, OpContext, Policy, Variable};

/// Words of 64 bits in a test's buffers, unless it says otherwise.
pub(crate) const WORDS: usize = 64;

pub(crate) struct Machine {
    pub(crate) driver: SimulatedDriver,
    pub(crate) cuda: Cuda,
    pub(crate) engine: Engine,
}

/// Device memory with its variable.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) buffer: Arc<DeviceBuffer>,
    pub(crate) variable: Variable,
}

/// Host memory with its variable.
#[derive(Clone)]
pub(crate) struct Host {
    words: Arc<Words>,
    pub(crate) variable: Variable,
}

struct Words(std::cell::UnsafeCell<Vec<u64>>);

// SAFETY: ops touch the words as their variable grants it.
unsafe impl Sync for Words {}
// SAFETY: as above.
unsafe impl Send for Words {}

/// `out[i] = x[i] * factor + out[i]`: reads x, mutates out.
fn axpy(call: &mut KernelCall<'_>) {
    let (out, x, factor) = (call.parameter(0), call.parameter(1), call.parameter(2));
    let count = call.count(3);
    let (x, before) = (call.read_words(x, count), call.read_words(out, count));
    let after: Vec<u64> = x.iter().zip(before).map(|(x, old)| x.wrapping_mul(factor).wrapping_add(old)).collect();
    call.write_words(out, &after);
}

/// `out[i] = x[i] * factor`: reads x, overwrites out.
fn scale(call: &mut KernelCall<'_>) {
    let (out, x, factor) = (call.parameter(0), call.parameter(1), call.parameter(2));
    let count = call.count(3);
    let after: Vec<u64> = call.read_words(x, count).iter().map(|x| x.wrapping_mul(factor)).collect();
    call.write_words(out, &after);
}

impl Machine {
    pub(crate) fn new(settings: Settings, workers: usize) -> Self {
        let driver = SimulatedDriver::new(settings);
        driver.add_kernel(Kernel::new("axpy", &[8, 8, 8, 4], axpy).takes(10_000, 0.25));
        driver.add_kernel(Kernel::new("scale", &[8, 8, 8, 4], scale).takes(10_000, 0.25));
        let cuda = Cuda::with_driver(Arc::new(driver.clone()));
        let policy = Policy::WorkStealing;
        let settings = weft_engine::Settings { workers: Some(workers), policy, ..weft_engine::Settings::default() };
        Self { driver, cuda, engine: Engine::new(settings).expect("an engine") }
    }

    pub(crate) fn device(&self, index: usize) -> Device {
        self.cuda.device(index).expect("a device")
    }

    pub(crate) fn array(&self, device: usize, words: usize) -> Array {
        let buffer = DeviceBuffer::new(&self.device(device), words * 8);
        Array { buffer, variable: self.engine.new_variable(None) }
    }

    pub(crate) fn host(&self, words: Vec<u64>) -> Host {
        Host { words: Arc::new(Words(words.into())), variable: self.engine.new_variable(None) }
    }

    /// Pushes a launch of a kernel with the parameters of `axpy`.
    pub(crate) fn launch(&self, kernel: &str, out: &Array, x: &Array, factor: u64) {
        let device = out.buffer.device();
        // SAFETY: the simulated driver takes any image.
        let module = unsafe { device.load_module(b"image") }.expect("a module");
        let kernel = module.kernel(kernel).expect("a kernel");
        let plan = [Parameter::Pointer, Parameter::Pointer, Parameter::Scalar(8), Parameter::Scalar(4)];
        let plan = kernel.plan(&plan).expect("a plan");
        let dimensions = Dimensions { grid: [1; 3], block: [64, 1, 1], shared_memory: 0 };
        let label = Label::from(&**kernel.name());
        let kind = if &**kernel.name() == "scale" { AccessKind::Overwrite } else { AccessKind::Mutate };
        let count = u32::try_from(x.buffer.bytes() / 8).expect("few words");
        // SAFETY: the kernels do what their arguments say.
        let launch = unsafe { Launch::new(&kernel, &plan, dimensions, label) }
            .and_then(|launch| launch.buffer(&out.buffer, 0, kind))
            .and_then(|launch| launch.buffer(&x.buffer, 0, AccessKind::Read))
            .and_then(|launch| launch.scalar(&factor.to_ne_bytes()))
            .and_then(|launch| launch.scalar(&count.to_ne_bytes()))
            .expect("fitting arguments");
        let op = self.engine.op(launch).name(kernel.name()).read(&x.variable);
        let op = if kind == AccessKind::Overwrite { op.overwrite(&out.variable) } else { op.mutate(&out.variable) };
        op.push().expect("an open engine");
    }

    /// Pushes a copy from the host, as its two ops.
    pub(crate) fn copy_in(&self, to: &Array, from: &Host) {
        let (landing, words, region) = (Landing::new(), Arc::clone(&from.words), Region::whole(&to.buffer));
        let land = landing.clone();
        let issue = move |context: &mut OpContext<'_>| {
            let host = words.memory();
            weft_cuda::copy_in(context, &Label::from("copy in"), &region, host, &landing).map_err(Cause::from)
        };
        self.engine
            .op(issue)
            .name("copy in")
            .overwrite(&to.variable)
            .read(&from.variable)
            .push()
            .expect("an open engine");
        self.engine.op(land).name("land").read(&from.variable).push().expect("an open engine");
    }

    /// Pushes a copy to the host, as its two ops.
    pub(crate) fn copy_out(&self, to: &Host, from: &Array) {
        let (landing, words, region) = (Landing::new(), Arc::clone(&to.words), Region::whole(&from.buffer));
        let land = landing.clone();
        let issue = move |context: &mut OpContext<'_>| {
            let host = words.memory();
            weft_cuda::copy_out(context, &Label::from("copy out"), host, &region, &landing).map_err(Cause::from)
        };
        self.engine
            .op(issue)
            .name("copy out")
            .read(&from.variable)
            .overwrite(&to.variable)
            .push()
            .expect("an open engine");
        self.engine.op(land).name("land").mutate(&to.variable).push().expect("an open engine");
    }

    /// What the host memory holds when all that was pushed on it is done.
    pub(crate) fn read(&self, host: &Host) -> Vec<u64> {
        self.engine.wait_for_var(&host.variable).expect("no op fails");
        // SAFETY: the wait has ended, and the test pushes nothing meanwhile.
        unsafe { (*host.words.0.get()).clone() }
    }
}

impl Words {
    fn memory(&self) -> HostMemory {
        // SAFETY: ops touch the words as their variable grants it; they are not pinned.
        unsafe {
            let words = &mut *self.0.get();
            HostMemory::new(words.as_mut_ptr().cast(), words.len() * 8)
        }
    }
}
