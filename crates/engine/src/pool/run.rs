//! A run of an op, and the ops that run.

use super::lane::Lane;
use super::seat::WorkerSeat;
use super::state::Pool;
use super::timer::{Timed, Timer, Untimed};
use crate::failure::{Cause, Failure};
use crate::op::{Deliver, Op, OpContext, OpFlags, OpKind, OpPtr, clear_current, set_current};
use crate::quiet::{attempt, dispose, message_of, quietly};
use crate::replay;
use crate::sync::Ordering;
use std::ptr;
use std::sync::Arc;

impl Pool {
    /// Runs an op and lets `seat` show it meanwhile. Answers it if it is finished, for the caller to
    /// settle; otherwise its completion token will.
    #[inline]
    pub(super) fn run(
        self: &Arc<Self>,
        op: OpPtr,
        deliver: &Arc<dyn Deliver>,
        seat: Option<&WorkerSeat>,
    ) -> Option<OpPtr> {
        // SAFETY: a pulled op is this thread's.
        if unsafe { (*op.as_ptr()).kind } == OpKind::Part {
            self.run_part(op, deliver, seat);
            return None;
        }
        // ORDERING: an op that misses a cancellation has started before. A traced op misses no trace: its pusher knew
        // of that, and has handed it over.
        if self.watched.load(Ordering::Relaxed) > 0 {
            return self.run_watched(op, deliver, seat);
        }
        self.run_timed(op, deliver, seat, &Untimed)
    }

    /// Runs an op while there is a trace or a cancellation.
    #[inline(never)] // out of the way of those without
    fn run_watched(&self, op: OpPtr, deliver: &Arc<dyn Deliver>, seat: Option<&WorkerSeat>) -> Option<OpPtr> {
        // ORDERING: a flag of its own.
        if self.cancelling.load(Ordering::Relaxed) && Self::cancel(op) {
            return Some(op);
        }
        // SAFETY: a pulled op is this thread's.
        let traced = unsafe { (*op.as_ptr()).flags }.has(OpFlags::TRACED);
        if traced {
            let thread = self.running_thread_in_trace(seat).unwrap_or(u16::MAX);
            return self.run_timed(op, deliver, seat, &Timed { thread });
        }
        self.run_timed(op, deliver, seat, &Untimed)
    }

    #[inline]
    fn run_timed(
        &self,
        op: OpPtr,
        deliver: &Arc<dyn Deliver>,
        seat: Option<&WorkerSeat>,
        timer: &impl Timer,
    ) -> Option<OpPtr> {
        let mut context = OpContext::new(op, deliver);
        let before = set_current(self.address(), op);
        let note = |op| seat.map_or((), |seat| seat.note(op));
        timer.begin(op, seat);
        note(op.as_ptr());
        // SAFETY: a ready op was pulled by this thread alone, and was not run before.
        let result = attempt(|| unsafe { (*op.as_ptr()).payload.assume_init_mut().run(&mut context) });
        timer.end(op);
        clear_current(before);
        note(ptr::null_mut()); // from here on the op may be delivered
        if matches!(result, Ok(Ok(()))) && context.ends_with_run() {
            return Some(op); // as most do, and nothing need be moved
        }
        match context.conclude(result.unwrap_or_else(|panic| Err(Cause::Panic(message_of(panic))))) {
            None => None,
            Some(Ok(())) => Some(op),
            Some(Err(cause)) => {
                self.fail(op, cause);
                Some(op)
            }
        }
    }

    /// Fails an op that has not started. Answers whether it does: clean-up runs all the same.
    #[cold]
    fn cancel(op: OpPtr) -> bool {
        // SAFETY: a pulled op is this thread's, and was not run.
        unsafe {
            if (*op.as_ptr()).flags.has(OpFlags::ALWAYS_RUN) {
                return false;
            }
            let payload = (*op.as_ptr()).payload.assume_init_mut();
            // A panicking drop ends no other work.
            quietly(|| payload.discard());
        }
        // SAFETY: as above.
        unsafe { (*op.as_ptr()).failure = Some(Arc::new(Failure::new(Op::label(op), Cause::Cancelled))) };
        true
    }

    /// Whether ops that have not started fail.
    pub(super) fn cancels(&self) -> bool {
        // ORDERING: as in run_watched().
        self.cancelling.load(Ordering::Relaxed)
    }

    /// Whether anything is ready, in any lane.
    pub(super) fn has_ready(&self) -> bool {
        self.lanes()
            .any(|lane| self.registrar.ready(lane.native_queue()) > 0 || self.registrar.ready(lane.hosted_queue()) > 0)
    }

    /// From now on ops that have not started fail.
    pub(crate) fn cancel_unstarted(self: &Arc<Self>) {
        // ORDERING: as in run_watched().
        if !self.cancelling.swap(true, Ordering::Relaxed) {
            // ORDERING: as in run().
            self.watched.fetch_add(1, Ordering::Relaxed);
        }
        self.turn().parts().0.cancel();
    }

    /// Notes why a running op failed.
    #[cold]
    pub(crate) fn fail(&self, op: OpPtr, cause: Cause) {
        // SAFETY: the op is the caller's until it is delivered.
        let (flags, number) = unsafe { ((*op.as_ptr()).flags, (*op.as_ptr()).number) };
        if flags.has(OpFlags::TRACED)
            && let Some(recorder) = self.recorder().filter(|recorder| recorder.has(number))
        {
            recorder.failed(number, first_line_of(&cause));
        }
        // SAFETY: as above; the place can be read when the payload was run.
        unsafe { (*op.as_ptr()).failure = Some(Arc::new(Failure::new(Op::label(op), cause).at(Op::place(op)))) };
    }

    /// The ops that workers run now. They are pending for as long as the caller has the role.
    pub(crate) fn running_ops(&self) -> impl Iterator<Item = OpPtr> {
        self.lanes().flat_map(Lane::seats).filter_map(WorkerSeat::running)
    }

    /// The ops that have begun and not ended: those that workers run, and those that wait for their completion tokens.
    /// They are pending for as long as the caller has the role.
    pub(crate) fn begun_ops(&self) -> Vec<OpPtr> {
        let mut ops: Vec<_> = self.running_ops().collect();
        let mut deferred = self.deferred.ops();
        deferred.retain(|op| !ops.contains(op));
        ops.extend(deferred);
        ops
    }

    /// The host's number of the worker's thread that runs this op.
    pub(crate) fn host_thread_of(&self, op: OpPtr) -> Option<u64> {
        self.lanes().flat_map(Lane::seats).find(|seat| seat.running() == Some(op)).map(WorkerSeat::host_thread)
    }

    /// Labels of the ops that run now.
    pub(crate) fn running(self: &Arc<Self>) -> Vec<String> {
        let _turn = self.turn();
        self.running_ops()
            // SAFETY: a noted op is pending, and stays so while we have the role.
            .map(|op| unsafe { replay::label(op) })
            .collect()
    }
}

/// The first line of a cause's text, which may be a user's.
pub(super) fn first_line_of(cause: &Cause) -> String {
    let describe = || cause.to_string().lines().next().unwrap_or_default().to_owned();
    attempt(describe).unwrap_or_else(|panic| {
        dispose(panic);
        "an error whose description panics".to_owned()
    })
}
