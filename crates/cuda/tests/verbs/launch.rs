//! Launches: mistakes are told where they are made, and what is right runs.

use crate::{Array, Machine, WORDS, Watchdog};
use std::sync::Arc;
use weft_cuda::driver::Dimensions;
use weft_cuda::simulated::Settings;
use weft_cuda::{BufferAccess, CudaError, Kernel, Label, Launch, Parameter};
use weft_engine::{AccessKind, Wait};

const DIMENSIONS: Dimensions = Dimensions { grid: [1; 3], block: [32, 1, 1], shared_memory: 0 };

fn kernel(machine: &Machine) -> Kernel {
    // SAFETY: the simulated driver takes any image.
    let module = unsafe { machine.device(0).load_module(b"image") }.expect("a module");
    module.kernel("axpy").expect("a kernel")
}

fn begun(kernel: &Kernel, dimensions: Dimensions) -> Result<Launch, CudaError> {
    let parameters = [Parameter::Pointer, Parameter::Pointer, Parameter::Scalar(8), Parameter::Scalar(4)];
    let plan = kernel.plan(&parameters)?;
    // SAFETY: what is launched here does what its arguments say.
    unsafe { Launch::new(kernel, &plan, dimensions, Label::from("axpy")) }
}

fn message(outcome: Result<Launch, CudaError>) -> String {
    outcome.expect_err("a mistake").to_string()
}

#[test]
fn dimensions_are_checked() {
    let machine = Machine::new(Settings::default(), 1);
    let kernel = kernel(&machine);
    let rest = "all counts are at least 1, and a block has 1024 threads at most";
    for (grid, block) in [([0, 1, 1], [1; 3]), ([1; 3], [0, 1, 1]), ([1; 3], [1024, 2, 1])] {
        let told = message(begun(&kernel, Dimensions { grid, block, shared_memory: 0 }));
        let [grid, block] = [grid, block].map(|[x, y, z]| format!("({x}, {y}, {z})"));
        assert_eq!(told, format!("kernel 'axpy' cannot be launched with grid {grid} and block {block}: {rest}"));
    }
    assert!(begun(&kernel, Dimensions { block: [1024, 1, 1], shared_memory: 100 << 10, ..DIMENSIONS }).is_ok());
    let told = message(begun(&kernel, Dimensions { shared_memory: 1 << 20, ..DIMENSIONS }));
    let wish = "1048576 bytes of dynamic shared memory for kernel 'axpy'";
    assert_eq!(told, format!("{wish}: cuFuncSetAttribute answered CUDA_ERROR_INVALID_VALUE (1)"));
}

#[test]
fn arguments_are_checked() {
    let machine = Machine::new(Settings::default(), 1);
    let (kernel, Array { buffer, .. }) = (kernel(&machine), machine.array(0, WORDS));
    let one = || begun(&kernel, DIMENSIONS).and_then(|launch| launch.buffer(&buffer, 0, AccessKind::Mutate));
    let two = || one().and_then(|launch| launch.buffer(&buffer, 8, AccessKind::Read));
    let all = || two().and_then(|launch| launch.scalar(&[0; 8])).and_then(|launch| launch.scalar(&[0; 4]));
    assert!(all().and_then(|launch| launch.check()).is_ok());

    let told = message(one().and_then(|launch| launch.scalar(&[0; 8])));
    assert_eq!(told, "argument 1 of kernel 'axpy' is a value of 8 bytes, and a buffer is expected");
    let told = message(two().and_then(|launch| launch.buffer(&buffer, 0, AccessKind::Read)));
    assert_eq!(told, "argument 2 of kernel 'axpy' is a buffer, and a value of 8 bytes is expected");
    let told = message(two().and_then(|launch| launch.scalar(&[0; 4])));
    assert_eq!(told, "argument 2 of kernel 'axpy' is a value of 4 bytes, and a value of 8 bytes is expected");
    let told = message(all().and_then(|launch| launch.scalar(&[0; 4])));
    assert_eq!(told, "argument 4 of kernel 'axpy' is a value of 4 bytes, and none is expected");
    let told = message(one().and_then(|launch| launch.buffer(&buffer, 513, AccessKind::Read)));
    assert_eq!(told, "argument 1 of kernel 'axpy' begins at byte 513 of a buffer of 512 bytes");
    let told = two().and_then(|launch| launch.check()).expect_err("too few").to_string();
    assert_eq!(told, "kernel 'axpy' was given 2 arguments, and takes 4");
    let told = two().and_then(|launch| launch.issue().map(drop)).expect_err("too few").to_string();
    assert_eq!(told, "kernel 'axpy' was given 2 arguments, and takes 4");
    let told = kernel.plan(&[Parameter::Scalar(4000), Parameter::Scalar(100)]).expect_err("too many").to_string();
    assert_eq!(told, "kernel 'axpy' was given 4100 bytes of parameters, and can be given 4096");
}

#[test]
fn accesses_that_no_argument_names_come_at_any_time() {
    let machine = Machine::new(Settings::default(), 1);
    let (out, x, beside) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(0, WORDS));
    let launch = begun(&kernel(&machine), DIMENSIONS)
        .map(|launch| launch.access(BufferAccess::read(&beside.buffer)))
        .and_then(|launch| launch.buffer(&out.buffer, 0, AccessKind::Mutate))
        .map(|launch| launch.access(BufferAccess::mutate(&beside.buffer)))
        .and_then(|launch| launch.buffer(&x.buffer, 0, AccessKind::Read))
        .expect("fitting arguments");
    let order: Vec<_> = launch.accesses().iter().map(|access| (Arc::as_ptr(&access.buffer), access.kind)).collect();
    let [out, x, beside] = [&out, &x, &beside].map(|array| Arc::as_ptr(&array.buffer));
    let unnamed = [(beside, AccessKind::Read), (beside, AccessKind::Mutate)];
    assert_eq!(
        order,
        [[(out, AccessKind::Mutate), (x, AccessKind::Read)], unnamed].concat(),
        "the arguments' own first"
    );
}

