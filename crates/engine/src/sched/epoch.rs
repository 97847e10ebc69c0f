//! Epochs: which ops a `wait_for_all` covers.
//!
//! Ops are counted in the epoch that is open when they are registered. A wait for all closes it.
//! The wait ends when its epoch and all before it are empty, whatever is pushed later.

use crate::waiter::Waiter;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Default)]
struct Epoch {
    pending: u64,
    waiters: Vec<Arc<Waiter>>,
}

pub(crate) struct Epochs {
    /// Number of the first epoch in `open`, modulo 2^32.
    first: u32,
    open: VecDeque<Epoch>,
}

impl Epochs {
    pub(crate) fn new() -> Self {
        Self { first: 0, open: VecDeque::from([Epoch::default()]) }
    }

    /// Counts one op in; answers its epoch.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // numbers wrap; fewer than 2^32 waits are open at once
    pub(crate) fn enter(&mut self) -> u32 {
        let last = self.open.len() - 1;
        self.open[last].pending += 1;
        self.first.wrapping_add(last as u32)
    }

    /// Counts one op of `epoch` out; waiters whose wait this ends go to `ended`.
    #[inline]
    pub(crate) fn leave(&mut self, epoch: u32, ended: impl FnMut(Arc<Waiter>)) {
        let at = epoch.wrapping_sub(self.first) as usize;
        let epoch = &mut self.open[at];
        epoch.pending -= 1;
        if epoch.pending == 0 && at == 0 && self.open.len() > 1 {
            self.advance(ended);
        }
    }

    /// Closes the open epoch for `waiter`.
    pub(crate) fn close(&mut self, waiter: Arc<Waiter>, ended: impl FnMut(Arc<Waiter>)) {
        let last = self.open.len() - 1;
        self.open[last].waiters.push(waiter);
        self.open.push_back(Epoch::default());
        self.advance(ended);
    }

    /// Drops the empty epochs at the front; the last one stays open.
    fn advance(&mut self, mut ended: impl FnMut(Arc<Waiter>)) {
        while self.open.len() > 1 && self.open[0].pending == 0 {
            if let Some(epoch) = self.open.pop_front() {
                epoch.waiters.into_iter().for_each(&mut ended);
            }
            self.first = self.first.wrapping_add(1);
        }
    }
}
