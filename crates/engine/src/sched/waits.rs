//! Waits: how the registrar answers those that ask for a variable, for all ops, or for room.

use super::tracker::{Tracker, grant};
use crate::op::{Op, OpPtr};
use crate::var::{AccessNode, Seat, Settled, VarNode};
use crate::waiter::Waiter;
use std::ptr::NonNull;
use std::sync::Arc;

impl Tracker {
    pub(super) fn fence(&mut self, op: *mut Op) {
        // SAFETY: as in register().
        let waiter = unsafe { (*op).extra.take() }.and_then(|extra| extra.waiter);
        let sleepers = &mut self.outbox.sleepers;
        if let Some(waiter) = waiter {
            self.epochs.close(waiter, |waiter| {
                if waiter.answer(None) {
                    sleepers.push(waiter);
                }
            });
        }
        // SAFETY: a fence has no accesses and no payload, and is not known elsewhere.
        unsafe { self.free(op) };
    }

    /// Whether a thread waits for something, or ops that have not started are to end.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaits_op() || self.epochs.are_awaited() || self.cancelling
    }

    /// Whether a thread waits for the end of some ops, whatever other ops do.
    #[inline]
    pub(super) fn awaits_op(&self) -> bool {
        self.probes > 0 || !self.room.is_empty()
    }

    pub(super) fn answer(&mut self, seat: &Seat, op: OpPtr) {
        self.probes -= 1;
        let (first, count) = Op::accesses(op.as_ptr());
        // SAFETY: as in sort().
        let waiter = unsafe { (*op.as_ptr()).extra.take() }.and_then(|extra| extra.waiter);
        if let Some(waiter) = waiter {
            // SAFETY: the op's accesses are as many, and live as long as it does.
            let failure = (0..count).find_map(|index| unsafe { &*first.add(index) }.var().failure(seat));
            if waiter.answer(failure) {
                self.outbox.sleepers.push(waiter);
            }
        }
        self.leave_variables(seat, op.as_ptr(), Settled::Done);
        // SAFETY: a probe has no payload, and is not known elsewhere.
        unsafe { self.free(op.as_ptr()) };
    }

    /// Takes a probe out of the queue it waits in. Answers whether it was there.
    pub(crate) fn withdraw(&mut self, seat: &Seat, var: NonNull<VarNode>, waiter: &Arc<Waiter>) -> bool {
        // SAFETY: the caller holds a handle on the variable.
        let node = unsafe { var.as_ref() };
        let theirs = |access: &*mut AccessNode| {
            // SAFETY: queued accesses live, and so do their ops.
            let extra = unsafe { (*(**access).owner::<Op>()).extra.as_ref() };
            extra.and_then(|extra| extra.waiter.as_ref()).is_some_and(|theirs| Arc::ptr_eq(theirs, waiter))
        };
        let Some(access) = node.queued(seat).find(theirs) else { return false };
        // SAFETY: as above.
        let op = unsafe { (*access).owner::<Op>() };
        let list = &mut self.granted;
        node.withdraw(seat, access, |access| grant(list, access));
        // SAFETY: a probe has no payload, and is now unknown.
        unsafe { self.free(op) };
        self.probes -= 1;
        true
    }

    /// Wakes the threads that wait for this much room.
    pub(crate) fn wake_for_room(&mut self, pending: u64, bytes: u64) {
        let sleepers = &mut self.outbox.sleepers;
        let fits = |(_, ops, held): &mut (Arc<Waiter>, u64, u64)| pending <= *ops && bytes <= *held;
        for (waiter, ..) in self.room.extract_if(.., fits) {
            if waiter.answer(None) {
                sleepers.push(waiter);
            }
        }
    }
}
