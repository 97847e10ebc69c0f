//! Order with what other libraries issue on streams of their own, of which this crate knows nothing but the handle.
//!
//! Either side is put behind the other during a call, so nothing of theirs is kept.

use super::fence::{Fence, FenceCell};
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
        let (context, mut cell) = (stream.context(), stream.take_cell(label)?);
        // SAFETY: the caller's promise; nobody else has the event, and the turn is used inside of the context.
        let followed = unsafe {
            let recorded = context.driver().record_event(cell.event, other);
            recorded.and_then(|()| context.driver().wait_event(stream.handle(), cell.event))
        };
        let fence = followed.map_err(|error| context.refused(label, error)).and_then(|()| self.record(label));
        // It is spare when this stream has come past it.
        if let (Some(cell), Ok(fence)) = (Arc::get_mut(&mut cell), &fence) {
            *cell = FenceCell { number: fence.cell().number, ..FenceCell::new(cell.event) };
        }
        stream.recycle(cell);
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
        // SAFETY: the event is this fence's; the rest is the caller's promise.
        unsafe { context.driver().wait_event(other, self.event()) }
            .map_err(|error| context.refused(&self.label(), error))
    }
}
