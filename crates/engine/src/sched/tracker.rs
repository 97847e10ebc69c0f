//! The registrar's own state: countdowns, failures, epochs, the slab.

use super::epoch::Epochs;
use super::outbox::Outbox;
use super::queues::Queues;
use super::replays::Granted;
use super::unreported::Unreported;
use crate::failure::{Cause, Failure};
use crate::op::{Op, OpFlags, OpKind, OpPtr, Slab};
use crate::replay;
use crate::trace::Registered;
use crate::var::{AccessKind, AccessNode, Seat, Settled, VarNode};
use crate::waiter::Waiter;
use std::sync::Arc;

/// Counts since the engine was made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Users' ops registered.
    pub(crate) registered: u64,
    /// Users' ops settled, however they ended.
    pub(crate) completed: u64,
    /// Of these, those with a failed payload.
    pub(crate) failed: u64,
    /// Of these, those skipped for the failure of another.
    pub(crate) skipped: u64,
    /// Of these, those cancelled.
    pub(crate) cancelled: u64,
    /// Nodes freed.
    pub(crate) released: u64,
}

pub(crate) struct Tracker {
    pub(crate) slab: Slab,
    pub(crate) epochs: Epochs,
    pub(crate) outbox: Outbox,
    pub(crate) counts: Counts,
    /// Failures that were not told yet.
    unreported: Unreported,
    /// Ready ops, until a worker pulls them.
    pub(crate) queues: Queues,
    /// Tickets settled since the counter was last published.
    pub(crate) settled_tickets: u64,
    /// Waits for a variable that were registered and not answered.
    pub(super) probes: usize,
    /// Threads that wait for room, and the number of pending ops and bytes they wait for.
    pub(crate) room: Vec<(Arc<Waiter>, u64, u64)>,
    /// Ops that did not start are to fail instead.
    pub(super) cancelling: bool,
    /// The trace's records.
    pub(super) trace: Option<Registered>,
    /// Whether either is so, and ready ops are to be looked at.
    pub(super) watchful: bool,
    /// Bytes held by settled ops since the counter was last read.
    pub(crate) freed_bytes: u64,
    /// Ops with a priority settled since the counter was last read.
    pub(crate) settled_prioritised: usize,
    /// Variables whose last version failed.
    pub(super) failed_variables: usize,
    /// Ops with a countdown that has just reached 0.
    pub(super) granted: Granted,
    /// Accesses of the op that was taken in last: the next ones may have as many.
    pub(super) accesses: usize,
    /// The worker that kept what was settled last beside a worker's own.
    pub(super) last_keeper: usize,
    /// Whether keepers were told that a thread waits for the end of an op.
    pub(super) told_awaited: bool,
}

/// Why a ready op must not run.
struct Obstacle {
    failure: Arc<Failure>,
    /// Whether its targets have changed nevertheless.
    begun: bool,
}

// SAFETY: everything it points to belongs to the engine, and the role makes its user alone.
unsafe impl Send for Tracker {}

impl Tracker {
    pub(crate) fn new(slab: Slab, queues: Queues) -> Self {
        Self {
            slab,
            epochs: Epochs::new(),
            outbox: Outbox::default(),
            counts: Counts::default(),
            unreported: Unreported::default(),
            queues,
            settled_tickets: 0,
            probes: 0,
            room: Vec::new(),
            cancelling: false,
            trace: None,
            watchful: false,
            freed_bytes: 0,
            settled_prioritised: 0,
            failed_variables: 0,
            granted: Granted::new(),
            accesses: 0,
            last_keeper: 0,
            told_awaited: false,
        }
    }

    /// From now on ops that did not start fail.
    pub(crate) fn cancel(&mut self) {
        (self.cancelling, self.watchful) = (true, true);
    }

    /// Takes a published op in: counts it, enters its variables' queues.
    #[inline]
    pub(crate) fn register(&mut self, seat: &Seat, op: *mut Op) {
        // SAFETY: a published op is the registrar's until it is handed to a lane.
        unsafe {
            match (*op).kind {
                OpKind::Run => {
                    self.counts.registered += 1;
                    (*op).epoch = self.epochs.enter();
                }
                OpKind::Fence => return self.fence(op),
                OpKind::Replay => return self.register_replay(seat, op),
                OpKind::Part => unreachable!("a part of a replay is not pushed"),
                OpKind::Probe => self.probes += 1,
                OpKind::Release => {}
            }
            let (first, count) = Op::accesses(op);
            let priority = (*op).priority;
            let mut waiting = 0;
            for index in 0..count {
                let access = first.add(index);
                waiting += u32::from(!(*access).var().enter(seat, access, priority));
            }
            (*op).countdown = waiting;
            if waiting == 0 {
                self.granted.push(op);
            } else if priority > 0 {
                self.lift_blockers(seat, op);
            }
        }
    }

