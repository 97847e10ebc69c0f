//! Fences: the moment at which an op, and all before it on its stream, has ended on the device.

use super::backoff::Backoff;
use super::stream::Stream;
use crate::driver::EventHandle;
use crate::error::CudaError;
use crate::label::Label;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use weft_engine::Wait;

/// How long a wait sleeps between two ticks.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// An event and what it stands for. Owned by the fences that hold it, then by its stream, which uses it again.
#[derive(Debug)]
pub(crate) struct FenceCell {
    pub(crate) event: EventHandle,
    pub(crate) number: u64,
    /// Nothing while it is spare: a stream does not hold itself.
    pub(crate) stream: Option<Stream>,
    /// What was found out; nothing while the op may still run.
    pub(crate) outcome: OnceLock<Result<(), Box<CudaError>>>,
}

impl FenceCell {
    /// A spare one.
    pub(crate) fn new(event: EventHandle) -> Self {
        Self { event, number: 0, stream: None, outcome: OnceLock::new() }
    }
}

/// A handle on a fence; clones share it. States and owners are told on the front page of the crate.
#[derive(Clone)]
pub struct Fence {
    /// Taken when this is dropped.
    cell: Option<Arc<FenceCell>>,
}

impl Fence {
    #[inline]
    pub(crate) fn new(cell: Arc<FenceCell>) -> Self {
        Self { cell: Some(cell) }
    }

    #[inline]
    pub(crate) fn cell(&self) -> &FenceCell {
        // Only drop() takes it, and nobody sees a dropped fence.
        self.cell.as_ref().unwrap_or_else(|| unreachable!("taken by drop alone"))
    }

    /// The stream that the op is on.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        // Set when the cell was announced, before there was a fence.
        self.cell().stream.as_ref().unwrap_or_else(|| unreachable!("a fence has a stream"))
    }

    /// The op. Its name is forgotten when some thousand more were issued on its stream.
    #[must_use]
    pub fn label(&self) -> Label {
        self.stream().label(self.cell().number).unwrap_or_else(|| Label::from("?"))
    }

    /// The event, for foreign code that waits for it on a stream of its own. It is this fence's while that lives.
    #[must_use]
    pub fn event(&self) -> EventHandle {
        self.cell().event
    }

    /// Whether both stand for one op.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.cell(), other.cell())
    }

    /// What is known without asking the device.
    #[inline]
    pub(crate) fn known(&self) -> Option<&Result<(), Box<CudaError>>> {
        self.cell().outcome.get()
    }

    /// Whether the op has ended. Asks the device, and does not wait.
    ///
    /// # Errors
    ///
    /// [`CudaError::Fault`] if the device failed before the op was seen to end: that stays so. [`CudaError::Refused`] if
    /// the driver would not say this time.
    pub fn is_done(&self) -> Result<bool, CudaError> {
        let cell = self.cell();
        let outcome = match cell.outcome.get() {
            Some(outcome) => outcome,
            None => match self.stream().query(cell) {
                Ok(false) => return Ok(false),
                Ok(true) => cell.outcome.get_or_init(|| Ok(())),
                Err(fault @ CudaError::Fault { .. }) => cell.outcome.get_or_init(|| Err(Box::new(fault))),
                Err(error) => return Err(error),
            },
        };
        match outcome {
            Ok(()) => Ok(true),
            Err(fault) => Err(CudaError::clone(fault)),
        }
    }

    /// Runs `then` with what has become of the op when it has ended: on the poller's thread, so it must be short and
    /// must not wait.
    pub fn when_done(self, then: impl FnOnce(Result<(), CudaError>) + Send + 'static) {
        let runtime = Arc::clone(&self.stream().context().runtime);
        runtime.poller.after(self, then);
    }

    /// Waits until the op has ended.
    ///
    /// The calling thread looks for itself and needs neither a worker nor the poller.
    pub fn wait(&self, wait: &mut Wait<'_>) -> Result<(), CudaError> {
        let backoff = Backoff::new();
        let mut next_tick = Instant::now() + TICK;
        while !self.is_done()? {
            if let Some(after) = wait.timeout.filter(|timeout| backoff.age() >= *timeout) {
                return Err(CudaError::Timeout { op: self.label().into(), after });
            }
            if let Some(tick) = &mut wait.tick
                && Instant::now() >= next_tick
            {
                if !tick() {
                    return Err(CudaError::Interrupted);
                }
                next_tick = Instant::now() + TICK;
            }
            if let Some(pause) = backoff.pause() {
                let left = wait.timeout.map(|timeout| timeout.saturating_sub(backoff.age()));
                std::thread::sleep(left.map_or(pause, |left| pause.min(left)));
            }
        }
        Ok(())
    }
}

impl Drop for Fence {
    /// The last one gives the cell back. Two that go at the same time both see the other: then the one that is left with the
    /// content wraps it anew.
    #[inline]
    fn drop(&mut self) {
        let Some(mut cell) = self.cell.take() else { return };
        if let Some(last) = Arc::get_mut(&mut cell) {
            if let Some(stream) = last.stream.take() {
                stream.recycle(cell);
            }
        } else if let Some(mut last) = Arc::into_inner(cell)
            && let Some(stream) = last.stream.take()
        {
            stream.recycle(Arc::new(last));
        }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence")
            .field("op", &self.label())
            .field("stream", &self.stream().number())
            .finish_non_exhaustive()
    }
}
