//! Workers keep short ops that have run, to settle several at a time: nobody can tell, however long the next op takes.

use crate::{Answer, Watchdog, engine, failing, nothing, occupy, stealing, waiting};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use weft_engine::{
    Engine, Failure, OpContext, Policy, Recoverable, ReplayBuilder, ReplayOptions, StepContext, StepKind, StepOptions,
    Variable,
};

/// Short ops, more than a worker takes to know that they are short.
const SHORT_OPS: usize = 150;
/// More than it pulls at a time.
const PULLED: usize = 20;

/// Runs short ops on one worker, the last of which changes the variable that `ask` is given, and then an op that lasts until `ask` has
/// returned. Ops lie in the worker's hands in all ways. Another worker is busy all the time.
fn before_a_long_op(ask: impl Fn(&Engine, &Variable)) {
    let change =
        |engine: &Engine, variable: &Variable| engine.op(nothing).mutate(variable).push().expect("an open engine");
    between(change, |engine, variable| {
        ask(engine, variable);
        engine.take_failures()
    });
}

/// The same, with other ops on the variable. Answers for `ask` are failures that need not be told any more.
fn between(change: impl Fn(&Engine, &Variable), ask: impl Fn(&Engine, &Variable) -> Vec<Arc<Failure>>) {
    for policy in [Policy::WorkStealing, Policy::PerDevice] {
        for more in 0..PULLED {
            let engine = engine(policy, 2);
            let busy = occupy(&engine, &engine.new_variable(None));
            let (variable, end) = (engine.new_variable(None), short_ops(&engine, more));
            change(&engine, &variable);
            let hold = hold(&engine);
            drop(end);
            drop(ask(&engine, &variable));
            drop(hold);
            drop(busy);
            engine.wait_for_all().expect("no op fails");
        }
    }
}

/// Pushes short ops behind one that lasts until the answered handle is dropped.
fn short_ops(engine: &Engine, more: usize) -> Sender<()> {
    let release = occupy(engine, &engine.new_variable(None));
    for _ in 0..SHORT_OPS + more {
        engine.op(nothing).push().expect("an open engine");
    }
    release
}

/// Pushes an op that lasts until the answered handle is dropped.
fn hold(engine: &Engine) -> Sender<()> {
    let (release, released) = channel::<()>();
    let hold = move |_: &mut OpContext<'_>| -> Answer {
        let _ = released.recv();
        Ok(())
    };
    engine.op(hold).push().expect("an open engine");
    release
}

#[test]
fn who_waits_for_a_variable_is_answered() {
    let _watchdog = Watchdog::new("who waits for a variable is answered");
    before_a_long_op(|engine, variable| engine.wait_for_var(variable).expect("no op fails"));
    before_a_long_op(|engine, variable| engine.wait_to_write(variable).expect("no op fails"));
}

#[test]
fn who_asks_again_and_again_is_answered() {
    let _watchdog = Watchdog::new("who asks again and again is answered");
    before_a_long_op(|engine, variable| {
        while !engine.is_done(variable).expect("a variable of this engine") {
            thread::yield_now();
        }
    });
    before_a_long_op(|engine, variable| {
        while engine.is_in_use(variable).expect("a variable of this engine") {
            thread::yield_now();
        }
    });
    before_a_long_op(|engine, _| {
        while engine.stats().pending > 2 {
            thread::yield_now();
        }
    });
}

/// A failure is over when a good version is there.
#[test]
fn who_asks_for_a_failure_is_answered() {
    let _watchdog = Watchdog::new("who asks for a failure is answered");
    let asks: [fn(&Engine, &Variable) -> bool; 3] = [
        |_, variable| variable.has_failed(),
        |engine, variable| engine.failure(variable).is_some(),
        |engine, variable| !matches!(engine.recoverable(variable), Ok(Recoverable::Good { made: true })),
    ];
    for ask in asks {
        let change = |engine: &Engine, variable: &Variable| {
            engine.op(failing).overwrite(variable).push().expect("an open engine");
            engine.op(nothing).overwrite(variable).push().expect("an open engine");
        };
        between(change, |engine, variable| {
            while variable.known_version() == 0 || ask(engine, variable) {
                thread::yield_now();
            }
            engine.take_failures()
        });
    }
}

