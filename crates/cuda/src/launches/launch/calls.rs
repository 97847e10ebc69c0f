//! The times of the driver's own calls, one after the other on one thread: the floors of this crate.

use super::Launch;
use crate::error::CudaError;
use crate::issue::Request;
use crate::label::Label;
use std::time::{Duration, Instant};
use weft_engine::Wait;

/// Bytes of the allocations: enough for none to be free of charge, little enough for any pool to have it.
const BYTES: usize = 1 << 20;

/// Mean times of the driver's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallTimes {
    /// A launch.
    pub launch: Duration,
    /// A launch and the record of an event behind it: the cost of a launch that others can wait for.
    pub launch_and_event: Duration,
    /// An allocation in stream order.
    pub allocate: Duration,
    /// A free in stream order.
    pub free: Duration,
    /// The query of an event.
    pub query: Duration,
    /// A wait of one stream for an event of another.
    pub wait: Duration,
}

fn mean(count: u32, mut call: impl FnMut() -> Result<(), CudaError>) -> Result<Duration, CudaError> {
    let start = Instant::now();
    for _ in 0..count {
        call()?;
    }
    Ok(start.elapsed() / count.max(1))
}

impl Launch {
    /// Makes each of the driver's calls so many times in a row, as one op that was granted the launch's accesses, and waits
    /// for the device. Fewer than a device's queue holds, or the driver waits for the device.
    pub fn time_calls(&self, count: u32, wait: &mut Wait<'_>) -> Result<CallTimes, CudaError> {
        self.check()?;
        let device = self.device();
        let (context, other, label) =
            (device.context(), device.new_stream()?, Label::bare("timing the driver's calls"));
        let request = Request { stream: self.inner.stream.as_ref(), ..Request::new(self.label(), self.accesses()) };
        let mut found = CallTimes::default();
        let fence = device.issue(&request, |issuing| {
            self.packed(issuing, |parameters| {
                // SAFETY: as in put().
                found.launch = mean(count, || unsafe { self.call(issuing, parameters) })?;
                Ok::<_, CudaError>(())
            })
        })?;
        fence.wait(wait)?;
        let fence = device.issue(&request, |issuing| {
            let (driver, stream) = (issuing.driver, issuing.stream.handle());
            let refused = |error| context.refused(&label, error);
            // SAFETY: the context is current.
            let event = unsafe { driver.create_event(false) }.map_err(refused)?;
            let mut blocks = Vec::with_capacity(count as usize);
            // SAFETY: as in put(); the event is ours, as are the blocks, which nothing uses, and each is freed once.
            let timed = unsafe {
                self.packed(issuing, |parameters| {
                    found.launch_and_event = mean(count, || {
                        self.call(issuing, parameters)?;
                        driver.record_event(event, stream).map_err(refused)
                    })?;
                    found.query = mean(count, || driver.query_event(event).map(drop).map_err(refused))?;
                    found.wait = mean(count, || driver.wait_event(other.handle(), event).map_err(refused))?;
                    found.allocate = mean(count, || {
                        blocks.push(driver.allocate(BYTES, context.pool, stream).map_err(refused)?);
                        Ok(())
                    })?;
                    Ok(())
                })
            };
            let mut blocks = blocks.into_iter();
            let freed = mean(u32::try_from(blocks.len()).unwrap_or(count), || match blocks.next() {
                // SAFETY: as above.
                Some(block) => unsafe { driver.free(block, stream) }.map_err(refused),
                None => Ok(()),
            });
            // SAFETY: as above. A stream that waits for an event keeps its own share of it.
            let _ = unsafe { driver.destroy_event(event) };
            timed?;
            found.free = freed?;
            Ok(())
        })?;
        fence.wait(wait)?;
        Ok(found)
    }
}
