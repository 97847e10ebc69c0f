//! Threads that wait, in the places of workers that sleep.
//!
//! Handing an op to a worker of its own, and its result back to the waiter, takes two threads that wake each other: longer
//! than many collectives last. So a lane whose queues are [lent](crate::InOrder::lent) takes a waiting thread as a *guest*.
//! It takes the lane's one unit (`sleep.md`): the holder is the lane's only worker.
//!
//! | step of a guest | does |
//! |---|---|
//! | G1 | finds something ready in the lane, nobody searching and the worker dormant ([`Lane::wants_waking`]) |
//! | G2 | takes the unit ([`Lane::claim_waking`]), and claims no seat: the worker sleeps on |
//! | G3 | pulls an op, runs it, settles it, as long as there are any and it is not called away |
//! | G4 | gives the unit back ([`Lane::drowse`]), looks once more, and wakes the worker if there is anything |
//!
//! G4 is S2 and S3 of a worker that goes to sleep, so nothing is missed. A publisher that finds the unit taken has
//! published before G4's look, or sees the unit dormant again.
//!
//! A guest is *called away* when its event is there, its time is up, or it has to look whether it was interrupted. Ops that
//! take long ask, defer their end, and leave the rest to an op that they push: the worker is woken for it. A guest that was
//! called away stays away for the rest of its wait. Else it would take that op, too, before the worker has come.
//!
//! So that there is something left to be lent, pushes do not wake the worker while it *naps*: for some time after its last
//! op it sleeps for moments only, the longer the longer it has been idle, and looks by itself. A thread that makes an op
//! ready by settling another one wakes it all the same.
//!
//! Under a trace there are no guests: it shows the lane by itself.

use super::delivery::Delivery;
use super::lane::Lane;
use super::state::Pool;
use crate::op::{Deliver, OpPtr, is_inside_any};
use crate::quiet::is_quiet;
use crate::sched::Pull;
use crate::sync::{Ordering, spin_hint, thread_cell};
use std::cell::Cell;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// Answers whether it is called away, or stays away from now on because its op turned out to be long (the argument).
/// A yes is for the whole wait.
pub(crate) type Guest<'a> = dyn FnMut(bool) -> bool + 'a;

/// Looks for an op that the registrar has just announced.
const LOOKS: u32 = if cfg!(loom) { 2 } else { 64 };

thread_cell! {
    /// This thread's request as a guest: a `*mut Visit`, or null.
    static VISIT: *mut () = ptr::null_mut();
}

/// A run of an op by a guest.
struct Visit<'a, 'b> {
    guest: &'a mut Guest<'b>,
}

/// Whether the calling thread runs its op as a guest and is not to stay: its wait is over, it has to look after that,
/// or `long` is true: the op has turned out to last. An op that takes long asks. Once the answer is yes it
/// [defers](crate::OpContext::defer) its end, and pushes an op that does the rest.
#[must_use]
pub fn is_called_away(long: bool) -> bool {
    let visit = VISIT.with(Cell::get).cast::<Visit<'_, '_>>();
    if visit.is_null() {
        return false;
    }
    // SAFETY: visit() has put it there, on this thread, and has not returned; what the guest asks runs no op.
    let visit = unsafe { &mut *visit };
    (visit.guest)(long)
}

/// Runs an op that may ask `guest` whether it is called away.
fn visit<R>(guest: &mut Guest<'_>, run: impl FnOnce() -> R) -> R {
    let mut visit = Visit { guest };
    let before = VISIT.with(|place| place.replace((&raw mut visit).cast()));
    let result = run(); // the payload's panics end there
    VISIT.with(|place| place.set(before));
    result
}

impl Pool {
    /// Whether the calling thread may be a guest: it runs no op, and there is no trace or cancellation.
    pub(super) fn welcomes_guests(&self) -> bool {
        // ORDERING: as in run(): an op that misses a trace has started before.
        !(self.watched.load(Ordering::Relaxed) > 0
            || self.is_worker()
            || is_inside_any()
            || is_quiet()
            || self.is_dead())
    }

    /// Whether a waiting thread could be a guest somewhere.
    pub(crate) fn lends(&self) -> bool {
        self.welcomes_guests() && self.lanes().any(Lane::lends)
    }

    /// Takes a thread that waits as a guest, wherever there is something for it.
    pub(super) fn receive(self: &Arc<Self>, guest: &mut Guest<'_>) {
        for lane in self.lanes().filter(|lane| lane.lends()) {
            if self.registrar.ready(lane.native_queue()) > 0 && lane.wants_waking() && lane.claim_waking(false) {
                self.work_as_guest(lane, guest);
                lane.drowse();
                if (self.registrar.has_news() || self.registrar.ready(lane.native_queue()) > 0) && lane.wants_waking() {
                    self.wake_one(lane, false);
                }
            }
        }
    }

    /// Runs ops of a lane; the caller has its unit.
    fn work_as_guest(self: &Arc<Self>, lane: &Lane, guest: &mut Guest<'_>) {
        // A trace or a stall report shows its ops as those of the sleeping worker.
        let Some(seat) = lane.seat(0) else { return };
        let deliver: Arc<dyn Deliver> = Arc::new(Delivery(Arc::clone(self)));
        while !guest(false) {
            let Some(op) = self.pull_as_guest(lane) else { return };
            let finished = visit(guest, || self.run(op, &deliver, Some(seat)));
            // The guest's wait may be over by now: so nothing is pulled in the same turn.
            self.take_turn(lane, finished, &mut PullFirst { queue: lane.native_queue(), wanted: false, op: None });
        }
    }

    /// The next op of a lane. Another thread may have the role, and be about to tell of one.
    fn pull_as_guest(self: &Arc<Self>, lane: &Lane) -> Option<OpPtr> {
        let (queue, mut looks) = (lane.native_queue(), 0);
        loop {
            let mut pull = PullFirst { queue, wanted: true, op: None };
            self.take_turn(lane, None, &mut pull);
            looks += 1;
            if pull.op.is_some() || self.registrar.ready(queue) == 0 || looks > LOOKS {
                return pull.op;
            }
            spin_hint();
        }
    }
}

/// Pulls one op of a queue, if it is wanted.
struct PullFirst {
    queue: usize,
    wanted: bool,
    op: Option<OpPtr>,
}

impl Pull for PullFirst {
    fn queues(&self) -> Range<usize> {
        self.queue..self.queue + 1
    }

    fn wanted(&self) -> usize {
        usize::from(self.wanted && self.op.is_none())
    }

    fn has_other(&self) -> bool {
        false
    }

    fn reach(&self) -> u64 {
        u64::MAX
    }

    fn take(&mut self, op: OpPtr) {
        self.op = Some(op);
    }
}
