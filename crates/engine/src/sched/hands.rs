//! Finished ops that workers still have in their hands: to be settled several in one turn.
//!
//! A turn of the registrar makes the lines of its state travel to whoever takes it. For short ops that costs more than they
//! do, so a worker with another op at hand keeps what has run, and goes on. It settles them when it has nothing more at hand;
//! who takes the role meanwhile may do it as well. `pool/sleep.md` says when a worker may keep an op, and why nobody misses
//! it.
//!
//! A worker that keeps ops is marked, so that others look at few lines however many workers there are.
//!
//! | | a keeper | | a taker: the registrar, or who leaves ops to it |
//! |---|---|---|---|
//! | K | puts an op into its hand | T | clears the mark |
//! | M | marks itself, if the hand was empty | U | takes all that is in the hand |
//!
//! If U comes before K, the hand was empty and M comes after T; else U takes the op. So an op in an unmarked hand is about to be
//! marked, or to be taken. A mark may stand for nothing: then a taker clears it.

use super::inbox::Inbox;
use crate::op::{Op, OpPtr};
use crate::sync::{AtomicBool, AtomicU64, CachePadded, Ordering, full_fence_after_rmw};
use std::ptr;

/// Fewer workers keep nothing: nobody takes the lines away from one alone. In models it is the others that are few.
const FEWEST: usize = if cfg!(loom) { 1 } else { 2 };

/// Bits of a word of marks.
const WORD: usize = 64;

pub(crate) struct Hands {
    /// By worker: the last finished op first.
    kept: Box<[Inbox]>,
    /// The marks.
    keepers: Box<[CachePadded<AtomicU64>]>,
    /// Whether a thread waits for the end of an op, so that no op is to be kept.
    awaited: CachePadded<AtomicBool>,
}

impl Hands {
    /// Those of so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        let workers = if workers < FEWEST { 0 } else { workers };
        Self {
            kept: (0..workers).map(|_| Inbox::new()).collect(),
            keepers: (0..workers.div_ceil(WORD)).map(|_| CachePadded(AtomicU64::new(0))).collect(),
            awaited: CachePadded(AtomicBool::new(false)),
        }
    }

    /// Whether the worker of this number may keep ops.
    #[inline]
    pub(crate) fn has(&self, worker: usize) -> bool {
        worker < self.kept.len()
    }

    /// Whether any worker is marked.
    #[inline]
    pub(crate) fn are_empty(&self) -> bool {
        // ORDERING: SeqCst: the look of who counts on what is kept; pairs with keep().
        self.keepers.iter().all(|word| word.load(Ordering::SeqCst) == 0)
    }

    /// The workers that are marked.
    pub(crate) fn keepers(&self) -> impl Iterator<Item = usize> {
        self.keepers.iter().enumerate().flat_map(|(at, word)| {
            // ORDERING: as in are_empty().
            let mut marks = word.load(Ordering::SeqCst);
            std::iter::from_fn(move || {
                let first = marks.trailing_zeros() as usize;
                marks &= marks.wrapping_sub(1);
                (first < WORD).then_some(at * WORD + first)
            })
        })
    }

    /// The worker that is marked next behind this one, in a circle.
    #[inline]
    pub(crate) fn keeper_behind(&self, worker: usize) -> Option<usize> {
        let (words, first) = (self.keepers.len(), worker / WORD);
        (0..=words).find_map(|step| {
            let at = (first + step) % words.max(1);
            // ORDERING: as in are_empty().
            let marks = self.keepers.get(at)?.load(Ordering::SeqCst);
            let marks = if step == 0 { marks & (u64::MAX << (worker % WORD) << 1) } else { marks };
            (marks != 0).then(|| at * WORD + marks.trailing_zeros() as usize)
        })
    }

    /// Keeps an op.
    #[inline]
    pub(crate) fn keep(&self, worker: usize, op: OpPtr) {
        if self.kept[worker].put(op) {
            let (word, mark) = self.mark_of(worker);
            // ORDERING: SeqCst: the keeper's mark; it looks next who counts on it. Pairs with are_empty().
            word.fetch_or(mark, Ordering::SeqCst);
            full_fence_after_rmw();
        }
    }

    /// Whether a thread waits for the end of an op.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        // ORDERING: SeqCst: the keeper's look behind its mark; pairs with set_awaited().
        self.awaited.load(Ordering::SeqCst)
    }

    /// Takes what a worker keeps: the last one of a list linked by `next`, or null.
    #[inline]
    pub(crate) fn take(&self, worker: usize) -> *mut Op {
        if self.kept[worker].is_empty() && !self.is_marked(worker) {
            return ptr::null_mut();
        }
        let (word, mark) = self.mark_of(worker);
        // ORDERING: SeqCst: before the hand is looked at; see the module.
        word.fetch_and(!mark, Ordering::SeqCst);
        full_fence_after_rmw();
        // Its first look is SeqCst, behind the one above.
        self.kept[worker].take()
    }

    fn is_marked(&self, worker: usize) -> bool {
        let (word, mark) = self.mark_of(worker);
        // ORDERING: a guess: a mark that is made meanwhile stays.
        word.load(Ordering::Relaxed) & mark != 0
    }

    #[inline]
    fn mark_of(&self, worker: usize) -> (&AtomicU64, u64) {
        (&self.keepers[worker / WORD], 1 << (worker % WORD))
    }

    /// Says whether a thread waits for the end of an op. The registrar settles what is kept once it has said so.
    pub(crate) fn set_awaited(&self, awaited: bool) {
        // ORDERING: SeqCst: the registrar's half of the handshake with a keeper; pairs with is_awaited().
        self.awaited.swap(awaited, Ordering::SeqCst);
        full_fence_after_rmw();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn keepers_take_turns() {
        let hands = Hands::new(200);
        assert!(hands.are_empty() && hands.keeper_behind(7).is_none());
        let mut cells = crate::op::Slab::new();
        cells.supply(crate::op::Chunk::new());
        let keepers = [0, 63, 64, 128, 199];
        for worker in keepers {
            assert!(hands.has(worker));
            hands.keep(worker, OpPtr::from_raw(cells.take()).expect("a cell"));
        }
        assert!(hands.keepers().eq(keepers));
        let turns: Vec<_> = std::iter::successors(Some(63), |worker| hands.keeper_behind(*worker)).take(6).collect();
        assert_eq!(turns, [63, 64, 128, 199, 0, 63]);
        for worker in keepers {
            assert!(!hands.take(worker).is_null());
            assert!(hands.take(worker).is_null());
        }
        assert!(hands.are_empty());
        assert!(!hands.has(200) && !Hands::new(1).has(0) && Hands::new(0).keeper_behind(0).is_none());
    }
}
