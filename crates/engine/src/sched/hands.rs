//! Finished ops that workers still have in their hands: to be settled several in one turn.
//!
//! A turn of the registrar makes the lines of its state travel to whoever takes it. For short ops that costs more than they
//! do, so a worker with another op at hand keeps what has run, and goes on. It settles them when it has nothing more at hand;
//! who takes the role meanwhile may do it as well. `pool/sleep.md` says when a worker may keep an op, and why nobody misses
//! it.

use super::inbox::Inbox;
use crate::op::OpPtr;
use crate::sync::{AtomicBool, CachePadded, Ordering, full_fence_after_rmw};

/// Fewer workers keep nothing: nobody takes the lines away from one alone. In models it is the others that are few.
const FEWEST: usize = if cfg!(loom) { 1 } else { 2 };

pub(crate) struct Hands {
    /// By worker: the last finished op first.
    kept: Box<[Inbox]>,
    /// Whether a thread waits for the end of an op, so that no op is to be kept.
    awaited: CachePadded<AtomicBool>,
}

impl Hands {
    /// Those of so many workers.
    pub(super) fn new(workers: usize) -> Self {
        let workers = if workers < FEWEST { 0 } else { workers };
        Self { kept: (0..workers).map(|_| Inbox::new()).collect(), awaited: CachePadded(AtomicBool::new(false)) }
    }

    /// How many workers may keep ops.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.kept.len()
    }

    /// The ops that a worker keeps.
    #[inline]
    pub(super) fn of(&self, worker: usize) -> &Inbox {
        &self.kept[worker]
    }

    /// Whether any worker keeps any.
    #[inline]
    pub(super) fn are_empty(&self) -> bool {
        self.kept.iter().all(Inbox::is_empty)
    }

    /// Keeps an op. Answers whether it may stay there: no thread waits for the end of an op.
    #[inline]
    pub(super) fn keep(&self, worker: usize, op: OpPtr) -> bool {
        self.kept[worker].put(op);
        // ORDERING: SeqCst: the keeper's look after it has put the op there; pairs with set_awaited().
        !self.awaited.load(Ordering::SeqCst)
    }

    /// Says whether a thread waits for the end of an op. The registrar settles what is kept once it has said so.
    pub(super) fn set_awaited(&self, awaited: bool) {
        // ORDERING: SeqCst: the registrar's half of the handshake with a keeper; pairs with keep().
        self.awaited.swap(awaited, Ordering::SeqCst);
        full_fence_after_rmw();
    }
}
