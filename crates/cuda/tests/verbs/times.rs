//! Times of traced ops: all that was issued has them, on the clock of the trace, and in the order of the streams.

use crate::{Machine, WORDS, Watchdog};
use std::time::Duration;
use weft_cuda::CudaError;
use weft_cuda::simulated::{FaultKind, Holdings, Settings};
use weft_engine::Wait;
use weft_engine::trace::{RecordedRun, RecordedStream, Recording, StreamKind};

fn soon() -> Wait<'static> {
    Wait { timeout: Some(Duration::from_secs(20)), ..Wait::default() }
}

fn start(machine: &Machine) {
    machine.engine.start_trace(1000).expect("no other trace");
    machine.cuda.begin_times(machine.engine.id());
}

fn join(machine: &Machine, recording: &mut Recording) {
    for stream in machine.cuda.times(machine.engine.id()) {
        let device = format!("cuda:{}", stream.device);
        let kind = if stream.name == "copy in" { StreamKind::CopyIn } else { StreamKind::Compute };
        recording.add_stream(RecordedStream { device, name: stream.name, kind }, &stream.runs);
    }
}

fn stop(machine: &Machine) -> Recording {
    let engine = machine.engine.id();
    let mut recording = machine.engine.stop_trace().expect("it is traced");
    join(machine, &mut recording);
    machine.cuda.end_times(engine);
    recording
}

/// The names of the ops that ran on a device, with the stream and the run.
fn runs(recording: &Recording) -> Vec<(String, String, RecordedRun)> {
    let stream = |run: &RecordedRun| {
        let stream = &recording.streams[usize::from(run.stream)];
        format!("{} {}", stream.device, stream.name)
    };
    let name = |run: &RecordedRun| recording.names[recording.ops[run.op].name as usize].clone();
    recording.runs.iter().map(|run| (name(run), stream(run), *run)).collect()
}

#[test]
fn every_traced_op_has_its_times() {
    let _watchdog = Watchdog::new("every traced op has its times");
    for seed in 0..20 {
        let machine = Machine::new(Settings { seed, devices: 2, ..Settings::default() }, 2);
        let (x, y, there) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(1, WORDS));
        let (from, to) = (machine.host(vec![1; 2600]), machine.host(vec![0; WORDS]));
        let large = machine.array(1, 2600);
        machine.fill(&there, 3); // before the trace
        machine.engine.wait_for_all().expect("no op fails");
        start(&machine);
        machine.fill(&x, 1);
        machine.launch("scale", &y, &x, 3);
        machine.copy(&there, &y);
        machine.copy_in(&large, &from);
        machine.copy_out(&to, &there);
        machine.engine.wait_for_all().expect("no op fails");
        machine.cuda.wait_for_times(machine.engine.id(), &mut soon()).expect("no fault");
        let recording = stop(&machine);
        let found = runs(&recording);
        let of =
            |name: &str| found.iter().find(|(known, ..)| known == name).unwrap_or_else(|| panic!("{name}: {found:?}"));
        assert_eq!(found.len(), 5, "seed {seed}: {found:?}");
        let chain = ["fill", "scale", "copy", "copy out"].map(|name| of(name).2);
        for (before, after) in chain[..2].iter().zip(&chain[1..]) {
            assert!(before.started <= before.ended && before.ended <= after.started, "seed {seed}: {found:?}");
        }
        let places = ["copy", "copy in", "copy out"].map(|name| (of(name).1.as_str(), of(name).2.bytes));
        let words = WORDS as u64 * 8;
        assert_eq!(places, [("cuda:1 peer", words), ("cuda:1 copy in", 2600 * 8), ("cuda:1 copy out", words)]);
        assert_eq!(of("scale").2.bytes, 0);
        assert!(recording.runs.iter().all(|run| run.started > 0), "seed {seed}: {found:?}");
        machine.check();
    }
}

#[test]
fn without_a_trace_nothing_is_kept() {
    let _watchdog = Watchdog::new("without a trace nothing is kept");
    let machine = Machine::new(Settings::default(), 1);
    let (x, y) = (machine.array(0, WORDS), machine.array(0, WORDS));
    let idle = |machine: &Machine| {
        machine.fill(&x, 1);
        machine.launch("scale", &y, &x, 3);
        machine.engine.wait_for_all().expect("no op fails");
        machine.driver.run_until_idle();
        machine.driver.holdings()
    };
    let before: Holdings = idle(&machine);
    assert_eq!(machine.cuda.times(machine.engine.id()), []);
    start(&machine);
    for _ in 0..300 {
        machine.launch("axpy", &y, &x, 1);
    }
    machine.engine.wait_for_all().expect("no op fails");
    machine.cuda.wait_for_times(machine.engine.id(), &mut soon()).expect("no fault");
    let recording = stop(&machine);
    assert_eq!(recording.runs.len(), 300);
    assert!(recording.runs.windows(2).all(|pair| pair[0].ended <= pair[1].started), "one stream, in order");
    let after = idle(&machine);
    assert_eq!((after.streams, machine.cuda.times(machine.engine.id()).len()), (before.streams, 0));
    start(&machine);
    assert_eq!(stop(&machine).runs, []);
    machine.check();
}

