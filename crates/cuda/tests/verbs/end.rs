//! The ends: a poller that is shut down, a process that forks.

#![cfg(unix)]

use crate::{Machine, WORDS, Watchdog};
use std::time::Duration;
use weft_cuda::simulated::Settings;
use weft_cuda::{CudaError, Launch, fork};
use weft_engine::Wait;

#[test]
fn the_poller_ends_when_it_has_nothing_to_do() {
    let _watchdog = Watchdog::new("the poller ends when it has nothing to do");
    let machine = Machine::new(Settings::default(), 1);
    assert!(machine.cuda.shut_down(Duration::ZERO), "it has not begun");
    let (x, host) = (machine.array(0, WORDS), machine.host(vec![0; WORDS]));
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let stream = x.buffer.writer().expect("it was issued").stream().handle();
    machine.driver.hold(stream, true);
    machine.copy_out(&host, &x);
    while host.variable.version() < 2 || machine.engine.stats().pending > 1 {
        std::thread::yield_now();
    }
    assert!(!machine.cuda.shut_down(Duration::from_millis(20)), "a copy is under way");
    machine.driver.hold(stream, false);
    assert!(machine.cuda.shut_down(Duration::from_secs(20)));
    assert_eq!(machine.read(&host), vec![0x1_0000_0001; WORDS]);
    assert_eq!(machine.value(&x), vec![0x1_0000_0001; WORDS], "it starts anew");
    machine.check();
}

/// Whoever waits by other means than a thread is told, in the order of the stream.
#[test]
fn what_is_to_be_done_after_a_fence_is_done() {
    let _watchdog = Watchdog::new("what is to be done after a fence is done");
    let machine = Machine::new(Settings::default(), 1);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 1);
    machine.engine.wait_for_all().expect("no op fails");
    let (sender, receiver) = std::sync::mpsc::channel();
    let first = x.buffer.writer().expect("it was issued");
    let stream = first.stream().clone();
    machine.driver.hold(stream.handle(), true);
    let second = stream.fence(&"second".into()).expect("a fence");
    for (number, fence) in [(2, second), (1, first)] {
        let sender = sender.clone();
        fence.when_done(move |outcome| sender.send((number, outcome.is_ok())).expect("the test waits for it"));
    }
    assert!(receiver.recv_timeout(Duration::from_millis(20)).is_err());
    machine.driver.hold(stream.handle(), false);
    let told: Vec<_> = (0..2).map(|_| receiver.recv().expect("it is told")).collect();
    assert_eq!(told, [(1, true), (2, true)]);
    machine.check();
}

/// Set in the process whose threads of the standard size cannot start.
const NO_THREADS: &str = "WEFT_TEST_NO_THREADS";

/// Ops end that wait for a fence, and are issued by whoever found no thread for the poller. The engine's workers have stacks of a size of
/// their own: they start.
#[test]
fn where_no_thread_can_be_had_fences_are_looked_at_all_the_same() {
    let name = "end::where_no_thread_can_be_had_fences_are_looked_at_all_the_same";
    if std::env::var_os(NO_THREADS).is_none() {
        let _watchdog = Watchdog::new("where no thread can be had");
        let test = std::env::current_exe().expect("the tests");
        let child = std::process::Command::new(test)
            .args(["--exact", name, "--nocapture"])
            .envs([(NO_THREADS, "1"), ("RUST_MIN_STACK", "1000000000000000000")])
            .output()
            .expect("it starts");
        assert!(child.status.success(), "{child:?}");
        assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"), "{child:?}");
        return;
    }
    assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "a thread of the standard size");
    let machine = Machine::new(Settings::default(), 1);
    let (x, host) = (machine.array(0, WORDS), machine.host(vec![0; WORDS]));
    for value in 1..=20 {
        machine.fill(&x, 1);
        machine.copy_out(&host, &x);
        machine.launch("scale", &x, &x, value);
    }
    machine.engine.wait_for_all().expect("no op fails");
    assert_eq!(machine.read(&host), vec![0x1_0000_0001; WORDS]);
    assert!(machine.cuda.shut_down(Duration::ZERO), "nothing is pending");
    machine.check();
}

unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn _exit(status: i32) -> !;
    unsafe fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
}

/// What a forked child that panics ends with, instead of as a test that has passed.
struct Panicked;

impl Drop for Panicked {
    fn drop(&mut self) {
        _exit(99);
    }
}

/// What a forked child finds; a number for what was not so. It must not panic: a thread that is not there may hold what a
/// message takes.
fn child(machine: Machine, launch: Launch, x: &crate::Array, fence: &weft_cuda::Fence) -> i32 {
    let refused = |error: &CudaError| matches!(error, CudaError::Forked);
    if !machine.cuda.device(0).is_err_and(|error| refused(&error)) {
        return 1;
    }
    if !fence.is_done().is_err_and(|error| refused(&error)) || fence.wait(&mut Wait::default()).is_ok() {
        return 2;
    }
    if !launch.issue().is_err_and(|error| refused(&error)) {
        return 3;
    }
    if !x.buffer.device().synchronize(&mut Wait::default()).is_err_and(|error| refused(&error)) {
        return 4;
    }
    if !weft_cuda::Cuda::open().is_err_and(|error| refused(&error)) {
        return 5;
    }
    // Nothing of this gets to the driver, or waits for a thread that is not there.
    let cuda = machine.cuda.clone();
    drop((machine, launch, cuda));
    0
}

#[test]
fn a_forked_child_is_told_and_the_parent_goes_on() {
    let _watchdog = Watchdog::new("a forked child is told");
    let machine = Machine::new(Settings::default(), 1);
    let (x, host) = (machine.array(0, WORDS), machine.host(vec![0; WORDS]));
    machine.fill(&x, 1);
    machine.launch("axpy", &x, &x, 1);
    machine.copy_out(&host, &x);
    machine.engine.wait_for_all().expect("no op fails");
    let fence = machine.device(0).new_stream().and_then(|stream| stream.fence(&"late".into())).expect("a fence");
    // There the driver loads nothing any more.
    let launch = machine.prepared("scale", &x, &x, 1);
    let (held, engines) = (fork::before(), weft_engine::fork::before());
    match fork() {
        0 => {
            // SAFETY: this is the child, and has one thread.
            unsafe { weft_engine::fork::after_in_child(engines) };
            fork::after_in_child(held);
            let _panicked = Panicked;
            _exit(child(machine, launch, &x, &fence));
        }
        process => {
            weft_engine::fork::after_in_parent(engines);
            drop(held);
            let mut status = -1;
            // SAFETY: the status has a place.
            assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
            assert_eq!(status, 0, "the child ended with {}", status >> 8);
        }
    }
    machine.launch("axpy", &x, &x, 1);
    assert_eq!(machine.value(&x), vec![0x4_0000_0004; WORDS]);
    machine.check();
}
