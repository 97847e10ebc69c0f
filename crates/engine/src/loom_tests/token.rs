//! A completion token, its clones, and the payload that returns: the op is delivered once, after both.

use super::fill;
use crate::failure::Cause;
use crate::op::{Chunk, Deliver, OpContext, OpPtr, Slab};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc;

#[derive(Default)]
struct Deliveries(AtomicUsize);

impl Deliver for Deliveries {
    fn deliver(&self, _: OpPtr, _: Result<(), Cause>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn stray(&self, _: &str, _: Cause) {}
}

/// Two threads use or drop the token while the payload returns.
fn model(complete: [bool; 2]) {
    loom::model(move || {
        let mut slab = Slab::new();
        slab.supply(Chunk::new());
        let cell = slab.take();
        fill(cell, 0, &[]);
        let op = OpPtr::from_raw(cell).expect("a cell");
        let deliveries = Arc::new(Deliveries::default());
        let deliver: Arc<dyn Deliver> = Arc::clone(&deliveries) as _;
        let mut context = OpContext::new(op, &deliver);
        let threads: Vec<_> = complete
            .into_iter()
            .map(|complete| {
                let token = context.defer();
                thread::spawn(move || complete && token.complete(Ok(())).is_ok())
            })
            .collect();
        let by_return = usize::from(context.conclude(Ok(())).is_some());
        let used =
            threads.into_iter().filter(|_| true).map(|thread| thread.join().unwrap()).filter(|&used| used).count();
        assert_eq!(used, usize::from(complete.contains(&true)), "one use succeeds");
        assert_eq!(by_return + deliveries.0.load(Ordering::SeqCst), 1, "the op is delivered once");
        // SAFETY: the op is over and known to nobody else.
        unsafe { slab.give(cell) };
    });
}

#[test]
fn loom_token_used_twice() {
    model([true, true]);
}

#[test]
fn loom_token_used_and_dropped() {
    model([true, false]);
}

#[test]
fn loom_token_dropped() {
    model([false, false]);
}
