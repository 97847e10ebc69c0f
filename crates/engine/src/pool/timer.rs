//! Times of runs, for a trace: taken where an op is traced, and nothing at all where it is not.

use super::seat::WorkerSeat;
use crate::op::{Last, OpPtr};
use crate::trace::Ran;

/// Looks at the clock around a run, or does not. The op is the caller's all the while.
pub(super) trait Timer {
    /// The run begins, in this seat.
    fn begin(&self, op: OpPtr, seat: Option<&WorkerSeat>);

    /// The payload is over.
    fn end(&self, op: OpPtr);
}

pub(super) struct Untimed;

impl Timer for Untimed {
    #[inline]
    fn begin(&self, _: OpPtr, _: Option<&WorkerSeat>) {}

    #[inline]
    fn end(&self, _: OpPtr) {}
}

pub(super) struct Timed {
    /// The running thread's number in the trace.
    pub(super) thread: u16,
}

impl Timer for Timed {
    #[inline]
    fn begin(&self, op: OpPtr, seat: Option<&WorkerSeat>) {
        let ran = Ran::begin(self.thread);
        if let Some(seat) = seat {
            seat.begin(ran.started);
        }
        // SAFETY: the op is the caller's, and in no list any more.
        unsafe { (*op.as_ptr()).last = Last { ran } };
    }

    #[inline]
    fn end(&self, op: OpPtr) {
        // SAFETY: as above; written in begin().
        unsafe { (*op.as_ptr()).last.ran.end() };
    }
}
