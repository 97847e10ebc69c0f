//! The end of an engine: it drains, or cancels, within a time.

use crate::{Log, SHORT, Watchdog, engine, failed_op, failing, gate, nothing, occupy, stealing};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use weft_engine::{Cause, CloseOptions, Engine, EngineError, OpContext, Policy};

#[test]
fn a_close_drains() {
    let _watchdog = Watchdog::new("a close drains");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 2), Log::default());
        let variable = engine.new_variable(None);
        let gate = gate::shut(&engine, &variable);
        // Ops go on pushing ops while they are drained.
        let (inside, mine, noted) = (engine.clone(), variable.clone(), log.clone());
        let pushes = move |_: &mut OpContext<'_>| {
            for at in 0..10 {
                inside.op(noted.noting(at)).mutate(&mine).push().expect("inside an op a push is let through");
            }
            Ok(())
        };
        engine.op(pushes).mutate(&variable).push().expect("an open engine");
        let closer = engine.clone();
        let (begun, closing) = crate::waiting(move |wait| {
            closer.close_with(CloseOptions { tick: wait.tick.take(), ..CloseOptions::default() })
        });
        begun.recv().expect("the close begins");
        assert!(engine.is_closed());
        assert!(matches!(engine.op(nothing).push(), Err(EngineError::Closed { .. })), "{policy}");
        gate.complete(Ok(())).expect("a token used once");
        closing.join().expect("no panic").expect("no op fails");
        assert!(log.all().into_iter().eq(0..10), "{policy}");
        engine.close().expect("it is closed");
        engine.wait_for_var(&variable).expect("what is finished stays so");
        engine.wait_for_all().expect("nothing is pending");
        assert_eq!(engine.stats().pending, 0);
    }
}

#[test]
fn a_close_can_be_interrupted_though_ops_push_ops_for_ever() {
    let _watchdog = Watchdog::new("a close can be interrupted though ops push ops for ever");
    let (engine, over) = (stealing(2), Arc::new(AtomicBool::new(false)));
    push_again(&engine, &over);
    let mut ticks = 0;
    let mut tick = || {
        ticks += 1;
        ticks < 2
    };
    let closed = engine.close_with(CloseOptions { tick: Some(&mut tick), ..CloseOptions::default() });
    over.store(true, Ordering::Relaxed);
    assert!(matches!(closed, Err(EngineError::Interrupted)), "{closed:?}");
    engine.close().expect("no op fails");
}

#[test]
fn of_ops_that_push_the_next_one_there_is_always_one_pending() {
    let _watchdog = Watchdog::new("of ops that push the next one there is always one pending");
    let (engine, over) = (stealing(2), Arc::new(AtomicBool::new(false)));
    push_again(&engine, &over);
    let seen = (0..20_000).map(|_| engine.stats().pending).min();
    over.store(true, Ordering::Relaxed);
    engine.wait_for_all().expect("no op fails");
    assert_eq!(seen, Some(1));
}

/// Pushes an op that pushes itself again, until it is over.
fn push_again(engine: &Engine, over: &Arc<AtomicBool>) {
    let (inside, over) = (engine.clone(), Arc::clone(over));
    let again = move |_: &mut OpContext<'_>| {
        if !over.load(Ordering::Relaxed) {
            push_again(&inside, &over);
        }
        Ok(())
    };
    engine.op(again).push().expect("inside an op a push is let through");
}

#[test]
fn a_close_tells_of_failures() {
    let _watchdog = Watchdog::new("a close tells of failures");
    let engine = stealing(1);
    engine.op(failing).name("culprit").push().expect("an open engine");
    assert_eq!(failed_op(engine.close()), "op 'culprit'");
    engine.close().expect("it was told");
}

