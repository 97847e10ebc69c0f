//! An answered waiter wakes.

use crate::sync::Parker;
use crate::waiter::Waiter;
use loom::thread;
use std::sync::Arc;

#[test]
fn loom_waiter_is_woken() {
    loom::model(|| {
        let parker = Parker::new();
        let waiter = Waiter::new(&parker);
        let answering = Arc::clone(&waiter);
        let registrar = thread::spawn(move || {
            if answering.answer(None) {
                answering.wake();
            }
        });
        assert!(waiter.sleep(&parker, None));
        assert!(waiter.take().is_none());
        registrar.join().unwrap();
    });
}

/// A token left over from a wait that saw its answer early does not end the next wait.
#[test]
fn loom_waiter_survives_an_old_token() {
    loom::model(|| {
        let parker = Parker::new();
        parker.unparker().unpark();
        let waiter = Waiter::new(&parker);
        let answering = Arc::clone(&waiter);
        let registrar = thread::spawn(move || {
            if answering.answer(None) {
                answering.wake();
            }
        });
        assert!(waiter.sleep(&parker, None));
        assert!(waiter.is_done());
        registrar.join().unwrap();
    });
}
