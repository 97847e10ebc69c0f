//! The real binding against a library with the face of a driver, compiled here by the C compiler: no GPU is needed to
//! see that arguments arrive as they should.

#![cfg(all(unix, not(target_feature = "crt-static")))] // a static program opens no library

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use weft_cuda::driver::{Dimensions, Pattern};
use weft_cuda::{
    Bundle, Cuda, CudaError, Device, DeviceBuffer, Fence, HostMemory, Kernel, Label, Landing, Launch, Member, Module,
    Parameter, Region,
};
use weft_engine::{AccessKind, Cause, Engine, OpContext, Settings, Wait};

/// Compiles the library, with a flavour if one is named.
fn library(flavour: Option<&str>) -> String {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/library/libcuda.c");
    // Tests may run side by side, in threads and in processes.
    let name = format!("libcuda-{}-{}.so", flavour.unwrap_or("works").to_lowercase(), std::process::id());
    let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-shared", "-fPIC", "-O1", source, "-o"]).arg(&built);
    command.args(flavour.map(|flavour| format!("-D{flavour}")));
    assert!(command.status().expect("a C compiler").success());
    built.to_str().expect("a plain path").to_owned()
}

fn refused(flavour: &str) -> String {
    let error = Cuda::open_library(Some(&library(Some(flavour)))).expect_err("it cannot be used");
    assert!(matches!(error, CudaError::Unavailable { .. }), "{error}");
    error.to_string()
}

#[test]
fn what_is_missing_is_said() {
    let none = Cuda::open_library(Some("/nowhere/libcuda.so.1")).expect_err("there is none").to_string();
    // The words between are the dynamic linker's, of which each system has its own.
    assert!(none.starts_with("CUDA is not available: the NVIDIA driver cannot be loaded ("), "{none}");
    assert!(none.contains("/nowhere/libcuda.so.1"), "{none}");
    let message =
        "CUDA is not available: the NVIDIA driver finds no device (cuInit answered CUDA_ERROR_NO_DEVICE (100))";
    assert_eq!(refused("NO_DEVICE"), message);
    let message =
        "CUDA is not available: the NVIDIA driver does not start: cuInit answered CUDA_ERROR_STUB_LIBRARY (34)";
    assert_eq!(refused("NOT_STARTING"), message);
    let message = "CUDA is not available: the NVIDIA driver is for CUDA 11.8; weft needs 12.0 or newer";
    assert_eq!(refused("OLD"), message);
    let message = "CUDA is not available: the NVIDIA driver has no cuMemAllocFromPoolAsync; weft needs one for CUDA 12.0 or newer";
    assert_eq!(refused("INCOMPLETE"), message);
}

/// On this machine: whatever it has, the answer is an answer.
#[test]
fn the_machine_has_cuda_or_says_why_not() {
    match Cuda::open() {
        Ok(cuda) => assert!(cuda.device_count() > 0),
        Err(error) => assert!(error.to_string().starts_with("CUDA is not available: "), "{error}"),
    }
}

fn done(fence: &Fence) {
    fence.wait(&mut Wait { timeout: Some(Duration::from_secs(20)), ..Wait::default() }).expect("it ends");
}

fn module(device: &Device) -> Module {
    // SAFETY: it is what the library takes for PTX.
    unsafe { device.load_module(b"ptx") }.expect("a module")
}

fn scale(device: &Device) -> Kernel {
    module(device).kernel("scale").expect("a kernel")
}

