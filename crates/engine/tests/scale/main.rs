//! A million pending ops, on little stack.

#![allow(clippy::disallowed_types)] // counts of the tests, not of the engine

#[path = "../gate/mod.rs"]
mod gate;
#[path = "../watchdog/mod.rs"]
mod watchdog;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use watchdog::Watchdog;
use weft_engine::{Cause, Engine, EngineError, OpContext, Policy, Settings};

const MILLION: u64 = 1_000_000;

/// The stack of threads that push, complete and wait: far less than a million of any frame.
const STACK: usize = 64 << 10;
/// How far apart the stacks of two ops on one thread may end.
const SPREAD: usize = 16 << 10;

fn engine(policy: Policy) -> Engine {
    let max_pending_ops = 2 * MILLION;
    Engine::new(Settings { policy, workers: Some(2), max_pending_ops, ..Settings::default() }).expect("valid settings")
}

fn on_little_stack<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(test).expect("a thread");
    thread.join().expect("the test passes")
}

/// Counts ops, and sees to it that they all start at about the same depth of their thread's stack.
#[derive(Default)]
struct Depth {
    ops: AtomicU64,
    deep: AtomicU64,
}

impl Depth {
    fn op(&self) {
        thread_local! {
            static FIRST: AtomicUsize = const { AtomicUsize::new(0) };
        }
        let here = (&raw const self).addr();
        let first = FIRST.with(|first| match first.load(Ordering::Relaxed) {
            0 => {
                first.store(here, Ordering::Relaxed);
                here
            }
            first => first,
        });
        self.ops.fetch_add(1, Ordering::Relaxed);
        self.deep.fetch_add(u64::from(here.abs_diff(first) > SPREAD), Ordering::Relaxed);
    }

    fn check(&self, ops: u64) {
        assert_eq!(self.ops.load(Ordering::Relaxed), ops, "ops that ran");
        assert_eq!(self.deep.load(Ordering::Relaxed), 0, "ops that ran deep in a stack");
    }
}

fn counting(depth: &Arc<Depth>) -> impl FnOnce(&mut OpContext<'_>) -> Result<(), Cause> + Send + 'static {
    let depth = Arc::clone(depth);
    move |_: &mut OpContext<'_>| {
        depth.op();
        Ok(())
    }
}

fn chain(policy: Policy) {
    let _watchdog = Watchdog::new("a chain");
    on_little_stack(move || {
        let (engine, depth) = (engine(policy), Arc::new(Depth::default()));
        let variable = engine.new_variable(None);
        let gate = gate::shut(&engine, &variable);
        for _ in 0..MILLION {
            engine.op(counting(&depth)).mutate(&variable).push().expect("an open engine");
        }
        gate.complete(Ok(())).expect("a token used once");
        engine.wait_for_var(&variable).expect("no op fails");
        assert_eq!((variable.version(), variable.completed_version()), (MILLION + 1, MILLION + 1));
        depth.check(MILLION);
        engine.close().expect("no op fails");
    });
}

#[test]
fn a_chain() {
    chain(Policy::WorkStealing);
}

#[test]
fn a_chain_run_by_whoever_opens_it() {
    chain(Policy::Serial);
}

#[test]
fn readers_behind_a_writer() {
    let _watchdog = Watchdog::new("readers behind a writer");
    on_little_stack(|| {
        let (engine, depth) = (engine(Policy::WorkStealing), Arc::new(Depth::default()));
        let variable = engine.new_variable(None);
        let gate = gate::shut(&engine, &variable);
        for _ in 0..MILLION {
            engine.op(counting(&depth)).read(&variable).push().expect("an open engine");
        }
        let seen = Arc::clone(&depth);
        let last = move |_: &mut OpContext<'_>| {
            seen.check(MILLION);
            Ok(())
        };
        engine.op(last).mutate(&variable).push().expect("an open engine");
        gate.complete(Ok(())).expect("a token used once");
        engine.wait_for_var(&variable).expect("the last op saw all the others");
        engine.close().expect("no op fails");
    });
}

#[test]
fn a_chain_behind_a_failure() {
    let _watchdog = Watchdog::new("a chain behind a failure");
    on_little_stack(|| {
        let (engine, depth) = (engine(Policy::WorkStealing), Arc::new(Depth::default()));
        let variable = engine.new_variable(None);
        let gate = gate::shut(&engine, &variable);
        for _ in 0..MILLION {
            engine.op(counting(&depth)).mutate(&variable).push().expect("an open engine");
        }
        gate.complete(Err(Cause::Error("shut for good".into()))).expect("a token used once");
        let failed = engine.wait_for_var(&variable).expect_err("the first op failed");
        assert!(matches!(failed, EngineError::Failed(failure) if failure.op() == "op 'gate'"));
        assert_eq!(variable.completed_version(), MILLION + 1);
        depth.check(0);
        let stats = engine.stats();
        assert_eq!((stats.failed, stats.skipped, stats.pending), (1, MILLION, 0));
        engine.close().expect("the failure was raised by the wait");
        assert_eq!(Arc::strong_count(&depth), 1, "the skipped payloads were dropped");
    });
}

/// Each op pushes the next one from inside.
#[test]
fn a_chain_that_pushes_itself() {
    fn push(engine: &Engine, variable: &weft_engine::Variable, depth: &Arc<Depth>, left: u64) {
        let next = (engine.clone(), variable.clone(), Arc::clone(depth));
        let op = move |_: &mut OpContext<'_>| {
            let (engine, variable, depth) = &next;
            depth.op();
            if left > 1 {
                push(engine, variable, depth, left - 1);
            }
            Ok(())
        };
        engine.op(op).mutate(variable).push().expect("an open engine");
    }
    for policy in Policy::ALL {
        let _watchdog = Watchdog::new("a chain that pushes itself");
        // Where ops are drawn each one waits until a thread waits anew: two threads wake each other for each.
        let ops = MILLION / if policy.seed().is_some() { 100 } else { 4 };
        on_little_stack(move || {
            let (engine, depth) = (engine(policy), Arc::new(Depth::default()));
            push(&engine, &engine.new_variable(None), &depth, ops);
            engine.close().expect("no op fails");
            depth.check(ops);
        });
    }
}
