//! Order with the work of other libraries on their own streams, known by their handles alone.
//!
//! Either side is put behind the other during a call, so nothing of theirs is kept.
//!
//! Nothing is put on a stream that they capture just now: an event that is recorded there never happens, a stream that waits
//! for such an event is captured too, and a wait there for an event of ours ends the capture.

use super::context::Context;
use super::fence::{Fence, Mark};
use super::stream::{Stream, Turn};
use crate::driver::StreamHandle;
use crate::error::CudaError;
use crate::label::Label;
use std::sync::Arc;

impl Turn<'_> {
    /// Puts later work behind the work on another library's stream now. Answers a fence behind that.
    ///
    /// # Safety
    ///
    /// It is a stream of this one's context, or [`DEFAULT_STREAM`](crate::DEFAULT_STREAM).
    pub(crate) unsafe fn follow_foreign(&mut self, other: StreamHandle, label: &Label) -> Result<Fence, CudaError> {
        let stream = self.stream();
        let context = stream.context();
        // SAFETY: the caller's promise; the turn is used inside of the context.
        unsafe { context.check_open(other, label) }?;
        self.close()?;
        let mark = stream.take_mark(label)?;
        // SAFETY: the caller's promise; the event is not shared, and the turn is used inside of the context.
        let followed = unsafe {
            let recorded = context.driver().record_event(mark.event, other);
            recorded.and_then(|()| context.driver().wait_event(stream.handle(), mark.event))
        };
        let fence = followed.map_err(|error| context.refused(label, error)).and_then(|()| self.record(label));
        // It is spare when this stream has come past it.
        let spare = Mark::new(mark.event);
        if let Ok(fence) = &fence {
            spare.is_behind(fence.number());
        }
        stream.recycle(Arc::new(spare));
        fence
    }
}

impl Fence {
    /// Makes later work on another library's stream wait for this fence.
    ///
    /// # Safety
    ///
    /// It is a stream, or [`DEFAULT_STREAM`](crate::DEFAULT_STREAM).
    pub unsafe fn lead(&self, other: StreamHandle) -> Result<(), CudaError> {
        let context = self.stream().context();
        let _entered = context.enter()?;
        // SAFETY: the caller's promise.
        unsafe { context.check_open(other, &self.label()) }?;
        let event = self.recorded()?;
        // SAFETY: the event is this fence's; the rest is the caller's promise.
        unsafe { context.driver().wait_event(other, event) }.map_err(|error| context.refused(&self.label(), error))
    }
}

impl Context {
    /// Refuses a stream of another library's that may not be used. Inside of the context.
    ///
    /// # Safety
    ///
    /// It is a stream, or [`DEFAULT_STREAM`](crate::DEFAULT_STREAM).
    unsafe fn check_open(&self, other: StreamHandle, op: &Label) -> Result<(), CudaError> {
        // SAFETY: the caller's promise.
        if unsafe { self.driver().is_open(other) }.map_err(|error| self.refused(op, error))? {
            return Ok(());
        }
        Err(CudaError::Captured { op: op.clone().into() })
    }
}

impl Stream {
    /// The same, if this stream is another library's.
    #[inline]
    pub(crate) fn check_open(&self, op: &Label) -> Result<(), CudaError> {
        // SAFETY: the stream lives.
        if self.is_foreign() { unsafe { self.context().check_open(self.handle(), op) } } else { Ok(()) }
    }

    /// Whether it may be used now, as far as the driver tells. Inside of the context.
    pub(crate) fn is_open(&self) -> bool {
        // SAFETY: the stream lives.
        !(self.is_foreign() && matches!(unsafe { self.context().driver().is_open(self.handle()) }, Ok(false)))
    }
}
