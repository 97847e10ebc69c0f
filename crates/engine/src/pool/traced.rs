//! The pool's part of a trace: times, threads, running ops.

use super::lane::Lane;
use super::seat::WorkerSeat;
use super::state::Pool;
use crate::op::{OpFlags, OpPtr};
use crate::sync::Ordering;
use crate::trace::{Recorder, Running, thread_in};
use std::sync::{Arc, PoisonError};

impl Pool {
    /// The calling thread's number in the trace, if there is one.
    #[inline]
    pub(crate) fn thread_in_trace(&self) -> Option<u16> {
        // ORDERING: a number alone; its meaning is looked up under a lock.
        match self.trace.load(Ordering::Relaxed) {
            0 => None,
            trace => thread_in(trace, || self.recorder()),
        }
    }

    /// The same of the worker in this seat, or of a thread that is none.
    #[inline]
    pub(super) fn running_thread_in_trace(&self, seat: Option<&WorkerSeat>) -> Option<u16> {
        // ORDERING: as above.
        let trace = self.trace.load(Ordering::Relaxed);
        match seat.and_then(|seat| seat.thread_in(trace)) {
            Some(thread) => Some(thread),
            None => self.take_part_in_trace(seat),
        }
    }

    #[cold]
    fn take_part_in_trace(&self, seat: Option<&WorkerSeat>) -> Option<u16> {
        // ORDERING: as above.
        let trace = self.trace.load(Ordering::Relaxed);
        let thread = self.thread_in_trace()?;
        if let Some(seat) = seat {
            seat.take_part(trace, thread);
        }
        Some(thread)
    }

    /// A completion token has ended an op; that is its end, if it was traced.
    pub(super) fn complete_in_trace(&self, op: OpPtr) {
        // SAFETY: the op is its deliverer's.
        let (flags, number) = unsafe { ((*op.as_ptr()).flags, (*op.as_ptr()).number) };
        if flags.has(OpFlags::TRACED) && self.recorder().is_some_and(|recorder| recorder.has(number)) {
            // SAFETY: as above. An op of a trace that lasts was timed.
            unsafe { (*op.as_ptr()).last.ran.prolong() };
        }
    }

    /// The recorder of the trace, if there is one.
    pub(crate) fn recorder(&self) -> Option<Arc<Recorder>> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Traces from now on, or no more. The caller has the role. Answers the recorder so far.
    pub(crate) fn set_recorder(&self, recorder: Option<Arc<Recorder>>) -> Option<Arc<Recorder>> {
        let trace = recorder.as_ref().map_or(0, |recorder| recorder.id());
        let before = std::mem::replace(&mut *self.recorder.lock().unwrap_or_else(PoisonError::into_inner), recorder);
        // ORDERING: published by the pusher of a traced op to its runner; see run().
        self.trace.store(trace, Ordering::Relaxed);
        if trace > 0 && before.is_none() {
            // ORDERING: as above.
            self.watched.fetch_add(1, Ordering::Relaxed);
        } else if trace == 0 && before.is_some() {
            // ORDERING: as above.
            self.watched.fetch_sub(1, Ordering::Relaxed);
        }
        before
    }

    /// The traced ops that run now. The caller has the role.
    pub(crate) fn running_in_trace(&self) -> Vec<Running> {
        let begun = self.lanes().flat_map(Lane::seats).filter_map(WorkerSeat::begun);
        // SAFETY: a noted op is pending, and stays so while we have the role.
        let traced = begun.filter(|(op, ..)| unsafe { (*op.as_ptr()).flags }.has(OpFlags::TRACED));
        traced
            // SAFETY: as above.
            .map(|(op, started, thread)| Running { number: unsafe { (*op.as_ptr()).number }, started, thread })
            .collect()
    }
}
