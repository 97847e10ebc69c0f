//! A launch repeated without this crate's code between the driver's calls: the baseline for its own share.

use super::Launch;
use crate::error::CudaError;
use crate::issue::Request;
use std::time::{Duration, Instant};
use weft_engine::Wait;

/// The time of launches that were handed to the driver back to back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackToBack {
    /// Until the driver had taken the last one.
    pub issued: Duration,
    /// Until the device had done them all.
    pub completed: Duration,
}

impl Launch {
    /// Launches it so many times back to back, on one stream, as one op that was granted its accesses, and waits for
    /// the device.
    ///
    /// The parameters are packed once and one fence stands behind them all, so that the time is the driver's.
    pub fn back_to_back(&self, count: usize, wait: &mut Wait<'_>) -> Result<BackToBack, CudaError> {
        self.check()?;
        let request = Request { stream: self.inner.stream.as_ref(), ..Request::new(self.label(), self.accesses()) };
        let mut clock = None;
        let fence = self.device().issue(&request, |issuing| {
            self.packed(issuing, |parameters| {
                let start = Instant::now();
                for _ in 0..count {
                    // SAFETY: as in put().
                    unsafe { self.call(issuing, parameters) }?;
                }
                clock = Some((start, start.elapsed()));
                Ok(())
            })
        })?;
        fence.wait(wait)?;
        let Some((start, issued)) = clock else { unreachable!("all calls were taken") };
        Ok(BackToBack { issued, completed: start.elapsed() })
    }
}
