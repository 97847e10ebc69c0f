//! Small programs with threads, small enough for Miri.

use crate::{Cause, CloseOptions, Completion, Engine, EngineError, OpContext, Policy, Settings};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

fn engine(policy: Policy) -> Engine {
    Engine::new(Settings { policy, workers: Some(2), ..Settings::default() }).expect("valid settings")
}

/// A value that the engine alone keeps threads apart at, as it does for users' arrays.
#[derive(Default)]
struct Value(UnsafeCell<Vec<u32>>);

// SAFETY: ops that touch it mutate its variable.
unsafe impl Sync for Value {}
// SAFETY: as above.
unsafe impl Send for Value {}

impl Value {
    fn push(&self, number: u32) {
        // SAFETY: as above.
        unsafe { (*self.0.get()).push(number) };
    }

    fn get(&self) -> Vec<u32> {
        // SAFETY: the ops were waited for.
        unsafe { (*self.0.get()).clone() }
    }
}

#[test]
fn values_need_no_lock() {
    for policy in Policy::ALL {
        let (engine, values) = (engine(policy), Arc::new([Value::default(), Value::default()]));
        let variables = [engine.new_variable(None), engine.new_variable(None)];
        thread::scope(|scope| {
            for pusher in 0..2 {
                let (engine, variables, values) = (&engine, &variables, &values);
                scope.spawn(move || {
                    for number in 0..20 {
                        let values = Arc::clone(values);
                        let op = move |_: &mut OpContext<'_>| {
                            values.iter().for_each(|value| value.push(number));
                            Ok(())
                        };
                        let (target, other) = (&variables[pusher], &variables[1 - pusher]);
                        engine.op(op).mutate(target).mutate(other).push().expect("an open engine");
                    }
                });
            }
        });
        engine.wait_for_var(&variables[0]).expect("no op fails");
        engine.wait_for_var(&variables[1]).expect("no op fails");
        assert_eq!(values[0].get().len(), 40);
        assert_eq!(values[0].get(), values[1].get(), "{policy}");
    }
}

#[test]
fn everything_is_freed() {
    for policy in Policy::ALL {
        let (engine, held) = (engine(policy), Arc::new(()));
        let (sender, receiver) = channel::<Completion>();
        let completer = thread::spawn(move || {
            for (at, token) in receiver.into_iter().enumerate() {
                // The payload's own error may have come first, and the third token is dropped.
                let _ = match at % 3 {
                    0 => token.complete(Ok(())),
                    1 => token.complete(Err(Cause::Native(1))),
                    _ => Ok(()),
                };
            }
        });
        for number in 0..30 {
            let variables: Vec<_> = (0..number % 7).map(|_| engine.new_variable(Some("named"))).collect();
            let (held, sender) = (Arc::clone(&held), sender.clone());
            let payload = move |context: &mut OpContext<'_>| {
                drop(held);
                if number % 2 == 0 {
                    sender.send(context.defer()).expect("the completer listens");
                }
                if number % 5 == 0 { Err(Cause::Error("on purpose".into())) } else { Ok(()) }
            };
            let mut op = engine.op(payload).priority(number % 3).name("named");
            for variable in &variables {
                op = op.mutate(variable);
            }
            op.push().expect("an open engine");
            for variable in &variables {
                engine.op(|_: &mut OpContext<'_>| Ok(())).mutate(variable).push().expect("an open engine");
                if number % 4 == 0 {
                    engine.delete_variable(variable, |_: &mut OpContext<'_>| Ok(()), None).expect("once");
                }
            }
            if let Some(variable) = variables.first().filter(|variable| number % 3 == 0 && !variable.is_deleted()) {
                let _ = engine.wait_to_write(variable); // failed or not
            }
        }
        drop(sender);
        let closed = engine.close();
        assert!(matches!(closed, Err(EngineError::ManyFailed(_))), "{closed:?}");
        completer.join().expect("no panic");
        assert_eq!((Arc::strong_count(&held), engine.stats().variables), (1, 0), "{policy}");
    }
}

/// Without workers, what a variable leaves is settled by whoever drops the engine.
#[test]
fn an_engine_without_workers_goes() {
    let engine = engine(Policy::Serial);
    let core = Arc::downgrade(&engine.core);
    let variable = engine.new_variable(None);
    engine.op(|_: &mut OpContext<'_>| Ok(())).mutate(&variable).push().expect("an open engine");
    engine.wait_for_var(&variable).expect("no op fails");
    drop(variable);
    drop(engine);
    assert_eq!(core.strong_count(), 0);
}

#[test]
fn a_close_cancels() {
    for policy in Policy::ALL {
        let (engine, held) = (engine(policy), Arc::new(()));
        let variable = engine.new_variable(None);
        let (sender, receiver) = channel();
        let gate = move |context: &mut OpContext<'_>| {
            sender.send(context.defer()).expect("the test listens");
            Ok(())
        };
        engine.op(gate).mutate(&variable).push().expect("an open engine");
        let token = receiver.recv().expect("it begins");
        for _ in 0..20 {
            let held = Arc::clone(&held);
            let payload = move |_: &mut OpContext<'_>| {
                drop(held);
                Ok(())
            };
            engine.op(payload).mutate(&variable).push().expect("an open engine");
        }
        let completer = thread::spawn(move || token.complete(Ok(())));
        engine.close_with(CloseOptions { cancel: true, ..CloseOptions::default() }).expect("nothing is told");
        completer.join().expect("no panic").expect("a token used once");
        assert_eq!((Arc::strong_count(&held), variable.completed_version()), (1, 21), "{policy}");
    }
}