    /// Puts granted ops into their queues, unless `take_over` takes them. Waits, releases and ops that must not run are
    /// settled on the way; their grants are sorted too, without recursion.
    #[inline]
    pub(crate) fn sort(&mut self, seat: &Seat, mut take_over: impl FnMut(usize, OpPtr) -> bool) {
        while let Some(op) = self.granted.pop() {
            // SAFETY: a ready op that was not handed out is the registrar's.
            match unsafe { (*op.as_ptr()).kind } {
                OpKind::Run if self.failed_variables == 0 && !self.watchful => {
                    self.queues.insert(op, &mut take_over);
                }
                OpKind::Run => {
                    self.trace_ready(op);
                    match self.obstacle(seat, op) {
                        None => self.queues.insert(op, &mut take_over),
                        Some(obstacle) => self.skip(seat, op, obstacle),
                    }
                }
                OpKind::Probe => self.answer(seat, op),
                OpKind::Release => self.release(seat, op),
                OpKind::Fence => unreachable!("a fence is settled when it is registered"),
                OpKind::Replay | OpKind::Part => unreachable!("its accesses are granted one by one"),
            }
        }
        if !self.granted.calls.is_empty() {
            self.tell_instances(seat, take_over);
        }
    }

    /// Why a ready op must not run.
    #[inline]
    fn obstacle(&mut self, seat: &Seat, op: OpPtr) -> Option<Obstacle> {
        // A trace alone is none.
        if self.cancelling || self.failed_variables > 0 { self.look_for_obstacle(seat, op) } else { None }
    }

    fn look_for_obstacle(&mut self, seat: &Seat, op: OpPtr) -> Option<Obstacle> {
        // SAFETY: as in sort(), here and below.
        let flags = unsafe { (*op.as_ptr()).flags };
        let always = flags.has(OpFlags::ALWAYS_RUN);
        if self.cancelling && !always {
            self.counts.cancelled += 1;
            // SAFETY: as above.
            let label = unsafe { replay::label(op) };
            // The values that it was to hand on may be anything.
            let begun = flags.has(OpFlags::HANDS_ON);
            return Some(Obstacle { failure: Arc::new(Failure::new(label, Cause::Cancelled)), begun });
        }
        if always || self.failed_variables == 0 {
            return None;
        }
        let (first, count) = Op::accesses(op.as_ptr());
        let mut failed = (0..count)
            // SAFETY: the op's accesses are as many, and live as long as it does.
            .map(|index| unsafe { &*first.add(index) })
            .filter(|access| access.kind().sees_value())
            .filter_map(|access| Some((access.var().failure(seat)?, access.var().has_begun(seat))));
        let (failure, begun) = failed.next()?;
        let hands_on = flags.has(OpFlags::HANDS_ON);
        Some(Obstacle { failure, begun: hands_on && (begun || failed.any(|(_, begun)| begun)) })
    }

    fn skip(&mut self, seat: &Seat, op: OpPtr, Obstacle { failure, begun }: Obstacle) {
        self.trace_skip(op, &failure);
        if !matches!(failure.cause(), Cause::Cancelled) {
            self.counts.skipped += 1;
        }
        self.leave(seat, op.as_ptr(), Settled::Skipped { failure: &failure, begun }, true);
        self.settled_tickets += 1;
        self.outbox.failures.push(failure);
        self.outbox.skip(op);
    }

    fn release(&mut self, seat: &Seat, op: OpPtr) {
        let (first, _) = Op::accesses(op.as_ptr());
        // SAFETY: a release has one access.
        let node = unsafe { (*first).var };
        self.leave_variables(seat, op.as_ptr(), Settled::Done);
        // SAFETY: this was the last access; the node lives until the outbox frees it.
        if let Some(failure) = unsafe { node.as_ref() }.failure(seat) {
            self.failed_variables -= 1;
            self.outbox.failures.push(failure);
        }
        self.counts.released += 1;
        self.outbox.nodes.push(node);
        // SAFETY: a release has no payload, and nobody else knows it.
        unsafe { self.free(op.as_ptr()) };
    }

    /// Ends an op after its payload; `late` if that was over some time ago.
    #[inline]
    pub(crate) fn settle(&mut self, seat: &Seat, op: OpPtr, late: bool) {
        // SAFETY: a finished op that was delivered is the registrar's.
        let failure = unsafe { (*op.as_ptr()).failure.take() };
        match &failure {
            None => {}
            Some(failure) if matches!(failure.cause(), Cause::Cancelled) => self.counts.cancelled += 1,
            Some(failure) => {
                self.counts.failed += 1;
                self.note_failure(Arc::clone(failure));
            }
        }
        self.leave(seat, op.as_ptr(), failure.as_ref().map_or(Settled::Done, Settled::Failed), late);
        // SAFETY: the op is settled and its payload was run.
        unsafe { self.free(op.as_ptr()) };
    }

