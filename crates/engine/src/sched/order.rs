//! The orders of a lane's ready ops, and the order that is drawn at random.
//!
//! A draw depends on the seed and on the *set* of ready ops, not on how they became ready: ops that became ready since
//! the last draw are sorted by their pushes first. And the ready ops at a draw depend on the program alone as long as
//! one thread pushes, as the lane hands out nothing before a thread waits (`Tracker::is_awaited`), and all pushes
//! before that wait are registered by then.

use crate::op::{OpPtr, Pushed};
use crate::random::{below, number};

/// The order of a lane's ready ops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The first one ready goes first; a worker may take many at a time, and chains.
    Ready,
    /// The first one pushed goes first, one by one: the lane decides the order of work elsewhere.
    Pushed,
    /// One by one, each drawn at random with this seed, native and hosted ops alike. Priorities do not count.
    Drawn(u64),
}

impl Order {
    /// Whether a worker takes one op at a time, when all that could go next is known.
    #[inline]
    pub(crate) fn is_one_by_one(self) -> bool {
        self != Self::Ready
    }

    /// Whether the next op is drawn at random.
    #[inline]
    pub(crate) fn draws(self) -> bool {
        matches!(self, Self::Drawn(_))
    }
}

/// Ready ops that are drawn one after the other.
pub(super) struct Drawn {
    seed: u64,
    draws: u64,
    ops: Vec<OpPtr>,
    /// Those that became ready since the last draw.
    fresh: Vec<(Pushed, OpPtr)>,
}

impl Drawn {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, draws: 0, ops: Vec::new(), fresh: Vec::new() }
    }

    pub(super) fn push(&mut self, op: OpPtr) {
        // SAFETY: a ready op that was not handed out is the registrar's.
        self.fresh.push((unsafe { Pushed::of(op.as_ptr()) }, op));
    }

    pub(super) fn pop(&mut self) -> Option<OpPtr> {
        self.fresh.sort_by_key(|&(pushed, _)| pushed);
        self.ops.extend(self.fresh.drain(..).map(|(_, op)| op));
        if self.ops.is_empty() {
            return None;
        }
        let drawn = below(self.ops.len(), number(self.seed, self.draws));
        self.draws += 1;
        Some(self.ops.swap_remove(drawn))
    }
}