/// Times are read while a device still works, too: of what has ended.
#[test]
fn what_still_runs_has_no_times_yet() {
    let _watchdog = Watchdog::new("what still runs has no times yet");
    let machine = Machine::new(Settings::default(), 1);
    let (x, y) = (machine.array(0, WORDS), machine.array(0, WORDS));
    start(&machine);
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    machine.cuda.wait_for_times(machine.engine.id(), &mut soon()).expect("it ends");
    let stream = x.buffer.writer().expect("it was issued").stream().handle();
    machine.driver.hold(stream, true);
    machine.launch("scale", &y, &x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let mut wait = Wait { timeout: Some(Duration::from_millis(20)), ..Wait::default() };
    let waited = machine.cuda.wait_for_times(machine.engine.id(), &mut wait);
    assert!(matches!(waited, Err(CudaError::Timeout { .. })), "{waited:?}");
    let mut recording = machine.engine.read_trace().expect("it is traced");
    join(&machine, &mut recording);
    assert_eq!(recording.runs.len(), 1);
    machine.driver.hold(stream, false);
    machine.cuda.wait_for_times(machine.engine.id(), &mut soon()).expect("it ends");
    assert_eq!(stop(&machine).runs.len(), 2);
    machine.check();
}

#[test]
fn a_device_that_fails_leaves_the_times_from_before() {
    let _watchdog = Watchdog::new("a device that fails leaves the times from before");
    let machine = Machine::new(Settings { devices: 2, ..Settings::default() }, 1);
    let (x, y, there) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(1, WORDS));
    start(&machine);
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    machine.cuda.wait_for_times(machine.engine.id(), &mut soon()).expect("it ends");
    machine.driver.order_fault(FaultKind::Kernel, 0, 700);
    machine.launch("scale", &y, &x, 1);
    machine.fill(&there, 1);
    machine.engine.wait_for_all().expect("all are issued");
    machine.driver.run_until_idle();
    machine.cuda.wait_for_times(machine.engine.id(), &mut soon()).expect("it is not waited for");
    let recording = stop(&machine);
    let names: Vec<_> = runs(&recording).into_iter().map(|(name, stream, _)| (name, stream)).collect();
    let expected = [("fill", "cuda:0 compute 0"), ("fill", "cuda:1 compute 0")];
    assert_eq!(names, expected.map(|(name, stream)| (name.to_owned(), stream.to_owned())));
    machine.check();
}

/// Ops of two engines on one device are told apart.
#[test]
fn two_engines_are_traced_at_once() {
    let _watchdog = Watchdog::new("two engines are traced at the same time");
    let machine = Machine::new(Settings::default(), 1);
    let other = weft_engine::Engine::new(weft_engine::Settings::default()).expect("an engine");
    let x = machine.array(0, WORDS);
    let region = weft_cuda::Region::whole(&x.buffer);
    start(&machine);
    other.start_trace(10).expect("no other trace");
    machine.cuda.begin_times(other.id());
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let fill = move |_: &mut weft_engine::OpContext<'_>| {
        let pattern = weft_cuda::driver::Pattern::Byte(0);
        weft_cuda::fill(&weft_cuda::Label::from("theirs"), &region, pattern).map(drop).map_err(Into::into)
    };
    other.op_of(fill).name("theirs").push().expect("an open engine");
    other.wait_for_all().expect("no op fails");
    machine.driver.run_until_idle();
    let own = stop(&machine);
    assert_eq!(runs(&own).len(), 1);
    let mut recording = other.stop_trace().expect("it is traced");
    for stream in machine.cuda.times(other.id()) {
        let about = RecordedStream { device: "cuda:0".to_owned(), name: stream.name, kind: StreamKind::Compute };
        recording.add_stream(about, &stream.runs);
    }
    assert_eq!(runs(&recording).iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["theirs"]);
    machine.cuda.end_times(other.id());
    machine.check();
}
