//! Captures of other libraries: nothing of ours spoils one, and what one refuses condemns nothing.

use crate::{Array, Machine, WORDS, Watchdog};
use std::time::Duration;
use weft_cuda::driver::{Devices, Launches, StreamHandle, Streams};
use weft_cuda::simulated::{FaultKind, Settings};
use weft_cuda::{BufferAccess, CudaError, Device, Label, Request};
use weft_engine::Wait;

/// `CUDA_ERROR_CAPTURED_EVENT`.
const CAPTURED: u32 = 907;

fn soon() -> Wait<'static> {
    Wait { timeout: Some(Duration::from_secs(20)), ..Wait::default() }
}

#[test]
fn waits_and_copies_spoil_no_capture() {
    let _watchdog = Watchdog::new("waits and copies spoil no capture");
    for seed in 0..10 {
        let machine = Machine::new(Settings { seed, ..Settings::default() }, 2);
        let (x, y) = (machine.array(0, WORDS), machine.array(0, WORDS));
        let host = machine.host(vec![0; WORDS]);
        machine.device(0); // its streams are there
        machine.driver.begin_capture_elsewhere();
        machine.fill(&x, 1);
        for number in 0..200 {
            machine.launch("scale", &y, &x, number + 1);
        }
        machine.copy_out(&host, &y);
        assert_eq!(machine.read(&host), vec![200 * 0x1_0000_0001; WORDS]);
        y.buffer.writer().expect("it was issued").wait(&mut soon()).expect("it ends");
        assert!(machine.driver.end_capture_elsewhere(), "a call of ours has spoiled it");
        machine.check();
    }
}

/// What a capture forbids is asked again; the device works on.
#[test]
fn a_query_that_a_capture_refuses_condemns_nothing() {
    let _watchdog = Watchdog::new("a query that a capture refuses condemns nothing");
    for code in (900..=908).filter(|code| *code != CAPTURED) {
        let machine = Machine::new(Settings::default(), 1);
        let x = machine.array(0, WORDS);
        machine.fill(&x, 1);
        machine.engine.wait_for_all().expect("no op fails");
        let fence = x.buffer.writer().expect("it was issued");
        machine.driver.order_fault(FaultKind::Query, 0, code);
        assert!(!fence.is_done().expect("nothing is known yet"), "{code}");
        fence.wait(&mut soon()).expect("it ends");
        assert_eq!(machine.value(&x), vec![0x1_0000_0001; WORDS]);
        machine.check();
    }
}

/// An event that was captured, by a capture that began at the wrong moment, never happens: who waits for it is told.
#[test]
fn nobody_waits_for_an_event_that_was_captured() {
    let _watchdog = Watchdog::new("nobody waits for an event that was captured");
    let machine = Machine::new(Settings::default(), 1);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let fence = x.buffer.writer().expect("it was issued");
    machine.driver.order_fault(FaultKind::Query, 0, CAPTURED);
    let refused = fence.wait(&mut soon()).expect_err("it is told");
    assert!(matches!(refused, CudaError::Refused { .. }), "{refused}");
    assert!(machine.device(0).fault().is_none());
    machine.check();
}

/// A code that tells of no fault fails who asked, once.
#[test]
fn a_query_that_is_refused_may_be_asked_again() {
    let _watchdog = Watchdog::new("a query that is refused may be asked again");
    let machine = Machine::new(Settings::default(), 1);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let fence = x.buffer.writer().expect("it was issued");
    machine.driver.order_fault(FaultKind::Query, 0, 400);
    let refused = fence.is_done().expect_err("it was refused");
    assert!(matches!(refused, CudaError::Refused { .. }), "{refused}");
    fence.wait(&mut soon()).expect("it ends");
    assert!(machine.device(0).fault().is_none());
    machine.check();
}

#[test]
fn faults_that_stay_condemn_the_device() {
    let _watchdog = Watchdog::new("faults that stay condemn the device");
    for code in [700, 709, 719, 999] {
        let machine = Machine::new(Settings::default(), 1);
        let x = machine.array(0, WORDS);
        machine.fill(&x, 1);
        machine.engine.wait_for_all().expect("no op fails");
        let fence = x.buffer.writer().expect("it was issued");
        machine.driver.order_fault(FaultKind::Query, 0, code);
        assert!(matches!(fence.is_done(), Err(CudaError::Fault { .. })), "{code}");
        assert!(machine.device(0).fault().is_some(), "{code}");
    }
}

/// Waits until nothing is in use any more.
fn all_freed(device: &Device) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while device.memory_stats().expect("figures").in_use > 0 {
        assert!(std::time::Instant::now() < deadline, "a free was never issued");
        std::thread::yield_now();
    }
}

/// What was lent is freed behind the default stream, on which nothing may be put while a capture goes on.
#[test]
fn what_was_lent_is_freed_when_a_capture_is_over() {
    let _watchdog = Watchdog::new("what was lent is freed when a capture is over");
    let machine = Machine::new(Settings::default(), 1);
    let device = machine.device(0);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    x.buffer.lend();
    machine.driver.begin_capture_elsewhere();
    drop(x);
    // A free behind it is not held up.
    let other = machine.array(0, WORDS);
    machine.fill(&other, 1);
    machine.engine.wait_for_all().expect("no op fails");
    drop(other);
    device.synchronize(&mut soon()).expect("it ends");
    assert_eq!(device.memory_stats().expect("figures").in_use, WORDS as u64 * 8, "it is kept");
    assert!(machine.driver.end_capture_elsewhere(), "the free has spoiled it");
    all_freed(&device);
    machine.check();
}