fn launch(kernel: &Kernel, out: &Arc<DeviceBuffer>, x: &Arc<DeviceBuffer>, shared_memory: u32) -> Launch {
    let parameters = [Parameter::Pointer, Parameter::Pointer, Parameter::Scalar(8), Parameter::Scalar(4)];
    let plan = kernel.plan(&parameters).expect("a plan");
    let dimensions = Dimensions { grid: [1, 2, 3], block: [4, 5, 6], shared_memory };
    let count = u32::try_from(x.bytes() / 8 - 1).expect("few words");
    // SAFETY: the kernel does what the arguments say.
    unsafe { Launch::new(kernel, &plan, dimensions, Label::from("scale")) }
        .and_then(|launch| launch.buffer(out, 0, AccessKind::Overwrite))
        .and_then(|launch| launch.buffer(x, 8, AccessKind::Read))
        .and_then(|launch| launch.scalar(&10_u64.to_ne_bytes()))
        .and_then(|launch| launch.scalar(&count.to_ne_bytes()))
        .expect("fitting arguments")
}

/// The words of a buffer, by way of a copy to the host under an engine.
fn words(buffer: &Arc<DeviceBuffer>) -> Vec<u64> {
    let engine = Engine::new(Settings { workers: Some(1), ..Settings::default() }).expect("an engine");
    let (host, mut words) = (engine.new_variable(None), vec![0_u64; buffer.bytes() / 8]);
    // SAFETY: the words live until the copy has landed.
    let memory = unsafe { HostMemory::new(words.as_mut_ptr().cast(), buffer.bytes()) };
    let (region, (landing, land)) = (Region::whole(buffer), Landing::new(buffer.device()));
    let issue = move |context: &mut OpContext<'_>| {
        let memory = memory;
        weft_cuda::copy_out(context, &Label::from("out"), memory, &region, landing).map_err(Cause::from)
    };
    engine.op_of(issue).overwrite(&host).push().expect("an open engine");
    engine.op_of(land).mutate(&host).push().expect("an open engine");
    engine.wait_for_var(&host).expect("no op fails");
    words
}

#[test]
fn calls_arrive_as_they_should() {
    let cuda = Cuda::open_library(Some(&library(None))).expect("it works");
    assert_eq!(cuda.device_count(), 2);
    let device = cuda.device(0).expect("a device");
    let properties = device.properties();
    assert_eq!((&*properties.name, properties.capability, properties.multiprocessors), ("Fake 0", (9, 0), 132));
    assert_eq!((properties.memory, properties.shared_memory), (1 << 30, 232_448));
    let stats = device.memory_stats().expect("figures");
    assert_eq!((stats.free, stats.total, stats.held), (1 << 20, 1 << 30, 4096));

    let (x, y) = (DeviceBuffer::new(&device, 80), DeviceBuffer::new(&device, 80));
    for pattern in [Pattern::Byte(1), Pattern::Half(0x101), Pattern::Word(0x0101_0101)] {
        done(&weft_cuda::fill(&Label::from("fill"), &Region::whole(&x), pattern).expect("it is issued"));
        assert_eq!(words(&x), vec![0x0101_0101_0101_0101; 10]);
    }
    done(&weft_cuda::fill(&Label::from("fill"), &Region::whole(&y), Pattern::Byte(2)).expect("it is issued"));
    let (to, from) = (Region::new(&x, 8, 8).expect("a region"), Region::new(&y, 0, 8).expect("a region"));
    done(&weft_cuda::copy(&Label::from("copy"), &to, &from).expect("it is issued"));
    assert_eq!(words(&x)[..3], [0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101]);

    let there = DeviceBuffer::new(&cuda.device(1).expect("a device"), 80);
    done(&weft_cuda::copy(&Label::from("copy"), &Region::whole(&there), &Region::whole(&x)).expect("it is issued"));
    assert_eq!(words(&there), words(&x));
    cuda.trim().expect("it is trimmed");
    assert!(cuda.shut_down(Duration::from_secs(20)));
}

