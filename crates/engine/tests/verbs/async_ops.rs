//! Ops that a token completes: once, from any thread, and not before their payload has returned.

use crate::{Log, Watchdog, engine, failed_op, for_short, gate, nothing, stealing};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use weft_engine::{Cause, Completion, Engine, EngineError, OpContext, Policy, Variable};

#[test]
fn a_token_completes_its_op_from_any_thread() {
    let _watchdog = Watchdog::new("a token completes its op from any thread");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 1), Log::default());
        let variables: Vec<_> = (0..50).map(|_| engine.new_variable(None)).collect();
        let tokens: Vec<_> = variables.iter().map(|variable| gate::shut(&engine, variable)).collect();
        for variable in &variables {
            engine.op(log.noting(())).mutate(variable).push().expect("an open engine");
        }
        assert_eq!(engine.stats().pending, 100, "{policy}: all have started, and none has ended");
        let threads: Vec<_> = tokens.into_iter().map(|token| thread::spawn(move || token.complete(Ok(())))).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic").expect("a token used once"));
        engine.wait_for_all().expect("no op fails");
        assert_eq!(log.all().len(), 50, "{policy}");
    }
}

#[test]
fn a_token_fails_its_op() {
    let _watchdog = Watchdog::new("a token fails its op");
    let engine = stealing(1);
    let variable = engine.new_variable(None);
    let gate = gate::shut(&engine, &variable);
    gate.complete(Err(Cause::Error("on purpose".into()))).expect("a token used once");
    assert_eq!(failed_op(engine.wait_for_var(&variable)), "op 'gate'");
}

#[test]
fn a_token_is_used_once() {
    let _watchdog = Watchdog::new("a token is used once");
    for policy in Policy::ALL {
        let engine = engine(policy, 2);
        let variable = engine.new_variable(None);
        let token = gate::shut(&engine, &variable);
        let clone = token.clone();
        assert!(!clone.is_used());
        token.complete(Ok(())).expect("a token used once");
        assert!(clone.is_used());
        for second in [clone.complete(Ok(())), token.complete(Err(Cause::Cancelled))] {
            assert!(matches!(second, Err(EngineError::TokenUsed { op }) if op == "op 'gate'"), "{policy}");
        }
        engine.wait_for_all().expect("the second use changed nothing");
        assert_eq!(variable.completed_version(), 1);
    }
}

/// Of many threads that use a token at the same time one succeeds, and the op ends as that one said.
#[test]
fn one_of_many_uses_succeeds() {
    let _watchdog = Watchdog::new("one of many uses succeeds");
    let engine = stealing(2);
    for _ in 0..500 {
        let variable = engine.new_variable(None);
        let token = gate::shut(&engine, &variable);
        let uses: Vec<_> = thread::scope(|scope| {
            let use_it = |at: i32| {
                let token = token.clone();
                scope.spawn(move || token.complete(if at % 2 == 0 { Ok(()) } else { Err(Cause::Native(at)) }).is_ok())
            };
            let threads: Vec<_> = (0..3).map(use_it).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(uses.iter().filter(|&&succeeded| succeeded).count(), 1);
        let failed = engine.wait_for_var(&variable).is_err();
        assert_eq!(failed, uses[1]);
        assert_eq!(variable.completed_version(), 1);
    }
}

#[test]
fn a_dropped_token_fails_its_op() {
    let _watchdog = Watchdog::new("a dropped token fails its op");
    for policy in Policy::ALL {
        let engine = engine(policy, 1);
        let (elsewhere, inside) = (engine.new_variable(None), engine.new_variable(None));
        let token = gate::shut(&engine, &elsewhere);
        let clone = token.clone();
        drop(token);
        let still = engine.wait_for_var_with(&elsewhere, &mut for_short());
        assert!(matches!(still, Err(EngineError::Timeout { .. })), "{still:?}");
        thread::spawn(move || drop(clone)).join().expect("no panic");
        let drops = |context: &mut OpContext<'_>| {
            drop(context.defer());
            Ok(())
        };
        engine.op(drops).mutate(&inside).push().expect("an open engine");
        for variable in [&elsewhere, &inside] {
            let Err(EngineError::Failed(failure)) = engine.wait_for_var(variable) else { panic!("nobody used it") };
            assert!(matches!(failure.cause(), Cause::TokenDropped), "{policy}: {failure}");
        }
    }
}

/// Pushes an op that defers, hands its token over, and goes on until told.
fn linger(engine: &Engine, variable: &Variable) -> (weft_engine::Completion, std::sync::mpsc::Sender<()>) {
    let ((sender, receiver), (go, gone)) = (channel(), channel::<()>());
    let inside = engine.clone();
    let lingers = move |context: &mut OpContext<'_>| {
        sender.send(context.defer()).expect("the test waits for it");
        let _ = gone.recv();
        // What the op is to its engine must be as before.
        let inner = inside.new_variable(None);
        inside.op(nothing).mutate(&inner).push().expect("an open engine");
        inside.wait_for_var(&inner).expect("no op fails");
        assert_eq!(context.label(), "op 'lingers'");
        Ok(())
    };
    engine.op(lingers).name("lingers").mutate(variable).push().expect("an open engine");
    (receiver.recv().expect("it begins"), go)
}