#[test]
fn a_free_that_is_refused_is_told() {
    let _watchdog = Watchdog::new("a free that is refused is told");
    let machine = Machine::new(Settings::default(), 1);
    let device = machine.device(0);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    assert_eq!(device.memory_stats().expect("figures").lost, 0);
    x.buffer.lend(); // what was shown to others is freed there and then
    machine.driver.order_fault(FaultKind::Free, 0, 1);
    drop(x);
    all_freed(&device);
    assert_eq!(device.memory_stats().expect("figures").lost, WORDS as u64 * 8);
    drop(machine.driver.take_hazards());
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("so does what it panics with");
    }
}

/// What the poller is given may panic: what comes after it is done all the same.
#[test]
fn a_panic_on_the_poller_s_thread_ends_nothing_else() {
    let _watchdog = Watchdog::new("a panic on the poller's thread ends nothing else");
    let machine = Machine::new(Settings::default(), 1);
    let (x, host) = (machine.array(0, WORDS), machine.host(vec![0; WORDS]));
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let fence = x.buffer.writer().expect("it was issued");
    fence.when_done(|_| std::panic::panic_any(Bomb));
    machine.device(0).synchronize(&mut soon()).expect("it ends");
    machine.copy_out(&host, &x);
    assert_eq!(machine.read(&host), vec![0x1_0000_0001; WORDS]);
    machine.check();
}

/// Eight streams are what a device serves at a time, unless it is told otherwise.
#[test]
fn streams_that_nobody_wants_are_not_made() {
    let _watchdog = Watchdog::new("streams that nobody wants are not made");
    let machine = Machine::new(Settings { devices: 2, ..Settings::default() }, 1);
    let (x, there) = (machine.array(0, WORDS), machine.array(1, WORDS));
    machine.fill(&x, 1);
    machine.fill(&there, 2);
    machine.engine.wait_for_all().expect("no op fails");
    assert_eq!(machine.driver.holdings().streams, 2 * 6);
    let label = Label::from("import");
    // SAFETY: that stream is in every context.
    unsafe { machine.device(0).fence_behind(weft_cuda::DEFAULT_STREAM, &label) }.expect("a fence");
    assert_eq!(machine.driver.holdings().streams, 2 * 6 + 1);
    machine.check();
}

/// A stream that another library has made.
fn stream_of_others(machine: &Machine) -> StreamHandle {
    let context = machine.driver.retain_context(0).expect("a context");
    // SAFETY: the context is the driver's, and current.
    unsafe {
        machine.driver.set_current_context(context).expect("it is current");
        machine.driver.create_stream(0).expect("a stream")
    }
}

/// What is recorded on a stream that its owner captures never happens, and what waits there ends the capture: so nothing is
/// put on it, and who asks is told.
#[test]
fn a_stream_that_its_owner_captures_is_left_alone() {
    let _watchdog = Watchdog::new("a stream that its owner captures is left alone");
    let machine = Machine::new(Settings::default(), 1);
    let device = machine.device(0);
    let handle = stream_of_others(&machine);
    // SAFETY: the driver's stream lives as long as the driver.
    let adopted = unsafe { device.adopt_stream(handle, Box::new(())) };
    let (label, x, own) = (Label::from("op"), machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&own, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let fill = |array: &Array| {
        let accesses = [BufferAccess::overwrite(&array.buffer)];
        let request = Request { stream: Some(&adopted), ..Request::new(&label, &accesses) };
        device.begin(&request)?.finish()
    };
    let used = machine.array(0, WORDS);
    fill(&used).expect("it may be used before");
    let known = machine.driver.allocations();

    // SAFETY: nobody else uses the stream.
    unsafe { machine.driver.begin_capture(handle) }.expect("it begins");
    // SAFETY: the stream is of this device.
    let behind = || unsafe { device.fence_behind(handle, &label) };
    // SAFETY: as above.
    let lead = || unsafe { own.buffer.writer().expect("it was issued").lead(handle) };
    for refused in [fill(&x).err(), fill(&used).err(), behind().err(), adopted.fence(&label).err(), lead().err()] {
        assert!(matches!(refused, Some(CudaError::Captured { .. })), "{refused:?}");
    }
    assert_eq!(machine.driver.allocations(), known);
    drop((used, own)); // whose last op was there
    device.synchronize(&mut soon()).expect("it ends");
    assert!(device.memory_stats().expect("figures").in_use > 0, "its free waits for the end of the capture");
    // SAFETY: as above.
    unsafe { machine.driver.end_capture(handle) }.expect("it ends").expect("nothing has spoiled it");

    all_freed(&device);
    fill(&x).expect("it may be used again");
    behind().expect("a fence").wait(&mut soon()).expect("it ends");
    machine.check();
}

/// Its events go when it does, whatever is on it.
#[test]
fn a_stream_may_be_let_go_of_while_its_owner_captures() {
    let _watchdog = Watchdog::new("a stream may be let go of while its owner captures");
    let machine = Machine::new(Settings::default(), 1);
    let (device, handle) = (machine.device(0), stream_of_others(&machine));
    // SAFETY: the driver's stream lives as long as the driver.
    let adopted = unsafe { device.adopt_stream(handle, Box::new(())) };
    adopted.fence(&Label::from("op")).expect("a fence").wait(&mut soon()).expect("it ends");
    // SAFETY: nobody else uses the stream.
    unsafe { machine.driver.begin_capture(handle) }.expect("it begins");
    drop(adopted);
    // SAFETY: as above.
    unsafe { machine.driver.end_capture(handle) }.expect("it ends").expect("nothing has spoiled it");
    machine.check();
}
