//! Epochs: which ops a `wait_for_all` covers.
//!
//! Ops are counted in the epoch that is open when they are registered. A wait for all closes it. The wait ends when its
//! epoch and all before it are empty, regardless of later pushes.
//!
//! An epoch that is empty goes at once, wherever it stands: its waiter waits for the one before. So there are never more
//! of them than ops that have not ended, and the open one, for any number of waits.

use crate::waiter::Waiter;
use std::sync::Arc;

/// No epoch.
const NONE: u32 = u32::MAX;

struct Epoch {
    pending: u64,
    waiters: Vec<Arc<Waiter>>,
    /// The epoch before and the one after.
    before: u32,
    after: u32,
}

pub(crate) struct Epochs {
    places: Vec<Epoch>,
    /// Places that hold no epoch.
    free: Vec<u32>,
    /// The open epoch, the last one.
    open: u32,
    /// Waiters in all epochs.
    waiting: usize,
}

impl Epochs {
    pub(crate) fn new() -> Self {
        let first = Epoch { pending: 0, waiters: Vec::new(), before: NONE, after: NONE };
        Self { places: vec![first], free: Vec::new(), open: 0, waiting: 0 }
    }

    #[inline]
    fn at(&mut self, epoch: u32) -> &mut Epoch {
        &mut self.places[epoch as usize]
    }

    /// Counts one op in; answers its epoch.
    #[inline]
    pub(crate) fn enter(&mut self) -> u32 {
        let open = self.open;
        self.at(open).pending += 1;
        open
    }

    /// Counts one op of `epoch` out; waiters at their end go to `ended`.
    #[inline]
    pub(crate) fn leave(&mut self, epoch: u32, ended: impl FnMut(Arc<Waiter>)) {
        let open = self.open;
        let at = self.at(epoch);
        at.pending -= 1;
        if at.pending == 0 && epoch != open {
            self.remove(epoch, ended);
        }
    }

    /// Closes the open epoch for `waiter`.
    pub(crate) fn close(&mut self, waiter: Arc<Waiter>, ended: impl FnMut(Arc<Waiter>)) {
        let closed = self.open;
        self.open = self.add(closed);
        let open = self.open;
        let epoch = self.at(closed);
        epoch.after = open;
        epoch.waiters.push(waiter);
        let is_empty = epoch.pending == 0;
        self.waiting += 1;
        if is_empty {
            self.remove(closed, ended);
        }
    }

    /// Forgets a waiter that waits no more.
    pub(crate) fn withdraw(&mut self, waiter: &Arc<Waiter>) {
        for epoch in &mut self.places {
            let before = epoch.waiters.len();
            epoch.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
            self.waiting -= before - epoch.waiters.len();
        }
    }

    /// Whether anybody waits.
    pub(crate) fn are_awaited(&self) -> bool {
        self.waiting > 0
    }

    fn add(&mut self, before: u32) -> u32 {
        let epoch = Epoch { pending: 0, waiters: Vec::new(), before, after: NONE };
        if let Some(place) = self.free.pop() {
            *self.at(place) = epoch;
            return place;
        }
        self.places.push(epoch);
        u32::try_from(self.places.len() - 1).unwrap_or(NONE)
    }

    /// Takes a closed and empty epoch out. Its waiters go to the one before, or have waited long enough.
    #[cold]
    fn remove(&mut self, epoch: u32, ended: impl FnMut(Arc<Waiter>)) {
        let Epoch { waiters, before, after, .. } = self.at(epoch);
        let (waiters, before, after) = (std::mem::take(waiters), *before, *after);
        if after != NONE {
            self.at(after).before = before;
        }
        if before == NONE {
            self.waiting -= waiters.len();
            waiters.into_iter().for_each(ended);
        } else {
            let earlier = self.at(before);
            earlier.after = after;
            earlier.waiters.extend(waiters);
        }
        self.free.push(epoch);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::Parker;

    fn closed(epochs: &mut Epochs) -> (Arc<Waiter>, bool) {
        let (waiter, mut ended) = (Waiter::new(&Parker::new()), false);
        epochs.close(Arc::clone(&waiter), |_| ended = true);
        (waiter, ended)
    }

    #[test]
    fn a_wait_ends_with_all_ops_before_it_in_whatever_order_they_end() {
        let mut epochs = Epochs::new();
        let first = epochs.enter();
        let (one, _) = closed(&mut epochs);
        let second = epochs.enter();
        let (two, ended) = closed(&mut epochs);
        let third = epochs.enter();
        assert!(!ended);
        epochs.leave(second, |_| panic!("the first one is pending"));
        epochs.leave(third, |_| panic!("nobody waits for it"));
        let mut ended = Vec::new();
        epochs.leave(first, |waiter| ended.push(waiter));
        assert!(ended.iter().any(|waiter| Arc::ptr_eq(waiter, &one)));
        assert!(ended.iter().any(|waiter| Arc::ptr_eq(waiter, &two)));
        assert!(closed(&mut epochs).1, "nothing is pending");
    }

    #[test]
    fn waits_that_give_up_leave_nothing_behind() {
        let mut epochs = Epochs::new();
        let long = epochs.enter();
        for _ in 0..1000 {
            let short = epochs.enter();
            let (waiter, ended) = closed(&mut epochs);
            assert!(!ended);
            epochs.leave(short, |_| panic!("the long one is pending"));
            epochs.withdraw(&waiter);
            assert_eq!(Arc::strong_count(&waiter), 1);
        }
        assert!(epochs.places.len() <= 3, "{} places", epochs.places.len());
        epochs.leave(long, |_| panic!("nobody waits"));
    }
}
