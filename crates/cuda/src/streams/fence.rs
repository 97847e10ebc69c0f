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

/// An event, and its ops: some of a stream in a row, which have it in common. Owned by their fences, then by the
/// stream, which uses it again.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) event: EventHandle,
    /// Nothing while it is spare: a stream does not hold itself.
    stream: Option<Stream>,
    /// The number of the last op that the event is behind, once it is recorded; set in the stream's turn.
    behind: OnceLock<u64>,
    /// The outcome; nothing while one of the ops may still run.
    outcome: OnceLock<Result<(), Box<CudaError>>>,
}

impl Mark {
    /// A spare one, with its event not recorded.
    pub(crate) fn new(event: EventHandle) -> Self {
        Self { event, stream: None, behind: OnceLock::new(), outcome: OnceLock::new() }
    }

    /// The same for ops of this stream that are about to be issued.
    pub(crate) fn begin(&mut self, stream: &Stream) {
        *self = Self { stream: Some(stream.clone()), ..Self::new(self.event) };
    }

    /// The number of the last op that the event is behind; nothing while it is not recorded.
    #[inline]
    pub(crate) fn behind(&self) -> Option<u64> {
        self.behind.get().copied()
    }

    /// Notes that the event was recorded behind this op.
    pub(crate) fn is_behind(&self, number: u64) {
        // Once: the recorder has the turn, and looks before.
        let _ = self.behind.set(number);
    }
}

/// A handle on a fence; clones share it. States and owners are told on the front page of the crate.
#[derive(Clone)]
pub struct Fence {
    /// Taken when this is dropped.
    mark: Option<Arc<Mark>>,
    number: u64,
}

impl Fence {
    #[inline]
    pub(crate) fn new(mark: Arc<Mark>, number: u64) -> Self {
        Self { mark: Some(mark), number }
    }

    #[inline]
    pub(crate) fn mark(&self) -> &Arc<Mark> {
        // Only drop() takes it, and a dropped fence is not seen.
        self.mark.as_ref().unwrap_or_else(|| unreachable!("taken by drop alone"))
    }

    /// The number of the op on its stream.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The stream that the op is on.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        // Set when the first op was announced, before there was a fence.
        self.mark().stream.as_ref().unwrap_or_else(|| unreachable!("a fence has a stream"))
    }

    /// Sees to it that the event is recorded, and answers it. The caller has no turn.
    pub(crate) fn recorded(&self) -> Result<EventHandle, CudaError> {
        if self.mark().behind().is_none() {
            let stream = self.stream();
            let _entered = stream.context().enter()?;
            stream.turn().record_behind(self)?;
        }
        Ok(self.mark().event)
    }

    /// The event and the last op that it is behind, which is recorded now if the stream's turn is free; nothing if it
    /// is not.
    pub(crate) fn try_recorded(&self) -> Result<Option<(EventHandle, u64)>, CudaError> {
        if self.mark().behind().is_none() {
            let stream = self.stream();
            let _entered = stream.context().enter()?;
            let Some(mut turn) = stream.try_turn() else { return Ok(None) };
            turn.record_behind(self)?;
        }
        Ok(self.event())
    }

    /// The event, and the last op that it is behind; nothing while it is not recorded.
    #[inline]
    pub(crate) fn event(&self) -> Option<(EventHandle, u64)> {
        self.mark().behind().map(|behind| (self.mark().event, behind))
    }

    /// The op. Its name is forgotten when some thousand more were issued on its stream.
    #[must_use]
    pub fn label(&self) -> Label {
        self.stream().label(self.number).unwrap_or_else(|| Label::from("?"))
    }

    /// Whether both stand for one op.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.number == other.number && self.stream().is(other.stream())
    }

    /// The outcome as far as known without asking the device.
    #[inline]
    pub(crate) fn known(&self) -> Option<&Result<(), Box<CudaError>>> {
        self.mark().outcome.get()
    }

    /// Whether the op has ended. Asks the device, and does not wait.
    ///
    /// # Errors
    ///
    /// [`CudaError::Fault`] if the device failed before the op was seen to end: that stays so. [`CudaError::Refused`] if
    /// the driver would not say this time.
    pub fn is_done(&self) -> Result<bool, CudaError> {
        let known = &self.mark().outcome;
        let outcome = match known.get() {
            Some(outcome) => outcome,
            None => match self.stream().query(self) {
                Ok(false) => return Ok(false),
                Ok(true) => known.get_or_init(|| Ok(())),
                Err(fault @ CudaError::Fault { .. }) => known.get_or_init(|| Err(Box::new(fault))),
                Err(error) => return Err(error),
            },
        };
        match outcome {
            Ok(()) => Ok(true),
            Err(fault) => Err(CudaError::clone(fault)),
        }
    }

    /// Runs `then` with the op's outcome when it has ended: on the poller's thread, so it must be short and must not
    /// wait.
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
    /// The last one gives the event back. Two that go at the same time both see the other: then the one that is left with
    /// the content wraps it anew; so does one that goes while further ops may still join it.
    #[inline]
    fn drop(&mut self) {
        let Some(mut mark) = self.mark.take() else { return };
        if let Some(last) = Arc::get_mut(&mut mark) {
            if let Some(stream) = last.stream.take() {
                stream.recycle(mark);
            }
        } else if let Some(mut last) = Arc::into_inner(mark)
            && let Some(stream) = last.stream.take()
        {
            stream.recycle(Arc::new(last));
        }
    }
}

impl PartialEq for Fence {
    fn eq(&self, other: &Self) -> bool {
        self.is(other)
    }
}

impl Eq for Fence {}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence")
            .field("op", &self.label())
            .field("stream", &self.stream().number())
            .finish_non_exhaustive()
    }
}