#[test]
fn what_belongs_elsewhere_is_refused() {
    let machine = Machine::new(Settings { devices: 2, ..Settings::default() }, 1);
    let kernel = kernel(&machine);
    let there = machine.array(1, WORDS);
    let told = message(begun(&kernel, DIMENSIONS).and_then(|launch| launch.buffer(&there.buffer, 0, AccessKind::Read)));
    let reason = "lies on cuda:1, and the kernel is loaded for cuda:0; copy it there first";
    assert_eq!(told, format!("argument 0 of kernel 'axpy' {reason}"));
    // SAFETY: the simulated driver takes any image.
    let module = unsafe { machine.device(0).load_module(b"image") }.expect("a module");
    let plan = module.kernel("scale").and_then(|other| other.plan(&[])).expect("a plan");
    // SAFETY: it is refused.
    let told = message(unsafe { Launch::new(&kernel, &plan, DIMENSIONS, Label::from("axpy")) });
    assert_eq!(told, "the plan was made for another kernel than 'axpy'");
}

#[test]
fn plans_are_made_once_for_each_signature() {
    let machine = Machine::new(Settings::default(), 1);
    let kernel = kernel(&machine);
    let (one, two) = ([Parameter::Pointer], [Parameter::Pointer, Parameter::Scalar(4)]);
    let first = kernel.plan(&one).expect("a plan");
    assert!(std::sync::Arc::ptr_eq(&first, &kernel.plan(&one).expect("a plan")));
    assert!(!std::sync::Arc::ptr_eq(&first, &kernel.plan(&two).expect("a plan")));
}

#[test]
fn names_and_devices_that_are_not_there_are_told() {
    let machine = Machine::new(Settings::default(), 1);
    let device = machine.device(0);
    // SAFETY: the simulated driver takes any image.
    let module = unsafe { device.load_module(b"image") }.expect("a module");
    let told = module.kernel("none").expect_err("there is none").to_string();
    assert_eq!(told, "looking for kernel 'none': cuModuleGetFunction answered CUDA_ERROR_NOT_FOUND (500)");
    let told = module.kernel("no\0ne").expect_err("no name").to_string();
    assert_eq!(told, "'no\\x00ne' is no name of a kernel: it has a zero byte");
    let told = machine.cuda.device(3).expect_err("there is one").to_string();
    assert_eq!(told, "there is no device cuda:3; there are 1");
}

/// Views: a buffer from some byte on, and the same buffer twice.
#[test]
fn a_buffer_may_be_given_twice_and_from_some_byte_on() {
    let _watchdog = Watchdog::new("a buffer may be given twice and from some byte on");
    let machine = Machine::new(Settings::default(), 1);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 1);
    let half = u32::try_from(WORDS / 2).expect("few words");
    let launch = begun(&kernel(&machine), DIMENSIONS)
        .and_then(|launch| launch.buffer(&x.buffer, WORDS * 4, AccessKind::Mutate))
        .and_then(|launch| launch.buffer(&x.buffer, 0, AccessKind::Read))
        .and_then(|launch| launch.scalar(&5_u64.to_ne_bytes()))
        .and_then(|launch| launch.scalar(&half.to_ne_bytes()))
        .expect("fitting arguments");
    machine.engine.op_of(launch).mutate(&x.variable).push().expect("an open engine");
    let value = machine.value(&x);
    assert_eq!(value[..WORDS / 2], [0x1_0000_0001; WORDS / 2]);
    assert_eq!(value[WORDS / 2..], [0x6_0000_0006; WORDS / 2]);
    machine.check();
}

#[test]
fn urgent_launches_and_streams_of_ones_own() {
    let _watchdog = Watchdog::new("urgent launches and streams of one's own");
    let machine = Machine::new(Settings::default(), 1);
    let (x, y, z) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let stream = machine.device(0).new_stream().expect("a stream");
    let own = machine.prepared("scale", &y, &x, 2).stream(Some(stream.clone())).issue().expect("it is issued");
    assert_eq!(own.stream().number(), stream.number());
    let urgent = machine.prepared("scale", &z, &x, 3).priority(1).issue().expect("it is issued");
    assert_ne!(urgent.stream().number(), stream.number());
    assert_eq!(machine.value(&y), vec![0x2_0000_0002; WORDS]);
    assert_eq!(machine.value(&z), vec![0x3_0000_0003; WORDS]);
    machine.check();
}

#[test]
fn launches_back_to_back_are_one_op_on_one_stream() {
    let _watchdog = Watchdog::new("launches back to back are one op on one stream");
    let machine = Machine::new(Settings::default(), 1);
    let (x, y) = (machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 1);
    machine.fill(&y, 0);
    machine.engine.wait_for_all().expect("no op fails");
    let launch = machine.prepared("axpy", &y, &x, 2);
    let took = launch.back_to_back(5, &mut Wait::default()).expect("it is issued");
    assert!(took.issued <= took.completed);
    assert!(y.buffer.writer().expect("it was issued").is_done().expect("no fault"));
    assert_eq!(machine.value(&y), [0xA_0000_000A; WORDS]);
    machine.check();
}
