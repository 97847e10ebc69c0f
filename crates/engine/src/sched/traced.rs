//! The tracker's notes for a trace.

use super::tracker::Tracker;
use crate::failure::{Cause, Failure};
use crate::op::{Op, OpFlags, OpPtr};
use crate::trace::{Outcome, Registered};
use std::sync::Arc;

impl Tracker {
    /// Tells this trace from now on, or none. Answers the one that was told so far.
    pub(crate) fn set_trace(&mut self, trace: Option<Registered>) -> Option<Registered> {
        self.watchful = self.cancelling || trace.is_some();
        std::mem::replace(&mut self.trace, trace)
    }

    /// The trace that is told.
    pub(crate) fn trace(&self) -> Option<&Registered> {
        self.trace.as_ref()
    }

    /// Grows whenever an op is registered or settled.
    pub(super) fn done(&self) -> u64 {
        self.counts.registered + self.counts.completed
    }

    #[inline(never)] // out of the way of those without a trace
    pub(super) fn trace_ready(&mut self, op: OpPtr) {
        let done = self.done();
        if let Some(trace) = &mut self.trace {
            // SAFETY: as in sort().
            let (flags, number) = unsafe { ((*op.as_ptr()).flags, (*op.as_ptr()).number) };
            if flags.has(OpFlags::TRACED) {
                trace.ready(number, done);
            }
        }
    }

    /// An op is settled without having run.
    #[cold]
    pub(super) fn trace_skip(&mut self, op: OpPtr, failure: &Failure) {
        let done = self.done();
        // SAFETY: as in sort().
        let (flags, number) = unsafe { (&mut (*op.as_ptr()).flags, (*op.as_ptr()).number) };
        if flags.has(OpFlags::TRACED) {
            flags.clear(OpFlags::TRACED); // it is told here and not when it leaves
            if let Some(trace) = &mut self.trace {
                let cancelled = matches!(failure.cause(), Cause::Cancelled);
                let outcome = if cancelled { Outcome::Cancelled } else { Outcome::Skipped };
                trace.settled(number, outcome, done, None, true);
                if !cancelled {
                    trace.explain(number, format!("skipped, as {} failed", failure.op()));
                }
            }
        }
    }

    #[inline(never)] // out of the way of those without a trace
    pub(super) fn trace_settled(&mut self, op: *mut Op, failure: Option<&Arc<Failure>>, late: bool) {
        let done = self.done();
        let Some(trace) = &mut self.trace else { return };
        // SAFETY: as in settle().
        let (flags, number) = unsafe { ((*op).flags, (*op).number) };
        if flags.has(OpFlags::TRACED) {
            let outcome = match failure.map(|failure| failure.cause()) {
                None => Outcome::Done,
                Some(Cause::Cancelled) => Outcome::Cancelled,
                Some(_) => Outcome::Failed,
            };
            // One of an earlier trace may have run untimed, when that was over.
            let is_timed = outcome != Outcome::Cancelled && trace.has(number);
            // SAFETY: an op of a trace that lasts is timed when it runs; see `Pool::run`.
            let ran = is_timed.then(|| unsafe { (*op).last.ran });
            trace.settled(number, outcome, done, ran, late);
        }
    }
}
