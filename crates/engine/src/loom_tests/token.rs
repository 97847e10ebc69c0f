//! A completion token, its clones, and the payload that returns: the op is delivered once, after all, and is among those
//! whose tokens are out until then.

use super::{fill, nothing};
use crate::failure::Cause;
use crate::op::{Chunk, Completion, Deferred, Deliver, Listing, Op, OpContext, OpPtr, Slab};
use crate::sync::{AtomicU32, Ordering};
use loom::cell::UnsafeCell;
use loom::thread;
use std::any::Any;
use std::sync::Arc;

type Answer = Result<(), Cause>;

/// What came back; loom objects to two deliveries at the same time.
struct Deliveries {
    answers: UnsafeCell<Vec<Answer>>,
    strays: AtomicU32,
    deferred: Deferred,
}

// SAFETY: loom checks it.
unsafe impl Sync for Deliveries {}
// SAFETY: as above.
unsafe impl Send for Deliveries {}

impl Deliver for Deliveries {
    fn deliver(&self, _: OpPtr, answer: Answer) {
        assert!(self.deferred.ops().is_empty(), "it left before");
        // SAFETY: loom checks it.
        self.answers.with_mut(|answers| unsafe { (*answers).push(answer) });
    }

    fn deferred(&self) -> Option<&Deferred> {
        Some(&self.deferred)
    }

    fn stray(&self, _: &str, _: Cause) {
        // ORDERING: a count.
        self.strays.fetch_add(1, Ordering::Relaxed);
    }

    fn host(&self) -> &dyn Any {
        &()
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
        fill(cell, &[], nothing);
        // SAFETY: it has just been filled; no registrar opens it here.
        unsafe { Op::open(cell, 0) };
        let op = OpPtr::from_raw(cell).expect("a cell");
        let (answers, strays) = (UnsafeCell::default(), AtomicU32::new(0));
        let deliveries = Arc::new(Deliveries { answers, strays, deferred: Deferred::new() });
        let deliver: Arc<dyn Deliver> = Arc::clone(&deliveries) as _;
        let mut context = OpContext::new(op, &deliver);
        let threads = uses.map(|use_it| {
            let token = context.defer();
            thread::spawn(move || use_it(token))
        });
        assert!(deliveries.deferred.ops().iter().all(|&it| it == op), "it is there, or has ended");
        let by_return = context.conclude(returns());
        let succeeded = threads.map(|thread| thread.join().unwrap()).into_iter().filter(|&used| used).count();
        // SAFETY: all threads have ended.
        let mut answers = deliveries.answers.with_mut(|answers| unsafe { std::mem::take(&mut *answers) });
        answers.extend(by_return);
        assert!(deliveries.deferred.ops().is_empty(), "it has ended");
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

/// Two ops whose tokens are used at the same time, with a third between them: each leaves the list, whatever the others do.
#[test]
fn neighbours() {
    loom::model(|| {
        let deferred = Arc::new(Deferred::new());
        let mut slab = Slab::new();
        slab.supply(Chunk::new());
        let cells: Vec<_> = std::iter::repeat_with(|| slab.take()).take(3).collect();
        let enter = |&cell: &*mut _| {
            let place = Box::new(Listing::new(OpPtr::from_raw(cell).expect("a cell")));
            // SAFETY: it is new, and leaves below, before it is dropped.
            unsafe { deferred.enter(&place) };
            Leaving(place)
        };
        let places: Vec<_> = cells.iter().map(enter).collect();
        let [first, middle, last] = places.try_into().ok().expect("three");
        let threads = [first, last].map(|place| {
            let deferred = Arc::clone(&deferred);
            // SAFETY: it has entered, and leaves once.
            thread::spawn(move || unsafe { deferred.leave(&{ place }.0) })
        });
        let seen = deferred.ops();
        assert!(seen.contains(&OpPtr::from_raw(cells[1]).expect("a cell")) && seen.len() <= 3);
        // SAFETY: as above.
        unsafe { deferred.leave(&middle.0) };
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(deferred.ops().is_empty());
        // SAFETY: the cells were never filled.
        cells.into_iter().for_each(|cell| unsafe { slab.give(cell) });
    });
}

/// A place on its way to another thread.
struct Leaving(Box<Listing>);

// SAFETY: its links are touched under the list's lock alone, which loom checks.
unsafe impl Send for Leaving {}
