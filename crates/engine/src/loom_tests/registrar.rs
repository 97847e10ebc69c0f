//! The role and its inbox: nothing that was pushed or finished is left behind, and ops on one
//! variable never overlap.

use super::{One, Variable, fill_probe, push, work};
use crate::failure::{Cause, Failure};
use crate::op::{Op, OpPtr};
use crate::sched::{Order, PullNothing, Registrar};
use crate::sync::Parker;
use crate::var::AccessKind;
use crate::waiter::Waiter;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

/// Two variables, and in place of their values a list of the ops that were there. loom objects
/// if two ops meet, or if one does not see what the one before left.
struct Shared {
    registrar: Registrar,
    x: Variable,
    y: Variable,
    logs: [UnsafeCell<Vec<String>>; 2],
}

// SAFETY: that one op at a time is at a list is what the model checks.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        let logs = [(); 2].map(|()| UnsafeCell::default());
        Arc::new(Self {
            registrar: Registrar::new(|_| Order::Ready, 0),
            x: Variable::new(0),
            y: Variable::new(1),
            logs,
        })
    }

    /// Runs ops that mutate both variables.
    fn work(&self) {
        work(&self.registrar, |op| {
            // SAFETY: a running op is pending; for the lists, loom checks it.
            unsafe {
                let label = Op::label(op);
                self.logs.iter().for_each(|log| log.with_mut(|log| (*log).push(label.clone())));
            }
        });
    }

    /// Pushes an op that mutates these, and takes it, ready.
    fn start(&self, variables: &[&Variable]) -> OpPtr {
        push(&self.registrar, variables);
        self.pull().expect("nothing holds it up")
    }

    fn pull(&self) -> Option<OpPtr> {
        let mut pull = One::default();
        self.registrar.drive(None, &mut pull);
        pull.0
    }

    fn expect_settled(&self, ops: u64) {
        assert_eq!((self.registrar.settled(), self.registrar.pending()), (ops, 0));
        assert!(!self.registrar.has_news());
        for variable in [&self.x, &self.y] {
            assert_eq!(variable.node().completed_version(), variable.node().version());
        }
    }
}

fn spawn(shared: &Arc<Shared>, run: impl FnOnce(&Shared) + 'static) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || run(&shared))
}

/// `x += y` beside `y += x`: MXNet hangs, for its pushes take one variable after the other.
#[test]
fn two_variables_in_opposite_order() {
    loom::model(|| {
        let shared = Shared::new();
        let other = spawn(&shared, |shared| {
            push(&shared.registrar, &[&shared.y, &shared.x]);
            shared.work();
        });
        push(&shared.registrar, &[&shared.x, &shared.y]);
        shared.work();
        other.join().unwrap();
        // What one thread found taken the other one did, or left to be found now.
        shared.work();
        shared.expect_settled(2);
        // SAFETY: all threads have ended.
        let logs = shared.logs.each_ref().map(|log| log.with(|log| unsafe { (*log).clone() }));
        assert!(logs.iter().all(|log| *log == ["op #0", "op #1"]), "each saw the ops in their order: {logs:?}");
    });
}

/// An op waits for two variables, which two threads grant: it becomes ready once.
#[test]
fn countdown() {
    loom::model(|| {
        let shared = Shared::new();
        let (first, second) = (shared.start(&[&shared.x]), shared.start(&[&shared.y]));
        push(&shared.registrar, &[&shared.x, &shared.y]);
        let (sender, receiver) = std::sync::mpsc::channel();
        let finish = |op| {
            let sender = sender.clone();
            spawn(&shared, move |shared| {
                let mut pull = One::default();
                shared.registrar.drive(Some(op), &mut pull);
                sender.send(pull.0).unwrap();
            })
        };
        let threads = [finish(first), finish(second)];
        for thread in threads {
            thread.join().unwrap();
        }
        let late = shared.pull();
        let pulled: Vec<_> = receiver.try_iter().chain([late]).flatten().collect();
        assert_eq!(pulled.len(), 1, "it is ready once");
        shared.registrar.drive(Some(pulled[0]), &mut One::default());
        shared.expect_settled(3);
    });
}

