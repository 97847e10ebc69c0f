//! Points in a device's time, for measurements.

use super::backoff::Backoff;
use super::stream::Stream;
use crate::driver::EventHandle;
use crate::error::CudaError;
use std::fmt;

/// The moment at which all that was on a stream has ended. It orders nothing; [fences](crate::Fence) do.
pub struct TimePoint {
    stream: Stream,
    event: EventHandle,
}

impl Stream {
    /// Notes when all that is on the stream now has ended.
    pub fn time_point(&self) -> Result<TimePoint, CudaError> {
        let context = self.context();
        let _entered = context.enter()?;
        let refused = |error| context.refused("measuring", error);
        // SAFETY: the context is current.
        let event = unsafe { context.driver().create_event(true) }.map_err(refused)?;
        let point = TimePoint { stream: self.clone(), event };
        // SAFETY: both live.
        unsafe { context.driver().record_event(event, self.handle()) }.map_err(refused)?;
        Ok(point)
    }
}

impl TimePoint {
    fn wait(&self) -> Result<(), CudaError> {
        let (context, backoff) = (self.stream.context(), Backoff::new());
        loop {
            let _entered = context.enter()?;
            // SAFETY: the event lives as long as this.
            let happened = unsafe { context.driver().has_happened(self.event) };
            if happened.map_err(|error| context.refused("measuring", error))? {
                return Ok(());
            }
            if let Some(pause) = backoff.pause() {
                std::thread::sleep(pause);
            }
        }
    }

    /// Milliseconds from then until now, `now` being another point of the same device. Waits for both.
    pub fn milliseconds_to(&self, now: &Self) -> Result<f32, CudaError> {
        self.wait()?;
        now.wait()?;
        let context = self.stream.context();
        let _entered = context.enter()?;
        // SAFETY: both live, are timed, and have happened.
        unsafe { context.driver().elapsed(self.event, now.event) }.map_err(|error| context.refused("measuring", error))
    }
}

impl Drop for TimePoint {
    fn drop(&mut self) {
        if let Ok(_entered) = self.stream.context().enter_to_leave() {
            // SAFETY: it is not shared, and no stream waits for it.
            let _ = unsafe { self.stream.context().driver().destroy_event(self.event) };
        }
    }
}

impl fmt::Debug for TimePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimePoint").field("stream", &self.stream.number()).finish_non_exhaustive()
    }
}
