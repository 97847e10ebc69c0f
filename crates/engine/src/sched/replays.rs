//! The registrar's part of replays: it grants and settles their accesses one by one, and gives them instances.

use super::pull::PullNothing;
use super::queues::Fifo;
use super::registrar::Registrar;
use super::tracker::Tracker;
use crate::op::{Op, OpFlags, OpKind, OpPtr};
use crate::quiet::quietly;
use crate::replay::{Call, Calls, Ended, Instance, NONE, Outcome as PortOutcome, Part, Todo};
use crate::trace::Outcome;
use crate::var::{AccessKind, AccessNode, Seat, Settled};

/// Granted, and not sorted yet.
pub(super) struct Granted {
    /// Ops with a countdown that has just reached 0.
    ops: Fifo,
    /// Replays that got a port granted, or an instance.
    pub(super) calls: Calls,
}

impl Granted {
    pub(super) const fn new() -> Self {
        Self { ops: Fifo::new(), calls: Calls::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, op: *mut Op) {
        self.ops.push(op);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<OpPtr> {
        self.ops.pop()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = OpPtr> + use<> {
        self.ops.iter()
    }

    /// An access of a replay was granted.
    #[inline(never)] // out of the way of ops
    pub(super) fn grant_port(&mut self, op: *mut Op, access: *mut AccessNode) {
        // SAFETY: a registered op is pending, and so is its call.
        let call = unsafe { &*Call::of(op) };
        let granted = call.grant(access);
        if call.has_all_accesses() && call.waits_for_instance() {
            // SAFETY: it is the registrar who grants; the call is registered.
            let begins = unsafe { call.plan().has_become_ready(std::ptr::from_ref(call).cast_mut()).as_ref() };
            if let Some(begins) = begins {
                self.list(begins);
            }
        } else if granted {
            self.list(call);
        }
    }

    /// Notes that a call has news for its instance, once it has one.
    pub(super) fn list(&mut self, call: &Call) {
        let unlisted = call
            .desk(|desk| !desk.instance.is_null() && !std::mem::replace(&mut desk.listed, !desk.instance.is_null()));
        if unlisted {
            // SAFETY: a call that has an instance and is not listed is in no list; it is pending.
            unsafe { self.calls.push(std::ptr::from_ref(call).cast_mut()) };
        }
    }
}

impl Tracker {
    /// Takes a published replay in.
    pub(super) fn register_replay(&mut self, seat: &Seat, op: *mut Op) {
        self.counts.registered += 1;
        // SAFETY: a published op is the registrar's; its call is there as long as it is.
        unsafe {
            (*op).epoch = self.epochs.enter();
            let call = Call::of(op);
            let (first, count) = Op::accesses(op);
            let priority = (*op).priority;
            let mut waiting = 0;
            for index in 0..count {
                let access = first.add(index);
                if (*access).var().enter(seat, access, priority) {
                    (*call).grant(access);
                } else {
                    waiting += 1;
                }
            }
            (*op).countdown = waiting;
            (*call).grant_free_ports();
            let begins = (*call).plan().assign(seat, call, (*call).gift, (*call).generation);
            if let Some(begins) = begins.as_ref() {
                self.granted.list(begins);
            }
            if priority > 0 && (waiting > 0 || (*call).waits_for_instance()) {
                self.lift_blockers(seat, op);
            }
        }
    }

    /// Tells instances of their calls' granted ports, and puts their tokens into queues, unless `take_over` takes them.
    #[inline(never)] // out of the way of ops
    pub(super) fn tell_instances(&mut self, seat: &Seat, mut take_over: impl FnMut(usize, OpPtr) -> bool) {
        while let Some(call) = self.granted.calls.pop() {
            // SAFETY: a listed call is pending.
            let call = unsafe { call.as_ref() };
            let (instance, begins) = call.desk(|desk| {
                desk.listed = false;
                (desk.instance, !std::mem::replace(&mut desk.begun, true))
            });
            // SAFETY: a listed call has an instance, and its plan outlives it.
            let instance = unsafe { &*instance };
            if begins {
                self.trace_begun(call);
                instance.begin(std::ptr::from_ref(call).cast_mut());
            }
            while let Some(port) = call.take_granted() {
                if self.failed_variables > 0 {
                    // SAFETY: accesses live as long as their op.
                    let mut accesses = call.accesses_of(port).map(|access| unsafe { &*access });
                    let failure = accesses
                        .find_map(|access| access.kind().sees_value().then(|| access.var().failure(seat)).flatten());
                    if let Some(failure) = failure {
                        call.set_incoming(port, failure);
                    }
                }
                instance.port_granted(port);
            }
            if instance.announce() {
                let token = instance.token();
                // SAFETY: a token that was not announced is nobody's, and now ours.
                unsafe { (*token.as_ptr()).priority = call.priority() };
                self.queues.insert(token, &mut take_over);
            }
        }
    }

    /// Takes the instance that came with a push that was refused.
    pub(crate) fn take_gift(&mut self, seat: &Seat, call: &Call) {
        if call.gift.is_null() {
            return;
        }
        // SAFETY: the instance is new; calls that wait are pending.
        if let Some(waiting) = unsafe { call.plan().take_back(seat, call.gift, call).as_ref() } {
            self.granted.list(waiting);
        }
    }

    fn trace_begun(&mut self, call: &Call) {
        if call.traced
            && let Some(op) = OpPtr::from_raw(call.op)
        {
            self.trace_ready(op);
        }
    }

    /// Settles the remains of a replay: ports, and itself.
    pub(super) fn settle_ports(&mut self, seat: &Seat, op: OpPtr) {
        let call = Call::of(op.as_ptr());
        // SAFETY: the call is pending until its end is settled, below.
        let pending = unsafe { &*call };
        let mut at = pending.take_leaving();
        pending.take_told(|failed| {
            self.note_failure(failed.failure);
        });
        let mut ended = false;
        while at != NONE {
            let (next, outcome) = pending.left(at);
            match outcome {
                None => ended = true,
                Some(outcome) => self.leave_port(seat, pending, at, outcome),
            }
            at = next;
        }
        if ended {
            self.end_replay(seat, op, call);
        }
    }

    fn leave_port(&mut self, seat: &Seat, call: &Call, port: u32, outcome: PortOutcome) {
        for access in call.accesses_of(port) {
            // SAFETY: the accesses of a pending op live.
            let left = unsafe { *access };
            let kind = left.kind();
            let (kind, settled) = match &outcome {
                PortOutcome::Failed { failure, begun: true } => (kind, Settled::Failed(failure)),
                PortOutcome::Failed { failure, begun } => (kind, Settled::Skipped { failure, begun: *begun }),
                // As good as new, after any old value.
                PortOutcome::Overwritten if kind.makes_version() => (AccessKind::Overwrite, Settled::Done),
                _ => (kind, Settled::Done),
            };
            AccessNode::mark_left(access);
            self.leave_variable(seat, &left, kind, settled);
        }
        if let PortOutcome::Failed { failure, .. } = outcome {
            self.outbox.failures.push(failure);
        }
    }

    fn end_replay(&mut self, seat: &Seat, op: OpPtr, call: *mut Call) {
        // SAFETY: only the registrar knows a call that has ended.
        let ended = unsafe { &*call };
        self.counts.completed += 1;
        match ended.ended() {
            Ended::Done => {}
            Ended::Skipped => self.counts.skipped += 1,
            Ended::Cancelled => self.counts.cancelled += 1,
            Ended::Failed => self.counts.failed += 1,
        }
        // SAFETY: as above, of its cell.
        let (epoch, flags) = unsafe {
            self.freed_bytes += ended.bytes;
            ((*op.as_ptr()).epoch, (*op.as_ptr()).flags)
        };
        self.settled_prioritised += usize::from(flags.has(OpFlags::PRIORITISED));
        if flags.has(OpFlags::TRACED) {
            self.trace_ended(op, ended.ended());
        }
        let sleepers = &mut self.outbox.sleepers;
        self.epochs.leave(epoch, |waiter| {
            if waiter.answer(None) {
                sleepers.push(waiter);
            }
        });
        let instance = ended.desk(|desk| desk.instance);
        // SAFETY: the call has ended, so it has the instance no more.
        let next = unsafe { ended.plan().take_back(seat, instance, ended).as_ref() };
        if let Some(next) = next {
            self.granted.list(next);
        }
        // SAFETY: it is in no list; the cell is known to nobody else, and has no payload.
        unsafe {
            self.outbox.calls.push(call);
            self.free(op.as_ptr());
        }
    }

    fn trace_ended(&mut self, op: OpPtr, ended: Ended) {
        let outcome = match ended {
            Ended::Done => Outcome::Done,
            Ended::Skipped => Outcome::Skipped,
            Ended::Cancelled => Outcome::Cancelled,
            Ended::Failed => Outcome::Failed,
        };
        let done = self.done();
        // SAFETY: as in end_replay(); its instance has noted when it ran.
        let (number, ran) = unsafe { ((*op.as_ptr()).number, (*op.as_ptr()).last.ran) };
        if let Some(trace) = &mut self.trace {
            trace.settled(number, outcome, done, Some(ran), true);
        }
    }

    /// Raises the queued parts of a replay to `priority`.
    ///
    /// # Safety
    ///
    /// The op is a registered replay.
    pub(super) unsafe fn lift_replay(&mut self, op: *mut Op, priority: i32) {
        // SAFETY: the caller's promise.
        let call = unsafe { &*Call::of(op) };
        call.set_priority(priority);
        let instance = call.desk(|desk| desk.instance);
        if call.waits_for_instance() {
            // SAFETY: a registered call without an instance waits for one.
            unsafe { call.plan().has_become_urgent(std::ptr::from_ref(call).cast_mut()) };
        }
        // SAFETY: an instance lives as long as the plan, and the call holds that.
        if let Some(instance) = unsafe { instance.as_ref() } {
            let token = instance.token();
            // SAFETY: flags and priority of a listed op are the registrar's.
            if unsafe { (*token.as_ptr()).flags.has(OpFlags::LISTED) && (*token.as_ptr()).priority < priority } {
                self.queues.lift(token, priority);
            }
        }
    }
}

impl Registrar {
    /// Does the work left by an instance's role: queues ready steps, tells the engine of ended ones. The caller holds
    /// the plan.
    pub(crate) fn carry_out(&self, instance: &Instance, mut todo: Todo) {
        let mut celled = todo.celled;
        while celled != NONE {
            let (cell, next) = instance.prepare_cell(celled, &todo);
            self.leave(cell);
            celled = next;
        }
        if todo.announce && instance.announce() {
            let token = instance.token();
            // SAFETY: a token that was not announced is nobody's, and now ours.
            unsafe { (*token.as_ptr()).priority = todo.priority };
            self.leave(token);
        }
        let failures = todo.failures.take();
        quietly(|| drop(failures)); // an error whose end panics ends nobody else's work
        let mut left = todo.left;
        if !todo.ended.is_null() {
            // SAFETY: it is pending until the engine hears of its end.
            if unsafe { (*todo.ended).end() } {
                left = todo.ended;
            }
        }
        // SAFETY: a call on its way to the inbox is its carrier's until then.
        if let Some(op) = unsafe { left.as_ref() }.and_then(|call| OpPtr::from_raw(call.op)) {
            self.leave(op);
        }
        self.drive(None, &mut PullNothing { register: false });
    }

    /// Drops the tokens that are left in queues when the engine goes.
    pub(super) fn drop_tokens(&mut self) {
        self.turn().parts().0.queues.clear(|op| {
            // SAFETY: what is queued lives.
            if unsafe { (*op.as_ptr()).kind } == OpKind::Part {
                // SAFETY: as above. The token was announced, and is not looked at again.
                unsafe { Instance::release(Part::of(op).instance()) };
            }
        });
    }

    /// Whether the next op is chosen each time: ops with a priority are pending, or the next op is drawn.
    #[inline]
    pub(crate) fn chooses_each(&self) -> bool {
        self.chooses_late()
    }
}