    /// Settles the ops of a list that was taken from an inbox or a hand.
    #[inline]
    pub(super) fn settle_all(&mut self, seat: &Seat, first: *mut Op) {
        let mut at = first;
        while let Some(op) = OpPtr::from_raw(at) {
            // SAFETY: ops that were taken out of there are the registrar's.
            let kind = unsafe {
                at = (*at).next;
                (*op.as_ptr()).kind
            };
            match kind {
                OpKind::Part => self.queues.insert(op, |_, _| false),
                OpKind::Replay => self.settle_ports(seat, op),
                _ => self.settle(seat, op, true),
            }
        }
    }

    /// Counts a user's op out and leaves its variables.
    #[inline]
    fn leave(&mut self, seat: &Seat, op: *mut Op, settled: Settled<'_>, late: bool) {
        self.counts.completed += 1;
        // SAFETY: as in settle().
        let (epoch, flags) = unsafe {
            if let Some(extra) = &(*op).extra {
                self.freed_bytes += extra.bytes;
            }
            ((*op).epoch, (*op).flags)
        };
        if flags.has(OpFlags::SPECIAL) {
            self.settled_prioritised += usize::from(flags.has(OpFlags::PRIORITISED));
            self.trace_settled(op, settled.failure(), late);
        }
        self.leave_variables(seat, op, settled);
        let sleepers = &mut self.outbox.sleepers;
        self.epochs.leave(epoch, |waiter| {
            if waiter.answer(None) {
                sleepers.push(waiter);
            }
        });
    }

    #[inline]
    pub(super) fn leave_variables(&mut self, seat: &Seat, op: *mut Op, settled: Settled<'_>) {
        let (first, count) = Op::accesses(op);
        for index in 0..count {
            // SAFETY: the op's accesses live as long as it does.
            let access = unsafe { *first.add(index) };
            self.leave_variable(seat, &access, access.kind(), settled);
        }
    }

    /// Ends one access, which counts as one of this kind.
    #[inline]
    pub(super) fn leave_variable(&mut self, seat: &Seat, access: &AccessNode, kind: AccessKind, settled: Settled<'_>) {
        let list = &mut self.granted;
        let ended = access.var().leave(seat, kind, settled, |access| grant(list, access));
        match (settled.failure(), ended) {
            (None, None) => {}
            (Some(_), None) => self.failed_variables += usize::from(kind.makes_version()),
            (None, Some(ended)) => {
                self.failed_variables -= 1;
                self.outbox.failures.push(ended);
            }
            (Some(_), Some(ended)) => self.outbox.failures.push(ended),
        }
    }

    /// Variables whose last version failed.
    #[cfg(loom)]
    pub(crate) fn failed_variables(&self) -> usize {
        self.failed_variables
    }

    /// Makes a variable's last good version the value again, if it is there.
    pub(crate) fn recover(&mut self, seat: &Seat, node: &VarNode) {
        if let Some(ended) = node.recover(seat) {
            self.failed_variables -= 1;
            self.outbox.failures.push(ended);
        }
    }

    /// Empties an op and gives its cell back.
    ///
    /// # Safety
    ///
    /// As for `Op::empty`.
    #[inline]
    pub(super) unsafe fn free(&mut self, op: *mut Op) {
        self.settled_tickets += 1;
        // SAFETY: the caller's promise.
        unsafe {
            Op::empty(op);
            self.slab.give(op);
        }
    }

    /// Gives the cell of a skipped op back: its payload was dropped since.
    ///
    /// # Safety
    ///
    /// As for `Op::empty`.
    pub(crate) unsafe fn free_skipped(&mut self, op: *mut Op) {
        // SAFETY: the caller's promise.
        unsafe {
            Op::empty(op);
            self.slab.give(op);
        }
    }

    /// Takes a variable of the parent process over into a forked child.
    pub(crate) fn adopt(&mut self, seat: &Seat, node: &VarNode, generation: u32) {
        if node.is_of(generation) {
            return; // another thread was faster
        }
        let lost = || Arc::new(Failure::new(node.label(), Cause::Forked));
        self.outbox.failures.extend(node.adopt(seat, generation, lost));
        if node.failed() {
            self.failed_variables += 1;
        }
    }

    /// Users' ops that have not ended.
    pub(crate) fn pending(&self) -> u64 {
        self.counts.registered - self.counts.completed
    }

    /// The untold failures, which now count as told.
    pub(crate) fn report(&mut self) -> Vec<Arc<Failure>> {
        self.unreported.report(&mut self.outbox.failures)
    }

    /// Keeps a failure for a request for all.
    pub(crate) fn note_failure(&mut self, failure: Arc<Failure>) {
        self.unreported.push(failure, &mut self.outbox.failures);
    }
}

/// One access of an op was granted.
#[inline]
pub(super) fn grant(granted: &mut Granted, access: *mut AccessNode) {
    // SAFETY: a queued access lives, and so does its op, which is the registrar's.
    unsafe {
        let op = (*access).owner::<Op>();
        (*op).countdown -= 1;
        if (*op).kind == OpKind::Replay {
            granted.grant_port(op, access);
        } else if (*op).countdown == 0 {
            granted.push(op);
        }
    }
}