#[test]
fn a_cancelling_close_drops_what_has_not_started() {
    let _watchdog = Watchdog::new("a cancelling close drops what has not started");
    let (engine, log, held) = (stealing(1), Log::default(), Arc::new(()));
    let [busy, other, kept] = [(); 3].map(|()| engine.new_variable(None));
    let release = occupy(&engine, &busy);
    for variable in [&busy, &other] {
        for _ in 0..100 {
            let held = Arc::clone(&held);
            let payload = move |_: &mut OpContext<'_>| {
                drop(held);
                unreachable!("it was cancelled")
            };
            engine.op(payload).mutate(variable).push().expect("an open engine");
        }
    }
    engine.op(log.noting("cleans up")).mutate(&other).always_run().push().expect("an open engine");
    engine.delete_variable(&kept, log.noting("finalizes"), None).expect("it is deleted once");
    let closed = engine.close_with(CloseOptions { cancel: true, timeout: Some(SHORT), ..CloseOptions::default() });
    assert!(matches!(closed, Err(EngineError::Timeout { .. })), "the started op goes on: {closed:?}");
    drop(release);
    engine
        .close_with(CloseOptions { cancel: true, ..CloseOptions::default() })
        .expect("a cancelled op is no failure to be told");
    assert_eq!(log.all().len(), 2);
    assert_eq!(Arc::strong_count(&held), 1, "cancelled payloads are dropped");
    let stats = engine.stats();
    assert_eq!((stats.cancelled, stats.failed, stats.skipped, stats.pending), (200, 0, 0, 0));
    for (variable, versions) in [(&busy, 101), (&other, 101)] {
        let Err(EngineError::Failed(failure)) = engine.wait_for_var(variable) else { panic!("it was cancelled") };
        assert!(matches!(failure.cause(), Cause::Cancelled));
        assert_eq!(variable.completed_version(), versions);
    }
}

#[test]
fn a_cancelling_close_waits_for_what_has_started() {
    let _watchdog = Watchdog::new("a cancelling close waits for what has started");
    for policy in Policy::ALL {
        let engine = engine(policy, 1);
        let variable = engine.new_variable(None);
        let gate = gate::shut(&engine, &variable);
        engine.op(nothing).mutate(&variable).push().expect("an open engine");
        let closed = engine.close_with(CloseOptions { cancel: true, timeout: Some(SHORT), ..CloseOptions::default() });
        assert!(matches!(closed, Err(EngineError::Timeout { .. })), "{policy}: {closed:?}");
        thread::spawn(move || gate.complete(Ok(()))).join().expect("no panic").expect("a token used once");
        engine
            .close_with(CloseOptions { cancel: true, ..CloseOptions::default() })
            .expect("a cancelled op is no failure to be told");
        assert_eq!((variable.completed_version(), engine.stats().cancelled), (2, 1), "{policy}");
    }
}

#[test]
fn many_may_close() {
    let _watchdog = Watchdog::new("many may close");
    let engine = stealing(2);
    let variable = engine.new_variable(None);
    for _ in 0..10_000 {
        engine.op(nothing).mutate(&variable).push().expect("an open engine");
    }
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| engine.close().expect("no op fails"));
        }
    });
    assert_eq!(variable.completed_version(), 10_000);
}

/// Without a close, what was pushed runs all the same, and then the workers end.
#[test]
fn a_dropped_engine_drains() {
    let _watchdog = Watchdog::new("a dropped engine drains");
    for policy in [Policy::WorkStealing, Policy::PerDevice] {
        for round in 0..50 {
            let (engine, (ran, has_run)) = (engine(policy, 2), channel());
            let variable = engine.new_variable(None);
            for at in 0..20 {
                let ran = ran.clone();
                let payload = move |_: &mut OpContext<'_>| {
                    ran.send(at).expect("the test listens");
                    Ok(())
                };
                engine.op(payload).mutate(&variable).push().expect("an open engine");
            }
            let weak = engine.downgrade();
            if round % 2 == 0 {
                drop(variable);
            }
            drop((engine, ran));
            assert!(weak.upgrade().is_none());
            assert!(has_run.iter().eq(0..20), "{policy}");
        }
    }
}

/// A worker may hold the last handle: the payload that it drops has one.
#[test]
fn an_op_may_drop_the_last_handle() {
    let _watchdog = Watchdog::new("an op may drop the last handle");
    for policy in Policy::ALL {
        for _ in 0..50 {
            let (engine, (ended, has_ended)) = (engine(policy, 2), channel());
            let variable = engine.new_variable(None);
            let last = (engine.clone(), variable.clone());
            let payload = move |_: &mut OpContext<'_>| {
                drop(last);
                ended.send(()).expect("the test listens");
                Ok(())
            };
            engine.op(payload).mutate(&variable).push().expect("an open engine");
            drop((engine, variable));
            has_ended.recv().expect("it ran");
        }
    }
}

#[test]
fn an_engine_without_ops_closes() {
    let _watchdog = Watchdog::new("an engine without ops closes");
    for policy in Policy::ALL {
        let engine = engine(policy, 8);
        drop(engine.new_variable(None));
        engine.close().expect("there is nothing to do");
        let cancelled = Engine::new(weft_engine::Settings::default()).expect("valid settings");
        cancelled.close_with(CloseOptions { cancel: true, ..CloseOptions::default() }).expect("there is nothing to do");
    }
}
