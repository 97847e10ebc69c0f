//! What a worker keeps: its mark is there for as long as it has an op in its hand.

use crate::op::{Chunk, Op, OpPtr, Slab};
use crate::sched::Hands;
use loom::thread;
use std::sync::Arc;

/// Takes what marked workers keep. Answers how many ops these were.
fn take_marked(hands: &Hands) -> usize {
    hands.keepers().map(|keeper| count(hands.take(keeper))).sum()
}

fn count(first: *mut Op) -> usize {
    // SAFETY: ops that were taken are the taker's.
    std::iter::successors(OpPtr::from_raw(first), |op| OpPtr::from_raw(unsafe { (*op.as_ptr()).next })).count()
}

/// A worker keeps three ops as two other threads take what is marked: whatever is left is marked.
#[test]
fn what_lies_in_a_hand_is_marked() {
    loom::model(|| {
        let (hands, mut slab) = (Arc::new(Hands::new(1)), Slab::new());
        slab.supply(Chunk::new());
        let takers = [(); 2].map(|()| {
            let hands = Arc::clone(&hands);
            thread::spawn(move || take_marked(&hands))
        });
        for _ in 0..3 {
            hands.keep(0, OpPtr::from_raw(slab.take()).expect("a cell"));
        }
        let taken: usize = takers.map(|taker| taker.join().unwrap()).into_iter().sum();
        assert_eq!(taken + take_marked(&hands), 3);
        assert!(hands.are_empty());
    });
}
