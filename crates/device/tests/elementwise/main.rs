//! What a push of an element-wise loop needs next, for operands of any layout; and that what it launches computes.

#![allow(clippy::cast_ptr_alignment)] // memory of arrays is aligned to more than eight bytes

#[path = "../../../engine/tests/watchdog/mod.rs"]
mod watchdog;

use std::sync::Arc;
use watchdog::Watchdog;
use weft_array::{Array, Call, DType, Layout, Operand, Scalar};
use weft_cuda::simulated::{Kernel, KernelCall, Settings, SimulatedDriver};
use weft_cuda::{Cuda, Device};
use weft_device::{ElementwiseError, Loop, Next, Noted, copy, fresh, launch};
use weft_engine::{Engine, PushOptions, Wait};

/// Elements of an array.
const WORDS: usize = 12;
/// What two operands and one result are called.
const WORD: DType = DType::UInt64;

/// `out[i] = x[i] + y[i]`, over arrays in rows.
fn add(call: &mut KernelCall<'_>) {
    let (count, out, x, y) = (call.count(0), call.parameter(1), call.parameter(2), call.parameter(3));
    let (x, y) = (call.read_words(x, count), call.read_words(y, count));
    call.write_words(out, &x.iter().zip(y).map(|(x, y)| x + y).collect::<Vec<u64>>());
}

struct Machine {
    engine: Engine,
    devices: Vec<Device>,
    driver: SimulatedDriver,
    _cuda: Cuda,
}

impl Machine {
    fn new() -> Self {
        let driver = SimulatedDriver::new(Settings { devices: 2, seed: 1, ..Settings::default() });
        driver.add_kernel(Kernel::new("add", &[8, 8, 8, 8], add));
        let cuda = Cuda::with_driver(Arc::new(driver.clone()));
        let devices = (0..2).map(|index| cuda.device(index).expect("a device")).collect();
        Self { engine: Engine::new(weft_engine::Settings::default()).expect("an engine"), devices, driver, _cuda: cuda }
    }

    fn host(&self) -> Array {
        Array::empty(&self.engine, &[WORDS], WORD).expect("a small array")
    }

    fn array(&self, shape: &[usize]) -> Array {
        fresh(&self.engine, &self.devices[0], shape, WORD).expect("a small array")
    }

    fn numbered(&self, from: usize) -> Array {
        let (host, array) = (self.host(), self.array(&[WORDS]));
        let start = host.buffer().start().expect("memory").cast::<u64>();
        // SAFETY: nobody else knows the array.
        (0..WORDS).for_each(|at| unsafe { start.add(at).write((from + at) as u64) });
        assert!(copy(&self.engine, &array, &host, &Noted::default()).is_ok());
        array
    }

    fn values(&self, array: &Array) -> Vec<u64> {
        let host = self.host();
        assert!(copy(&self.engine, &host, array, &Noted::default()).is_ok());
        host.wait_to_read(&mut Wait::default()).expect("no failure");
        let start = host.buffer().start().expect("memory").cast::<u64>();
        // SAFETY: the array was waited for, and nothing is pushed on it meanwhile.
        (0..WORDS).map(|at| unsafe { start.add(at).read() }).collect()
    }
}

fn adds() -> Loop {
    Loop::new("add", &[WORD, WORD], &[WORD]).ok().expect("two operands")
}

/// Of the same buffer.
fn view(of: &Array, shape: &[usize], strides: &[isize], offset: usize) -> Array {
    let layout = Layout { shape: shape.iter().copied().collect(), strides: strides.iter().copied().collect(), offset };
    Array::on(Arc::clone(of.buffer()), layout, of.dtype()).expect("inside")
}