/// Two threads finish ops while a third holds the role for something else, as `stats` does, and a refused push. The end of
/// its turn is all that it owes.
#[test]
fn finished_ops_are_settled_without_further_help() {
    loom::model(|| {
        let shared = Shared::new();
        let (first, second) = (shared.start(&[&shared.x]), shared.start(&[&shared.y]));
        let finish = |op| {
            spawn(&shared, move |shared| {
                shared.registrar.drive(Some(op), &mut PullNothing { register: false });
            })
        };
        let threads = [finish(first), finish(second)];
        drop(shared.registrar.turn());
        for thread in threads {
            thread.join().unwrap();
        }
        shared.expect_settled(2);
    });
}

/// A thread waits for a variable while another finishes the op that it waits for; see `park_until`.
#[test]
fn a_wait_is_answered() {
    loom::model(|| {
        let shared = Shared::new();
        let op = shared.start(&[&shared.x]);
        let finisher = spawn(&shared, move |shared| {
            shared.registrar.drive(Some(op), &mut PullNothing { register: false });
        });
        let parker = Parker::new();
        let waiter = Waiter::new(&parker);
        shared.registrar.push(
            1,
            |cell, _| fill_probe(cell, &[(shared.x.0, AccessKind::Read)], &waiter),
            |_| thread::yield_now(),
        );
        shared.registrar.turn().catch_up();
        assert!(waiter.sleep(&parker, None));
        assert!(waiter.take().is_none());
        assert_eq!(shared.x.node().completed_version(), 1);
        finisher.join().unwrap();
        shared.expect_settled(2);
    });
}

/// A pusher that finds the ring full makes room and leaves what dies to the next holder of the role, which it is itself at
/// the latest, while another thread finishes an op.
#[test]
fn who_makes_room_leaves_no_finished_op() {
    loom::model(|| {
        let shared = Shared::new();
        let op = shared.start(&[&shared.x]);
        let finisher = spawn(&shared, move |shared| {
            shared.registrar.drive(Some(op), &mut PullNothing { register: false });
        });
        push(&shared.registrar, &[&shared.y]);
        shared.registrar.make_room();
        finisher.join().unwrap();
        assert_eq!(shared.registrar.settled(), 1, "without further help");
        shared.work();
        shared.expect_settled(2);
    });
}

/// A thread recovers a variable while another fails the op for which that is skipped: it comes before or after, and the count
/// of failed variables is right.
#[test]
fn a_recovery_comes_before_or_after() {
    loom::model(|| {
        let shared = Shared::new();
        let fails = shared.start(&[&shared.y]);
        push(&shared.registrar, &[&shared.y, &shared.x]); // is skipped
        let finisher = spawn(&shared, move |shared| {
            let failure = Arc::new(Failure::new("op #0".to_owned(), Cause::Native(1)));
            // SAFETY: a running op is this thread's.
            unsafe { (*fails.as_ptr()).failure = Some(failure) };
            shared.registrar.drive(Some(fails), &mut PullNothing { register: false });
        });
        let recover = |variable: &Variable| {
            let mut turn = shared.registrar.turn();
            turn.catch_up();
            let (tracker, seat) = turn.parts();
            tracker.recover(seat, variable.node());
            turn.catch_up();
        };
        recover(&shared.x);
        finisher.join().unwrap();
        shared.work();
        shared.expect_settled(2);
        recover(&shared.x);
        recover(&shared.y);
        assert!(!shared.x.node().failed(), "it was skipped");
        assert!(shared.y.node().failed(), "the op ran");
        let mut turn = shared.registrar.turn();
        assert_eq!(turn.parts().0.failed_variables(), 1);
    });
}
