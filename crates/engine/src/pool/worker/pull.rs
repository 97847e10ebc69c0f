//! The pull of a worker: its next batch.

use super::super::pace::Pace;
use crate::op::OpPtr;
use crate::sched::Pull;
use crossbeam_deque::Worker as Deque;
use std::ops::Range;

/// Pulls into a worker's hands. Where ops go in the order of their pushes, one at a time: the next one is chosen when
/// all that the last one has made ready is known, and none of these goes first.
pub(super) struct IntoWorker<'a> {
    pub(super) queue: usize,
    pub(super) next: &'a mut Option<OpPtr>,
    pub(super) chained: &'a mut u32,
    pub(super) deque: &'a Deque<OpPtr>,
    pub(super) wanted: usize,
    pub(super) has_other: bool,
    /// Its number among the workers that may keep finished ops.
    pub(super) hand: Option<usize>,
    /// Ops in a row that may be taken over.
    pub(super) chain: u32,
    pub(super) pace: &'a Pace,
    /// Whether it draws ops though no thread waits.
    pub(super) insists: bool,
}

impl Pull for IntoWorker<'_> {
    #[inline]
    fn queues(&self) -> Range<usize> {
        self.queue..self.queue + 1
    }

    #[inline]
    fn wanted(&self) -> usize {
        self.wanted
    }

    #[inline]
    fn has_other(&self) -> bool {
        self.has_other
    }

    #[inline]
    fn reach(&self) -> u64 {
        if self.next.is_none() { u64::MAX } else { self.pace.reach(self.wanted) }
    }

    #[inline]
    fn insists(&self) -> bool {
        self.insists
    }

    #[inline]
    fn hand(&self) -> Option<usize> {
        self.hand
    }

    #[inline]
    fn take(&mut self, op: OpPtr) {
        self.wanted = self.wanted.saturating_sub(1);
        if self.next.is_none() {
            *self.next = Some(op);
        } else {
            self.deque.push(op);
        }
    }

    #[inline]
    fn take_over(&mut self, queue: usize, op: OpPtr) -> bool {
        let taken = self.next.is_none() && queue == self.queue && *self.chained < self.chain;
        if taken {
            *self.chained += 1;
            self.take(op);
        }
        taken
    }
}