/// What is next, in a word; for a kernel, whether it is strided, and its numbers.
fn next(of: &Loop, out: &Array, inputs: [Operand<'_>; 2]) -> String {
    match of.prepare(&[out], &inputs) {
        Ok(Next::Nothing) => "nothing".to_owned(),
        Ok(Next::Copy(at)) => format!("copy {at}"),
        Ok(Next::Load(wanted)) => format!("load {} {}", wanted.variant().is_strided(), wanted.variant().scalars()),
        Ok(Next::Launch(_)) => "launch".to_owned(),
        Err(ElementwiseError::Value(message) | ElementwiseError::Type(message)) => message,
        Err(ElementwiseError::Array(error)) => error.to_string(),
        Err(ElementwiseError::Cuda(error)) => error.to_string(),
    }
}

#[test]
fn a_kernel_is_loaded_once_and_computes() {
    let _watchdog = Watchdog::new("a kernel is loaded once and computes");
    let (machine, add) = (Machine::new(), adds());
    let (x, y, out) = (machine.numbered(0), machine.numbered(100), machine.array(&[WORDS]));
    let (outputs, inputs) = ([&out], [Operand::Array(&x), Operand::Array(&y)]);
    assert!(add.known(&outputs, &inputs).is_none());
    let Ok(Next::Load(wanted)) = add.prepare(&outputs, &inputs) else { panic!("it was not loaded") };
    // SAFETY: the simulated driver takes any image, and its kernel adds.
    let ready = unsafe { wanted.load(2, "add", b"image") }.expect("a kernel");
    assert!(ready.is_in_rows());
    let made = ready.launch().expect("fitting arguments");
    // SAFETY: it was made for these arrays.
    unsafe { launch(made, &Call::anywhere(&machine.engine, &ready.arrays(), PushOptions::default()), true) }
        .expect("a launch");
    assert_eq!(machine.values(&out), (0..WORDS as u64).map(|at| 100 + 2 * at).collect::<Vec<_>>());
    assert!(add.known(&outputs, &inputs).is_some());
    assert_eq!(next(&add, &out, inputs), "launch");
    // In place each element is read where it is written.
    assert!(add.known(&[&x], &inputs).is_some());
    machine.engine.wait_for_all().expect("no op fails");
}

/// `c = a + b`, over and over on one stream: the driver is asked for launches, and for an event for sixteen of them.
#[test]
fn small_launches_have_events_in_common() {
    let _watchdog = Watchdog::new("small launches have events in common");
    let (machine, add) = (Machine::new(), adds());
    let (x, mut last) = (machine.numbered(1), machine.numbered(0));
    let mut step = || {
        let out = machine.array(&[WORDS]);
        let (outputs, inputs) = ([&out], [Operand::Array(&last), Operand::Array(&x)]);
        let ready = match add.prepare(&outputs, &inputs) {
            Ok(Next::Launch(ready)) => ready,
            // SAFETY: as above.
            Ok(Next::Load(wanted)) => unsafe { wanted.load(2, "add", b"image") }.expect("a kernel"),
            _ => panic!("nothing to launch"),
        };
        let made = ready.launch().expect("fitting arguments");
        // SAFETY: it was made for these arrays.
        unsafe { launch(made, &Call::anywhere(&machine.engine, &ready.arrays(), PushOptions::default()), true) }
            .expect("a launch");
        machine.engine.wait_for_all().expect("no op fails");
        last = out;
    };
    (0..32).for_each(|_| step());
    let calls = || ["cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent"].map(|name| machine.driver.calls(name));
    let (before, allocations) = (calls(), machine.driver.allocations());
    (0..64).for_each(|_| step());
    let after = calls();
    assert_eq!([0, 1, 2].map(|at| after[at] - before[at]), [64, 4, 0]);
    assert_eq!(machine.driver.allocations(), allocations);
    let sums = (0..WORDS as u64).map(|at| at + 96 * (at + 1)).collect::<Vec<_>>();
    assert_eq!(machine.values(&last), sums);
}

#[test]
fn layouts_and_numbers_choose_the_kernel() {
    let (machine, add) = (Machine::new(), adds());
    let (x, y) = (machine.array(&[3, 4]), machine.array(&[4, 3]));
    let (out, one) = (machine.array(&[3, 4]), Operand::Scalar(Scalar::Int(1), WORD));
    let turned = view(&y, &[3, 4], &[8, 24], 0);
    assert_eq!(next(&add, &out, [Operand::Array(&x), one]), "load false 2");
    assert_eq!(next(&add, &out, [one, one]), "load false 3");
    assert_eq!(next(&add, &out, [Operand::Array(&x), Operand::Array(&turned)]), "load true 0");
    let row = machine.array(&[4]);
    assert_eq!(next(&add, &out, [one, Operand::Array(&row)]), "load true 1");
    let empty = machine.array(&[0, 4]);
    assert_eq!(next(&add, &empty, [Operand::Array(&empty), one]), "nothing");
}

#[test]
fn what_shows_a_result_elsewhere_is_copied_first() {
    let (machine, add) = (Machine::new(), adds());
    let x = machine.array(&[WORDS]);
    let (low, high) = (view(&x, &[8], &[8], 0), view(&x, &[8], &[8], 16));
    let backwards = view(&x, &[WORDS], &[-8], 8 * (WORDS - 1));
    let one = Operand::Scalar(Scalar::Int(1), WORD);
    assert_eq!(next(&add, &low, [one, Operand::Array(&high)]), "copy 1");
    assert_eq!(next(&add, &x, [Operand::Array(&backwards), Operand::Array(&x)]), "copy 0");
    assert_eq!(next(&add, &low, [Operand::Array(&low), one]), "load false 2");
    let far = view(&x, &[4], &[8], 64);
    assert_eq!(next(&add, &view(&x, &[4], &[8], 0), [Operand::Array(&far), one]), "load false 2");
}

#[test]
fn operands_that_do_not_suit_are_refused() {
    let (machine, add) = (Machine::new(), adds());
    let (x, host) = (machine.array(&[WORDS]), machine.host());
    let there = fresh(&machine.engine, &machine.devices[1], &[WORDS], WORD).expect("a small array");
    let small = fresh(&machine.engine, &machine.devices[0], &[WORDS], DType::Int8).expect("a small array");
    let one = Operand::Scalar(Scalar::Int(1), WORD);
    let refused = |out: &Array, x: &Array, what: &str| {
        let message = next(&add, out, [Operand::Array(x), one]);
        assert!(message.contains(what), "{message}");
    };
    refused(&x, &host, "is on the CPU, and the op runs on a CUDA device");
    refused(&host, &x, "is on the CPU, and the op runs on a CUDA device");
    refused(&x, &there, "the operands are on cuda:0 and on cuda:1");
    refused(&x, &small, "an operand is int8, not uint64");
    refused(&view(&x, &[WORDS], &[0], 0), &x, "no broadcast views");
    refused(&x, &machine.array(&[5]), "could not be broadcast together");
    assert!(matches!(add.prepare(&[&x], &[one]), Err(ElementwiseError::Value(_))));
    assert!(matches!(Loop::new("many", &[WORD; 5], &[WORD]), Err(ElementwiseError::Value(_))));
}
