//! A worker's place in its lane, as the others see it.

use crate::op::{Op, OpPtr};
use crate::sync::{AtomicBool, AtomicPtr, Ordering, Unparker};
use crossbeam_deque::Stealer;
use std::ptr;

pub(crate) struct WorkerSeat {
    pub(crate) native: Stealer<OpPtr>,
    pub(crate) hosted: Stealer<OpPtr>,
    unparker: Unparker,
    asleep: AtomicBool,
    running: AtomicPtr<Op>,
}

impl WorkerSeat {
    pub(crate) fn new(native: Stealer<OpPtr>, hosted: Stealer<OpPtr>, unparker: Unparker) -> Self {
        Self { native, hosted, unparker, asleep: AtomicBool::new(false), running: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Announces that the worker is about to sleep.
    pub(crate) fn fall_asleep(&self) {
        // ORDERING: pairs with the swap in claim(); the lane's counters, changed next, carry the handshake.
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// Takes the right to wake this worker, or, for the worker itself, the right to stay awake.
    pub(crate) fn claim(&self) -> bool {
        // ORDERING: as in fall_asleep(); one of several claimers wins.
        self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn wake(&self) {
        self.unparker.unpark();
    }

    /// Notes the op that the worker runs now; null for none.
    #[inline]
    pub(crate) fn note(&self, op: *mut Op) {
        // ORDERING: Release pairs with running(): who sees the op sees its fields. The op is
        // noted away before it is delivered, so a noted op is pending for whoever has the role.
        self.running.store(op, Ordering::Release);
    }

    /// The op that the worker runs.
    pub(crate) fn running(&self) -> Option<OpPtr> {
        // ORDERING: pairs with note().
        OpPtr::from_raw(self.running.load(Ordering::Acquire))
    }

    /// Whether others could steal from it.
    pub(crate) fn has_native(&self) -> bool {
        !self.native.is_empty()
    }

    pub(crate) fn has_hosted(&self) -> bool {
        !self.hosted.is_empty()
    }
}