/// An op that is skipped needs no worker.
#[test]
fn who_asks_for_the_failure_of_a_skipped_op_is_answered() {
    let _watchdog = Watchdog::new("who asks for the failure of a skipped op is answered");
    let change = |engine: &Engine, variable: &Variable| {
        let bad = engine.new_variable(None);
        engine.op(failing).overwrite(&bad).push().expect("an open engine");
        engine.op(nothing).mutate(variable).push().expect("an open engine");
        engine.op(nothing).read(&bad).mutate(variable).push().expect("an open engine");
    };
    let asks: [fn(&Engine, &Variable) -> bool; 2] =
        [|_, variable| variable.has_failed(), |engine, variable| engine.failure(variable).is_some()];
    for ask in asks {
        between(change, |engine, variable| {
            while !ask(engine, variable) {
                thread::yield_now();
            }
            engine.take_failures()
        });
    }
}

#[test]
fn a_wait_for_all_covers_what_was_pushed_before() {
    let _watchdog = Watchdog::new("a wait for all covers what was pushed before");
    for more in 0..PULLED {
        let engine = stealing(2);
        let ends = [occupy(&engine, &engine.new_variable(None)), short_ops(&engine, more)];
        let waits = engine.clone();
        let (begun, waiter) = waiting(move |wait| waits.wait_for_all_with(wait));
        begun.recv().expect("the wait begins");
        let holds = [hold(&engine), hold(&engine)]; // one for each worker
        drop(ends);
        waiter.join().expect("no panic").expect("no op fails");
        drop(holds);
        engine.wait_for_all().expect("no op fails");
    }
}

/// The same, and one of those that last is a step of a replay: a plain one, or one with a cell.
#[test]
fn a_wait_for_all_covers_no_replay_that_was_pushed_after() {
    let _watchdog = Watchdog::new("a wait for all covers no replay that was pushed after");
    for (more, kind) in (0..PULLED).flat_map(|more| [(more, StepKind::Plain), (more, StepKind::Native)]) {
        let engine = stealing(2);
        let (release, released) = channel::<()>();
        let released = Mutex::new(Some(released));
        let mut builder = ReplayBuilder::<()>::new();
        let lasts = move |(): &(), _: &mut StepContext<'_, '_>| -> Answer {
            let released = released.lock().expect("no panic").take();
            let _ = released.map(|released| released.recv());
            Ok(())
        };
        builder.step(lasts, &StepOptions { kind, ..StepOptions::default() });
        let replay = engine.new_replay(builder).expect("a replay");
        let ends = [occupy(&engine, &engine.new_variable(None)), short_ops(&engine, more)];
        let waits = engine.clone();
        let (begun, waiter) = waiting(move |wait| waits.wait_for_all_with(wait));
        begun.recv().expect("the wait begins");
        engine.push_replay(&replay, &[], Arc::new(()), &ReplayOptions::default()).expect("an open engine");
        let hold = hold(&engine); // for the other worker
        drop(ends);
        waiter.join().expect("no panic").expect("no op fails");
        drop((hold, release));
        engine.wait_for_all().expect("no op fails");
    }
}

/// The long op waits itself.
#[test]
fn what_an_op_waits_for_is_settled_by_itself() {
    let _watchdog = Watchdog::new("what an op waits for is settled by itself");
    for more in 0..PULLED {
        let engine = stealing(2);
        let busy = occupy(&engine, &engine.new_variable(None));
        let (variable, end) = (engine.new_variable(None), short_ops(&engine, more));
        engine.op(nothing).mutate(&variable).push().expect("an open engine");
        let inside = engine.clone();
        let waits = move |_: &mut OpContext<'_>| -> Answer {
            inside.wait_for_var(&variable).map_err(|error| weft_engine::Cause::Error(error.into()))
        };
        let last = engine.new_variable(None);
        engine.op(waits).mutate(&last).push().expect("an open engine");
        drop(end);
        engine.wait_for_var(&last).expect("no op fails");
        drop(busy);
        engine.wait_for_all().expect("no op fails");
    }
}

/// Another worker runs what the kept op makes ready.
#[test]
fn what_it_makes_ready_runs_beside_the_long_op() {
    let _watchdog = Watchdog::new("what it makes ready runs beside the long op");
    for more in 0..PULLED {
        let engine = stealing(2);
        let (variable, end) = (engine.new_variable(None), short_ops(&engine, more));
        let (other, (ran, has_run)) = (occupy(&engine, &engine.new_variable(None)), channel());
        engine.op(nothing).mutate(&variable).push().expect("an open engine");
        let hold = hold(&engine);
        let last = move |_: &mut OpContext<'_>| -> Answer {
            ran.send(()).expect("the test waits for it");
            Ok(())
        };
        engine.op(last).mutate(&variable).push().expect("an open engine");
        drop(end);
        drop(other);
        has_run.recv().expect("it runs before the long op ends");
        drop(hold);
        engine.wait_for_all().expect("no op fails");
    }
}
