//! A waiter is woken, sees its answer, and is not misled by the remains of an earlier wait.

use crate::failure::{Cause, Failure};
use crate::sync::Parker;
use crate::waiter::Waiter;
use loom::thread;
use std::sync::Arc;
use std::time::Instant;

fn failure() -> Arc<Failure> {
    Arc::new(Failure::new("op".to_owned(), Cause::Cancelled))
}

/// What the registrar's thread does.
fn answer(waiter: &Arc<Waiter>) -> thread::JoinHandle<()> {
    let waiter = Arc::clone(waiter);
    thread::spawn(move || {
        if waiter.answer(Some(failure())) {
            waiter.wake();
        }
    })
}

#[test]
fn a_waiter_is_woken() {
    loom::model(|| {
        let parker = Parker::new();
        let waiter = Waiter::new(&parker);
        let registrar = answer(&waiter);
        assert!(waiter.sleep(&parker, None));
        assert!(waiter.take().is_some());
        registrar.join().unwrap();
    });
}

/// The answer comes while the waiter gives up. Its token may come later still, into the next wait.
#[test]
fn a_waiter_that_gave_up_leaves_no_trace() {
    loom::model(|| {
        let parker = Parker::new();
        let late = Waiter::new(&parker);
        let first = answer(&late);
        if late.sleep(&parker, Some(Instant::now())) {
            assert!(late.take().is_some());
        }
        let waiter = Waiter::new(&parker);
        let second = answer(&waiter);
        assert!(waiter.sleep(&parker, None));
        assert!(waiter.take().is_some());
        first.join().unwrap();
        second.join().unwrap();
    });
}
