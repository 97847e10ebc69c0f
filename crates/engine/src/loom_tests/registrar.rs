//! The role and its inbox: nothing that was pushed or finished is left behind, and ops on one
//! variable never overlap.

use super::{Variable, push, work};
use crate::sched::Registrar;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

/// Two variables, and the data that ops on both change: loom objects if two of them meet.
struct Shared {
    registrar: Registrar,
    x: Variable,
    y: Variable,
    data: UnsafeCell<u32>,
}

// SAFETY: that `data` is reached by one op at a time is what the model checks.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        let (x, y) = (Variable::new(0), Variable::new(1));
        Arc::new(Self { registrar: Registrar::new(), x, y, data: UnsafeCell::new(0) })
    }

    fn work(&self) {
        // SAFETY: loom checks it.
        work(&self.registrar, |_| self.data.with_mut(|data| unsafe { *data += 1 }));
    }

    fn expect(&self, ops: u32) {
        // SAFETY: all threads have ended.
        assert_eq!(self.data.with(|data| unsafe { *data }), ops);
        assert_eq!(self.registrar.pending(), 0);
        for variable in [&self.x, &self.y] {
            assert_eq!(variable.node().completed_version(), variable.node().version());
        }
    }
}

/// `x += y` beside `y += x`: MXNet hangs, for its pushes take one variable after the other.
#[test]
fn loom_two_variables_in_opposite_order() {
    loom::model(|| {
        let shared = Shared::new();
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                push(&shared.registrar, &[&shared.y, &shared.x]);
                shared.work();
            })
        };
        push(&shared.registrar, &[&shared.x, &shared.y]);
        shared.work();
        other.join().unwrap();
        // What one thread found taken the other one did, or left to be found now.
        shared.work();
        shared.expect(2);
    });
}

/// An op waits for two variables, which two threads grant: it becomes ready once.
#[test]
fn loom_countdown() {
    loom::model(|| {
        let shared = Shared::new();
        push(&shared.registrar, &[&shared.x]);
        push(&shared.registrar, &[&shared.y]);
        let mut first = super::One::default();
        let mut second = super::One::default();
        shared.registrar.drive(None, &mut first);
        shared.registrar.drive(None, &mut second);
        push(&shared.registrar, &[&shared.x, &shared.y]);
        let (first, second) = (first.0.expect("ready"), second.0.expect("ready"));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.registrar.drive(Some(first), &mut super::One::default());
            })
        };
        shared.registrar.drive(Some(second), &mut crate::sched::PullNothing { register: true });
        other.join().unwrap();
        assert_eq!(shared.x.node().completed_version(), 1, "a finished op is settled by whoever had the role");
        assert_eq!(shared.y.node().completed_version(), 1);
    });
}
