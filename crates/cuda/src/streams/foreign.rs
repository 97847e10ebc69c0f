//! Order with what other libraries issue on streams of their own, of which this crate knows nothing but the handle.
//!
//! Either side is put behind the other during a call, so nothing of theirs is kept.

use super::fence::{Fence, Mark};
use super::stream::Turn;
use crate::driver::StreamHandle;
use crate::error::CudaError;
use crate::label::Label;
use std::sync::Arc;

impl Turn<'_> {
    /// Puts what comes next behind what is on another library's stream now. Answers a fence behind that.
    ///
    /// # Safety
    ///
    /// It is a stream of this one's context, or [`DEFAULT_STREAM`](crate::DEFAULT_STREAM).
    pub(crate) unsafe fn follow_foreign(&mut self, other: StreamHandle, label: &Label) -> Result<Fence, CudaError> {
        let stream = self.stream();
        self.close()?;
        let (context, mark) = (stream.context(), stream.take_mark(label)?);
        // SAFETY: the caller's promise; nobody else has the event, and the turn is used inside of the context.
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
    /// Makes what comes next on another library's stream wait for this fence.
    ///
    /// # Safety
    ///
    /// It is a stream, or [`DEFAULT_STREAM`](crate::DEFAULT_STREAM).
    pub unsafe fn lead(&self, other: StreamHandle) -> Result<(), CudaError> {
        let context = self.stream().context();
        let _entered = context.enter()?;
        let event = self.recorded()?;
        // SAFETY: the event is this fence's; the rest is the caller's promise.
        unsafe { context.driver().wait_event(other, event) }.map_err(|error| context.refused(&self.label(), error))
    }
}