#[test]
fn launches_and_graphs_arrive_as_they_should() {
    let cuda = Cuda::open_library(Some(&library(None))).expect("it works");
    let device = cuda.device(0).expect("a device");
    let (x, y) = (DeviceBuffer::new(&device, 80), DeviceBuffer::new(&device, 80));
    let fill = |buffer: &Arc<DeviceBuffer>, value| {
        weft_cuda::fill(&Label::from("fill"), &Region::whole(buffer), Pattern::Byte(value)).expect("it is issued");
    };
    fill(&x, 1);
    fill(&y, 0);
    let kernel = scale(&device);
    for shared_memory in [0, 32_768, 100_000] {
        done(&launch(&kernel, &y, &x, shared_memory).issue().expect("it is issued"));
        assert_eq!(words(&y)[8..], [0x0A0A_0A0A_0A0A_0A0A, 0]);
    }
    let together = scale(&device).cooperative(true);
    done(&launch(&together, &y, &x, 0).issue().expect("it is issued"));
    assert_eq!(words(&y)[8..], [0x0B0B_0B0B_0B0B_0B0B, 0], "the other call");
    let missing = module(&device).kernel("none").expect_err("there is none");
    let message = "looking for kernel 'none': cuModuleGetFunction answered CUDA_ERROR_NOT_FOUND (500)";
    assert_eq!(missing.to_string(), message);

    fill(&y, 0);
    replayed(&device, &kernel, &x, &y);
}

/// Issues two launches together, one after the other: at first each, then as a graph.
fn replayed(device: &Device, kernel: &Kernel, x: &Arc<DeviceBuffer>, y: &Arc<DeviceBuffer>) {
    let bundle = Bundle::new(device, Label::from("graph"));
    let members = [(); 2].map(|()| Member::Launch(launch(kernel, y, x, 0)));
    for launches in [0, 1, 2] {
        weft_cuda::fill(&Label::from("fill"), &Region::whole(y), Pattern::Byte(0)).expect("it is issued");
        let places = [x, y].map(|buffer| (Arc::clone(buffer), 0));
        let issued = bundle.issue(&places, &|| Some(members.to_vec())).expect("it is issued");
        assert_eq!((issued.count, issued.refused.is_none()), (2, true));
        assert_eq!(bundle.launches(), launches);
        assert_eq!(words(y)[8..], [0x0A0A_0A0A_0A0A_0A0A, 0]);
    }
}

/// A driver that cannot be told what nodes depend on leaves them in a row.
#[test]
fn graphs_do_without_what_a_driver_lacks() {
    let cuda = Cuda::open_library(Some(&library(Some("OLD_GRAPHS")))).expect("it works");
    let device = cuda.device(0).expect("a device");
    let (x, y) = (DeviceBuffer::new(&device, 80), DeviceBuffer::new(&device, 80));
    for (buffer, value) in [(&x, 1), (&y, 0)] {
        weft_cuda::fill(&Label::from("fill"), &Region::whole(buffer), Pattern::Byte(value)).expect("it is issued");
    }
    replayed(&device, &scale(&device), &x, &y);
}

#[test]
fn memory_that_is_not_there_is_told_with_sizes() {
    let cuda = Cuda::open_library(Some(&library(None))).expect("it works");
    let large = DeviceBuffer::new(&cuda.device(0).expect("a device"), (1 << 30) + 1);
    let error =
        weft_cuda::fill(&Label::from("large"), &Region::whole(&large), Pattern::Byte(0)).expect_err("too large");
    assert_eq!(
        error.to_string(),
        "cuda:0 has no 1073741825 bytes for op 'large': 1048576 of 1073741824 bytes are free, 0 are in use by weft and \
         4096 held by its pool; free arrays, or work in smaller pieces"
    );
}

/// A driver newer than the binding may answer what the binding has never heard of.
#[test]
fn a_code_without_a_name_is_a_number() {
    let cuda = Cuda::open_library(Some(&library(Some("NEWER_CODE")))).expect("it works");
    let device = cuda.device(0).expect("a device");
    let (x, y) = (DeviceBuffer::new(&device, 80), DeviceBuffer::new(&device, 80));
    let error = launch(&scale(&device), &y, &x, 0).issue().expect_err("it is refused");
    let message = "op 'scale': cuLaunchKernel answered an error that the driver has no name for (54321)";
    assert_eq!(error.to_string(), message);
}
