//! Priorities order ready ops; no op starves; who holds up a high op is lifted.

use crate::{Answer, Log, Watchdog, engine, gate, occupy, stealing};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use weft_engine::{AccessKind, Accesses, Engine, OpContext, Payload, Policy, PushOptions, Variable};

fn push(engine: &Engine, payload: impl Payload, read: &Variable, priority: i32) {
    engine.op_of(payload).read(read).priority(priority).push().expect("an open engine");
}

#[test]
fn ready_ops_go_in_the_order_of_their_priorities() {
    let _watchdog = Watchdog::new("ready ops go in the order of their priorities");
    for policy in [Policy::WorkStealing, Policy::PerDevice] {
        let (engine, log) = (engine(policy, 1), Log::default());
        let variable = engine.new_variable(None);
        let gate = gate::shut(&engine, &variable);
        let mut expected = Vec::new();
        for at in 0..500_i32 {
            let priority = (at * 7919) % 13 - 6;
            push(&engine, log.noting((priority, at)), &variable, priority);
            expected.push((priority, at));
        }
        expected.sort_by_key(|(priority, _)| -priority); // and first come first served among equals
        gate.complete(Ok(())).expect("a token used once");
        engine.wait_for_all().expect("no op fails");
        assert_eq!(log.all(), expected, "{policy}");
    }
}

/// The same, where the ops are ready before the worker has looked at any of them.
#[test]
fn a_busy_worker_takes_the_highest_next() {
    let _watchdog = Watchdog::new("a busy worker takes the highest next");
    let (engine, (ran, has_run)) = (stealing(1), channel());
    let (busy, free) = (engine.new_variable(None), engine.new_variable(None));
    let release = occupy(&engine, &busy);
    for at in 0..200 {
        let ran = ran.clone();
        let payload = move |_: &mut OpContext<'_>| {
            ran.send(at).expect("the test listens");
            Ok(())
        };
        push(&engine, payload, &free, at);
    }
    drop((release, ran));
    // No wait: a waiting thread would help.
    let order: Vec<_> = has_run.iter().collect();
    assert!(order.iter().copied().eq((0..200).rev()), "{order:?}");
    engine.wait_for_all().expect("no op fails");
}

/// Ops of high priority that push their like for ever hold up a low one only so long.
#[test]
fn a_low_op_does_not_starve() {
    struct Again {
        engine: Engine,
        ran: Arc<AtomicU32>,
        low_ran_at: Arc<OnceLock<u32>>,
    }
    impl Payload for Again {
        fn run(self, _: &mut OpContext<'_>) -> Answer {
            let count = self.ran.fetch_add(1, Ordering::Relaxed);
            if self.low_ran_at.get().is_none() && count < 100_000 {
                let engine = self.engine.clone();
                engine.op_of(self).priority(5).push().expect("an open engine");
            }
            Ok(())
        }
    }
    let _watchdog = Watchdog::new("a low op does not starve");
    let engine = stealing(1);
    let (ran, low_ran_at) = (Arc::new(AtomicU32::new(0)), Arc::new(OnceLock::new()));
    let busy = engine.new_variable(None);
    let release = occupy(&engine, &busy);
    for _ in 0..4 {
        let again = Again { engine: engine.clone(), ran: Arc::clone(&ran), low_ran_at: Arc::clone(&low_ran_at) };
        engine.op_of(again).priority(5).push().expect("an open engine");
    }
    let (seen, noted) = (Arc::clone(&ran), Arc::clone(&low_ran_at));
    let (told, tells) = channel();
    let low = move |_: &mut OpContext<'_>| {
        noted.set(seen.load(Ordering::Relaxed)).expect("it runs once");
        told.send(()).expect("it listens");
        Ok(())
    };
    engine.op(low).priority(-5).push().expect("an open engine");
    drop(release);
    // No wait in the engine before that: it is a push, and while that has its ticket and is not published, the high ops behind it
    // are not known, so that the low one may go early.
    tells.recv().expect("it runs");
    engine.close().expect("no op fails");
    let passed_over = *low_ran_at.get().expect("it ran");
    assert!((100..5000).contains(&passed_over), "{passed_over} ops went first");
}

/// A low op that a high one waits for goes before those in between, as do the ops that it waits for.
#[test]
fn who_holds_up_a_high_op_is_lifted() {
    let _watchdog = Watchdog::new("who holds up a high op is lifted");
    let (engine, log) = (stealing(1), Log::default());
    let [busy, first, second] = [(); 3].map(|()| engine.new_variable(None));
    let release = occupy(&engine, &busy);
    engine.op(log.noting("lowest")).priority(-9).push().expect("an open engine");
    engine.op(log.noting("low mutation")).mutate(&first).priority(-5).push().expect("an open engine");
    engine.op(log.noting("low link")).read(&first).mutate(&second).priority(-5).push().expect("an open engine");
    engine.op(log.noting("low read")).read(&second).priority(-5).push().expect("an open engine");
    for _ in 0..3 {
        engine.op(log.noting("middle")).push().expect("an open engine");
    }
    engine.op(log.noting("high")).mutate(&second).priority(5).push().expect("an open engine");
    drop(release);
    engine.wait_for_all().expect("no op fails");
    let expected = ["low mutation", "low link", "low read", "high", "middle", "middle", "middle", "lowest"];
    assert_eq!(log.all(), expected);
}

/// Readers that hold a variable are lifted too, though nobody lists them.
#[test]
fn granted_readers_are_lifted() {
    let _watchdog = Watchdog::new("granted readers are lifted");
    let (engine, log) = (stealing(1), Log::default());
    let (busy, variable) = (engine.new_variable(None), engine.new_variable(None));
    let release = occupy(&engine, &busy);
    (0..3).for_each(|_| push(&engine, log.noting("reads"), &variable, -5));
    engine.op(log.noting("middle")).push().expect("an open engine");
    engine.op(log.noting("high")).mutate(&variable).priority(5).push().expect("an open engine");
    drop(release);
    engine.wait_for_all().expect("no op fails");
    assert_eq!(log.all(), ["reads", "reads", "reads", "high", "middle"]);
}

/// Priorities never change an order that the accesses demand.
#[test]
fn a_high_op_waits_for_its_accesses() {
    let _watchdog = Watchdog::new("a high op waits for its accesses");
    let (engine, log) = (stealing(2), Log::default());
    let variable = engine.new_variable(None);
    for at in 0..200 {
        let mut accesses = Accesses::new(&engine);
        accesses.add(&variable, AccessKind::Mutate).expect("a variable of this engine");
        let options = PushOptions { priority: at % 17, ..PushOptions::default() };
        engine.push(log.noting(at), &mut accesses, &options).expect("an open engine");
    }
    engine.wait_for_var(&variable).expect("no op fails");
    assert!(log.all().into_iter().eq(0..200));
}
