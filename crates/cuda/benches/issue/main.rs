//! What issuing costs beside the driver: launches on a driver whose verbs do nothing.
//!
//! Instructions count better than nanoseconds on a busy machine:
//! `valgrind --tool=callgrind --toggle-collect='*launch_*' BENCH --bench` and divide by the calls.

mod idle;

use divan::Bencher;
use idle::IdleDriver;
use std::sync::Arc;
use weft_cuda::driver::Dimensions;
use weft_cuda::{Cuda, DeviceBuffer, Label, Launch, Parameter, Region};
use weft_engine::AccessKind;

fn main() {
    divan::main();
}

/// A launch that mutates one buffer and reads another, with two values besides.
fn launch() -> Launch {
    let cuda = Cuda::with_driver(Arc::new(IdleDriver));
    let device = cuda.device(0).expect("a device");
    let (x, y) = (DeviceBuffer::new(&device, 4096), DeviceBuffer::new(&device, 4096));
    weft_cuda::fill(&Label::from("fill"), &Region::whole(&x), weft_cuda::driver::Pattern::Byte(0))
        .expect("it is issued");
    // SAFETY: the driver does nothing.
    let kernel = unsafe { device.load_module(b"image") }.and_then(|module| module.kernel("kernel")).expect("a kernel");
    let parameters = [Parameter::Pointer, Parameter::Pointer, Parameter::Scalar(8), Parameter::Scalar(4)];
    let plan = kernel.plan(&parameters).expect("a plan");
    let dimensions = Dimensions { grid: [1; 3], block: [1; 3], shared_memory: 0 };
    // SAFETY: as above.
    unsafe { Launch::new(&kernel, &plan, dimensions, Label::from("kernel")) }
        .and_then(|launch| launch.buffer(&y, 0, AccessKind::Mutate))
        .and_then(|launch| launch.buffer(&x, 0, AccessKind::Read))
        .and_then(|launch| launch.scalar(&[0; 8]))
        .and_then(|launch| launch.scalar(&[0; 4]))
        .expect("fitting arguments")
}

#[inline(never)]
fn launch_once(launch: &Launch) {
    launch.issue().expect("it is issued");
}

#[divan::bench]
fn dependent_launches(bencher: Bencher<'_, '_>) {
    let launch = launch();
    // The first ones allocate: memory, events, room for labels.
    (0..2000).for_each(|_| launch_once(&launch));
    bencher.bench_local(|| launch_once(&launch));
}
