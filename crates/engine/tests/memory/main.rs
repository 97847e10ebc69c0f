//! What pending ops cost, and whether it comes back.
//!
//! A program of its own: what other tests leave in the allocator would blur the figures.

#![cfg(all(target_os = "linux", not(sanitized)))] // the notes of a sanitizer would count as the ops'

#[path = "../gate/mod.rs"]
mod gate;
#[path = "../watchdog/mod.rs"]
mod watchdog;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use watchdog::Watchdog;
use weft_engine::{Engine, OpContext, Settings, Variable};

const MILLION: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// Memory is measured for the whole process, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn engine() -> Engine {
    let max_pending_ops = 2 * MILLION;
    Engine::new(Settings { workers: Some(2), max_pending_ops, ..Settings::default() }).expect("valid settings")
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
    let kib: u64 = line.trim().strip_suffix(" kB").and_then(|kib| kib.parse().ok()).expect("a number of kilobytes");
    kib * 1024
}

/// Pushes ops on three variables that wait for the gate on the first.
fn push(engine: &Engine, variables: &[Variable; 3], ops: u64) {
    for op in 0..ops {
        let words = [op; 2]; // as much as a closure may have in place, beside the line of its push
        let payload = move |_: &mut OpContext<'_>| {
            std::hint::black_box(words);
            Ok(())
        };
        let [target, left, right] = variables;
        engine.op(payload).read(left).read(right).mutate(target).push().expect("an open engine");
    }
}

#[test]
fn pending_ops_are_small() {
    let _alone = alone();
    let _watchdog = Watchdog::new("pending ops are small");
    let engine = engine();
    let variables = [(); 3].map(|()| engine.new_variable(None));
    let gate = gate::shut(&engine, &variables[0]);
    push(&engine, &variables, 10_000); // the ring, the first chunks
    let before = resident();
    push(&engine, &variables, MILLION / 2);
    let each = (resident() - before) / (MILLION / 2);
    assert!(each <= 256, "{each} bytes for each pending op");
    gate.complete(Ok(())).expect("a token used once");
    engine.close().expect("no op fails");
}

#[test]
fn drained_ops_leave_nothing() {
    let _alone = alone();
    let _watchdog = Watchdog::new("drained ops leave nothing");
    let engine = engine();
    let variables = [(); 3].map(|()| engine.new_variable(None));
    let round = || {
        let gate = gate::shut(&engine, &variables[0]);
        push(&engine, &variables, MILLION / 4);
        let full = resident();
        gate.complete(Ok(())).expect("a token used once");
        engine.wait_for_all().expect("no op fails");
        full
    };
    // Chunks of cells find their places in what the allocator has in the first rounds; which thread's part of it they come
    // from goes on to differ, so a round may take more than the others, but not all of them.
    let first = (0..4).map(|_| round()).max().unwrap_or_default();
    let last = (0..6).map(|_| round()).min().unwrap_or_default();
    assert!(last < first + 16 * MIB, "from {first} bytes with pending ops to {last}");
    engine.close().expect("no op fails");
}

#[test]
fn a_steady_flow_does_not_grow() {
    let _alone = alone();
    let _watchdog = Watchdog::new("a steady flow does not grow");
    let engine = engine();
    let round = || {
        for _ in 0..MILLION / 100 {
            let variable = engine.new_variable(Some("a name makes the node larger"));
            let payload = |_: &mut OpContext<'_>| Ok(());
            for _ in 0..10 {
                engine.op(payload).name("a name is kept with the op").mutate(&variable).push().expect("an open engine");
            }
            engine.delete_variable(&variable, payload, None).expect("it is deleted once");
        }
        engine.wait_for_all().expect("no op fails");
        resident()
    };
    let first = (0..2).map(|_| round()).max().unwrap_or_default();
    let last = (0..8).map(|_| round()).min().unwrap_or_default();
    assert!(last < first + 8 * MIB, "from {first} bytes to {last}");
    engine.close().expect("no op fails");
    assert_eq!(engine.stats().variables, 0);
}

#[test]
fn engines_come_and_go() {
    let _alone = alone();
    let _watchdog = Watchdog::new("engines come and go");
    let round = |close: bool| {
        for _ in 0..50 {
            let engine = Engine::new(Settings { workers: Some(1), ..Settings::default() }).expect("valid settings");
            let held = Arc::new(());
            for index in 0..200 {
                let variable = engine.new_variable(Some("a name makes the node larger"));
                let held = Arc::clone(&held);
                let payload = move |_: &mut OpContext<'_>| {
                    drop(held);
                    Ok(())
                };
                // Some variables are never used.
                if index % 2 == 0 {
                    engine.op(payload).mutate(&variable).push().expect("an open engine");
                }
            }
            if close {
                engine.close().expect("no op fails");
                assert_eq!(Arc::strong_count(&held), 1);
            }
        }
        resident()
    };
    let first = round(true).max(round(false)).max(round(true));
    let last = (0..6).map(|at| round(at % 2 == 0)).min().unwrap_or_default();
    assert!(last < first + 4 * MIB, "from {first} bytes to {last}");
}