/// A used token does not take the op away from under its running payload.
#[test]
fn an_op_lasts_until_its_payload_returns() {
    let _watchdog = Watchdog::new("an op lasts until its payload returns");
    let (engine, log) = (stealing(2), Log::default());
    for _ in 0..20 {
        let variable = engine.new_variable(None);
        let (token, go) = linger(&engine, &variable);
        engine.op(log.noting(())).mutate(&variable).push().expect("an open engine");
        token.complete(Ok(())).expect("a token used once");
        // Cells of ended ops would be used again by these.
        let other = engine.new_variable(None);
        for _ in 0..100 {
            engine.op(nothing).name("a name of its own").mutate(&other).push().expect("an open engine");
        }
        engine.wait_for_var(&other).expect("no op fails");
        assert!(engine.running().contains(&"op 'lingers'".to_owned()));
        assert_eq!((log.all().len(), variable.completed_version()), (0, 0));
        drop(go);
        engine.wait_for_var(&variable).expect("no op fails");
        assert_eq!((log.0.lock().expect("no panic").drain(..).count(), variable.completed_version()), (1, 2));
    }
}

#[test]
fn a_payload_may_use_its_own_token() {
    let _watchdog = Watchdog::new("a payload may use its own token");
    for policy in Policy::ALL {
        let engine = engine(policy, 1);
        for fails in [false, true] {
            let variable = engine.new_variable(None);
            let uses = move |context: &mut OpContext<'_>| {
                let token = context.defer();
                token.complete(if fails { Err(Cause::Native(1)) } else { Ok(()) }).expect("a token used once");
                assert!(context.defer().is_used(), "there is one token");
                Ok(())
            };
            engine.op(uses).mutate(&variable).push().expect("an open engine");
            assert_eq!(engine.wait_for_var(&variable).is_err(), fails, "{policy}");
            assert_eq!(variable.completed_version(), 1);
        }
    }
}

/// An error of the payload fails the op, unless its token said something before: then nothing is lost.
#[test]
fn an_error_beside_a_token_is_not_lost() {
    let _watchdog = Watchdog::new("an error beside a token is not lost");
    for policy in Policy::ALL {
        let engine = engine(policy, 1);
        for used in [false, true] {
            let (variable, (sender, receiver)) = (engine.new_variable(None), channel());
            let fails = move |context: &mut OpContext<'_>| {
                let token = context.defer();
                if used {
                    token.complete(Ok(())).expect("a token used once");
                }
                sender.send(token).expect("the test waits for it");
                Err(Cause::Error("after all".into()))
            };
            engine.op(fails).name("both").mutate(&variable).push().expect("an open engine");
            let token = receiver.recv().expect("it ran");
            let told = if used { engine.wait_for_all() } else { engine.wait_for_var(&variable) };
            assert_eq!(failed_op(told), "op 'both'", "{policy}");
            assert_eq!(engine.wait_for_var(&variable).is_ok(), used);
            assert!(token.complete(Ok(())).is_err(), "it counts as used");
        }
    }
}

/// Ops are deferred and completed by many threads, in whatever order, while somebody asks what has begun.
#[test]
fn reports_name_what_holds_out_while_others_come_and_go() {
    const THREADS: usize = 4;
    const OPS: usize = 500;
    let _watchdog = Watchdog::new("reports name what holds out while others come and go");
    let engine = stealing(2);
    let held = engine.new_variable(None);
    let holds_out = gate::shut(&engine, &held);
    let (sender, receiver) = channel::<Completion>();
    let receiver = Arc::new(Mutex::new(receiver));
    let completers: Vec<_> = (0..THREADS)
        .map(|_| {
            let receiver = Arc::clone(&receiver);
            thread::spawn(move || {
                let mut kept = Vec::new();
                loop {
                    let next = receiver.lock().expect("nobody panics").recv();
                    let Ok(token) = next else { break };
                    kept.push(token);
                    if kept.len() > 8 {
                        kept.swap_remove(kept.len() / 3).complete(Ok(())).expect("a token used once");
                    }
                }
                kept.iter().for_each(|token| token.complete(Ok(())).expect("a token used once"));
            })
        })
        .collect();
    let pushers: Vec<_> = (0..THREADS)
        .map(|_| {
            let (engine, sender) = (engine.clone(), sender.clone());
            thread::spawn(move || {
                for _ in 0..OPS {
                    let (sender, variable) = (sender.clone(), engine.new_variable(None));
                    let payload = move |context: &mut OpContext<'_>| {
                        sender.send(context.defer()).expect("somebody completes them");
                        Ok(())
                    };
                    engine.op(payload).mutate(&variable).push().expect("an open engine");
                }
            })
        })
        .collect();
    drop(sender);
    while !pushers.iter().all(thread::JoinHandle::is_finished) {
        let report = engine.stall_report();
        assert!(report.running.iter().any(|op| op.label == "op 'gate'"), "{report:?}");
        assert!(report.running.len() as u64 <= report.pending, "{report:?}");
    }
    pushers.into_iter().chain(completers).for_each(|thread| thread.join().expect("no panic"));
    holds_out.complete(Ok(())).expect("a token used once");
    engine.wait_for_all().expect("no op fails");
    assert_eq!(engine.stall_report().running, []);
}
