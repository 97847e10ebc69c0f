//! Steps in a worker's hands: how many it asks for, how they are to be run, which were.

use super::{Call, NONE};
use std::ptr;

/// Steps that a worker takes at a time.
pub(crate) const BATCH: usize = if cfg!(loom) { 1 } else { 16 };

/// A step in a batch that is not to be run but skipped.
pub(super) const DOOMED: u32 = 1 << 31;

/// What a worker asks of an instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Steps to run, at most.
    pub(crate) steps: usize,
    /// The seed with which they are drawn among the ready ones.
    pub(crate) draw: Option<u64>,
    /// Whether other workers may take a part, and wait for it at the instance.
    pub(crate) shares: bool,
}

impl Wanted {
    /// For who has finished a step that has a cell.
    pub(crate) const NOTHING: Self = Self { steps: 0, draw: None, shares: false };

    /// Whether steps go in any order that saves time: they are neither drawn, nor chosen each time.
    pub(super) fn goes_by_time(self) -> bool {
        self.steps > 1 && self.draw.is_none()
    }
}

/// Steps that a worker has taken, and those of them, or behind them, that it has finished.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    pub(super) steps: [u32; BATCH],
    pub(super) count: usize,
    /// Whether they were run.
    pub(super) done: bool,
    /// Steps run behind these, which need no counting.
    pub(super) behind: u32,
    /// The call they are of; valid until they are counted.
    pub(crate) call: *const Call,
    pub(crate) manner: Manner,
}

/// How steps are to be run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner {
    /// Whether each is to be timed.
    pub(crate) timed: bool,
    /// Whether they go by the graph in which steps follow each other one by one.
    pub(crate) sequential: bool,
    /// Whether others may be run right behind them.
    pub(crate) goes_on: bool,
}

impl Batch {
    pub(crate) fn new() -> Self {
        let (steps, call, manner) = ([NONE; BATCH], ptr::null(), Manner::default());
        Self { steps, count: 0, done: true, behind: 0, call, manner }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[allow(clippy::cast_possible_truncation)] // at most BATCH
    pub(super) fn size(&self) -> u32 {
        self.count as u32
    }

    pub(super) fn is_done(&self) -> bool {
        self.done && self.count > 0
    }

    /// One of these steps.
    pub(super) fn of(steps: &[u32], behind: u32, call: *const Call, manner: Manner, done: bool) -> Self {
        let mut batch = Self { steps: [NONE; BATCH], count: steps.len(), done, behind, call, manner };
        batch.steps[..steps.len()].copy_from_slice(steps);
        batch
    }

    /// Forgets steps that others have counted.
    pub(super) fn clear(&mut self) {
        (self.count, self.behind) = (0, 0);
    }

    pub(super) fn take_behind(&mut self) -> u32 {
        std::mem::take(&mut self.behind)
    }

    pub(super) fn steps(&self) -> &[u32] {
        &self.steps[..self.count]
    }

    #[inline]
    pub(super) fn take_done(&mut self, mut each: impl FnMut(u32)) {
        for &step in &self.steps[..std::mem::take(&mut self.count)] {
            each(step);
        }
    }

    /// Runs each step by `run`, which is told whether it is doomed and answers the last one that it ran behind it and how
    /// many these were.
    #[inline]
    pub(crate) fn run(&mut self, mut run: impl FnMut(u32, bool) -> (u32, u32)) {
        for step in &mut self.steps[..self.count] {
            let (last, behind) = run(*step & !DOOMED, *step & DOOMED != 0);
            *step = last;
            self.behind += behind;
        }
        self.done = true;
    }
}
