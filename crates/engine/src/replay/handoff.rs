//! Steps from hand to hand: from the holder of an instance's role to one worker that waits for some.
//!
//! A token passes the engine's inbox and a queue on its way to another worker; steps that are handed over take
//! two cache lines.
//!
//! | state | the worker that waits | the role's holder |
//! |---|---|---|
//! | empty | any worker without steps may become it | |
//! | waiting | looks for a while, then makes it empty | writes steps, then says that they are given |
//! | given | takes them, then makes it empty | |
//!
//! Both ways out of `waiting` are compare-exchanges, so one of them fails. The place of the steps is the holder's, but the waiting
//! worker's while they are given.

use super::state::Batch;
use crate::sync::{AtomicU32, Ordering, UnsafeCell, spin_hint};

const EMPTY: u32 = 0;
const WAITING: u32 = 1;
const GIVEN: u32 = 2;

/// See the module.
pub(super) struct Handoff {
    state: AtomicU32,
    steps: UnsafeCell<Batch>,
}

impl Handoff {
    pub(super) fn new() -> Self {
        Self { state: AtomicU32::new(EMPTY), steps: UnsafeCell::new(Batch::new()) }
    }

    /// Whether a worker waits; the role's holder asks.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        // ORDERING: a guess.
        self.state.load(Ordering::Relaxed) == WAITING
    }

    /// Gives steps to the worker that waits. Answers whether there is one.
    ///
    /// # Safety
    ///
    /// The caller holds the instance's role.
    pub(super) unsafe fn give(&self, steps: &Batch) -> bool {
        // ORDERING: Acquire pairs with wait(): who took the last ones has read them.
        if self.state.load(Ordering::Acquire) != WAITING {
            return false;
        }
        // SAFETY: the role is the caller's, and none are given.
        self.steps.with_mut(|place| unsafe { *place = *steps });
        // ORDERING: Release publishes the steps; Acquire as above, for a worker that came meanwhile.
        self.state.compare_exchange(WAITING, GIVEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Waits while `waits` says so for steps, which are in the batch then, if no other worker does.
    pub(super) fn wait(&self, batch: &mut Batch, mut waits: impl FnMut() -> bool) {
        // ORDERING: Acquire pairs with the last worker's Release, so that what the holder sees behind this follows it.
        if self.state.compare_exchange(EMPTY, WAITING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        // ORDERING: the steps are read behind the exchange.
        while self.state.load(Ordering::Relaxed) == WAITING && waits() {
            spin_hint();
        }
        // ORDERING: Acquire on failure pairs with give(); Release: the next one that waits follows.
        if self.state.compare_exchange(WAITING, EMPTY, Ordering::Release, Ordering::Acquire).is_ok() {
            return;
        }
        // SAFETY: given steps are the waiting worker's.
        self.steps.with(|place| unsafe { *batch = *place });
        // ORDERING: the holder's next write follows our look.
        self.state.store(EMPTY, Ordering::Release);
    }
}
