//! A completion token, its clones, and the payload that returns: the op is delivered once, after all.

use super::{fill, nothing};
use crate::failure::Cause;
use crate::op::{Chunk, Completion, Deliver, OpContext, OpPtr, Slab};
use crate::sync::{AtomicU32, Ordering};
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

type Answer = Result<(), Cause>;

/// What came back; loom objects to two deliveries at once.
struct Deliveries {
    answers: UnsafeCell<Vec<Answer>>,
    strays: AtomicU32,
}

// SAFETY: loom checks it.
unsafe impl Sync for Deliveries {}
// SAFETY: as above.
unsafe impl Send for Deliveries {}

impl Deliver for Deliveries {
    fn deliver(&self, _: OpPtr, answer: Answer) {
        // SAFETY: loom checks it.
        self.answers.with_mut(|answers| unsafe { (*answers).push(answer) });
    }

    fn stray(&self, _: &str, _: Cause) {
        // ORDERING: a count.
        self.strays.fetch_add(1, Ordering::Relaxed);
    }
}

/// What became of an op: its answers, uses of its token that succeeded, and strays.
type Outcome = (Vec<Answer>, usize, u32);

/// Two threads have a clone of the token each while the payload returns.
fn model(uses: [fn(Completion) -> bool; 2], returns: fn() -> Answer, check: fn(Outcome)) {
    loom::model(move || {
        let mut slab = Slab::new();
        slab.supply(Chunk::new());
        let cell = slab.take();
        fill(cell, 0, &[], nothing);
        let op = OpPtr::from_raw(cell).expect("a cell");
        let deliveries = Arc::new(Deliveries { answers: UnsafeCell::default(), strays: AtomicU32::new(0) });
        let deliver: Arc<dyn Deliver> = Arc::clone(&deliveries) as _;
        let mut context = OpContext::new(op, &deliver);
        let threads = uses.map(|use_it| {
            let token = context.defer();
            thread::spawn(move || use_it(token))
        });
        let by_return = context.conclude(returns());
        let succeeded = threads.map(|thread| thread.join().unwrap()).into_iter().filter(|&used| used).count();
        // SAFETY: all threads have ended.
        let mut answers = deliveries.answers.with_mut(|answers| unsafe { std::mem::take(&mut *answers) });
        answers.extend(by_return);
        // ORDERING: as above.
        check((answers, succeeded, deliveries.strays.load(Ordering::Relaxed)));
        // SAFETY: the op is over and known to nobody else.
        unsafe { slab.give(cell) };
    });
}

fn complete(token: Completion) -> bool {
    token.complete(Ok(())).is_ok()
}

fn fail(token: Completion) -> bool {
    token.complete(Err(Cause::Native(1))).is_ok()
}

fn forget(token: Completion) -> bool {
    drop(token);
    false
}

fn error() -> Answer {
    Err(Cause::Native(2))
}

#[test]
fn used_twice() {
    model([complete, fail], || Ok(()), |outcome| assert!(matches!(&outcome, (answers, 1, 0) if answers.len() == 1)));
}

#[test]
fn used_and_dropped() {
    model([complete, forget], || Ok(()), |outcome| assert!(matches!(&outcome.0[..], [Ok(())]), "{outcome:?}"));
}

#[test]
fn dropped() {
    let dropped = |outcome: Outcome| assert!(matches!(&outcome.0[..], [Err(Cause::TokenDropped)]), "{outcome:?}");
    model([forget, forget], || Ok(()), dropped);
}

/// The payload's error is the op's, or is told of beside it.
#[test]
fn used_while_the_payload_fails() {
    model([complete, forget], error, |outcome| match &outcome {
        (answers, 1, 1) => assert!(matches!(answers[..], [Ok(())]), "{outcome:?}"),
        (answers, 0, 0) => assert!(matches!(answers[..], [Err(Cause::Native(2))]), "{outcome:?}"),
        _ => panic!("{outcome:?}"),
    });
}
