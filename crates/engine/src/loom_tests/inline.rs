//! Threads that run ready ops themselves: one of them runs every push.

use super::{push, push_payload};
use crate::op::OpContext;
use crate::pool::{DirectHost, Policy, Pool};
use loom::thread;
use std::sync::Arc;

fn pool() -> Arc<Pool> {
    Arc::new(Pool::new(Policy::Serial, 1, String::new(), Arc::new(DirectHost)))
}

/// Who registers an op of another thread must not leave it to that thread, which may have looked and gone.
#[test]
fn a_push_is_run_by_the_one_or_the_other() {
    loom::model(|| {
        let pool = pool();
        let theirs = Arc::clone(&pool);
        let other = thread::spawn(move || {
            push(&theirs.registrar, &[]);
            theirs.pushed(0, false);
        });
        push(&pool.registrar, &[]);
        pool.pushed(0, false);
        other.join().unwrap();
        assert_eq!(pool.registrar.pending(), 0);
    });
}

/// An op that is completed by another thread, while a third pushes.
#[test]
fn a_completion_runs_what_it_makes_ready() {
    loom::model(|| {
        let pool = pool();
        let (sender, receiver) = loom::sync::mpsc::channel();
        push_payload(&pool.registrar, move |context: &mut OpContext<'_>| {
            sender.send(context.defer()).unwrap();
            Ok(())
        });
        pool.pushed(0, false);
        let token = receiver.recv().unwrap();
        let other = thread::spawn(move || token.complete(Ok(())).unwrap());
        push(&pool.registrar, &[]);
        pool.pushed(0, false);
        other.join().unwrap();
        assert_eq!(pool.registrar.pending(), 0);
    });
}
