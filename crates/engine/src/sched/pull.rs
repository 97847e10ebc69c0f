//! The request to a turn: lanes, and numbers of ops.

use crate::op::OpPtr;
use std::ops::Range;

/// The wanted yield of a turn: ready ops of one queue.
pub(crate) trait Pull {
    /// The queues to pull from, the first one first.
    fn queues(&self) -> Range<usize>;

    /// Ops still wanted. Only one is given at a time while ops are ordered by priority.
    fn wanted(&self) -> usize;

    /// Whether the puller has other ops at hand, so that an ordered one must beat priority 0.
    fn has_other(&self) -> bool;

    /// Pushes registered and not settled with which it leaves the others in the ring.
    fn reach(&self) -> u64;

    /// Whether it is given ops of a lane that draws them though no thread waits.
    fn insists(&self) -> bool {
        true
    }

    /// The puller's number among the workers that may keep finished ops.
    fn hand(&self) -> Option<usize> {
        None
    }

    /// Takes a ready op.
    fn take(&mut self, op: OpPtr);

    /// Takes an op of this queue that a finished one has made ready, to run it next, ahead of older
    /// ones. Answers whether it does.
    fn take_over(&mut self, _queue: usize, _op: OpPtr) -> bool {
        false
    }
}

/// Pulls nothing: for threads that are no workers.
pub(crate) struct PullNothing {
    /// Whether to register pushes all the same, so that a full ring gets room.
    pub(crate) register: bool,
}

impl Pull for PullNothing {
    fn queues(&self) -> Range<usize> {
        0..0
    }

    fn wanted(&self) -> usize {
        usize::from(self.register)
    }

    fn has_other(&self) -> bool {
        false
    }

    fn reach(&self) -> u64 {
        u64::MAX
    }

    fn take(&mut self, _: OpPtr) {}
}
