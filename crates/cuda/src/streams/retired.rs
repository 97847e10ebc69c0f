//! Streams without a handle any more. They and their events are destroyed when their work has ended, for which nothing
//! waits: the maker of the next stream looks, and at last the thread that lets go of the device.

use super::context::Context;
use crate::driver::{EventHandle, StreamHandle};
use std::time::{Duration, Instant};

/// How long the end of a device waits for the work on its streams.
const PATIENCE: Duration = Duration::from_secs(5);

/// The remains of a stream.
pub(crate) struct Retired {
    /// Nothing if the stream is another library's.
    stream: Option<StreamHandle>,
    events: Vec<EventHandle>,
    /// Behind all that is on the stream; nothing if none could be recorded, as on a device that has failed.
    last: Option<EventHandle>,
}

impl Retired {
    /// Takes leave of a stream. Inside of the context, if it still can be entered.
    ///
    /// # Safety
    ///
    /// The stream is valid; the events are not shared, nor is the stream if it is `owned`.
    pub(crate) unsafe fn new(context: &Context, stream: StreamHandle, owned: bool, events: Vec<EventHandle>) -> Self {
        let driver = context.driver();
        let last = context.enter().ok().and_then(|_entered| {
            // SAFETY: the stream is valid. A record on one that its owner captures never happens.
            if !owned && matches!(unsafe { driver.is_open(stream) }, Ok(false)) {
                return None;
            }
            // SAFETY: the context is current.
            let last = unsafe { driver.create_event(false) }.ok()?;
            // SAFETY: the caller's promise.
            if unsafe { driver.record_event(last, stream) }.is_ok() {
                return Some(last);
            }
            // SAFETY: nobody else knows it.
            let _ = unsafe { driver.destroy_event(last) };
            None
        });
        Self { stream: owned.then_some(stream), events, last }
    }

    /// Whether all that was on it has ended, or never will.
    fn has_ended(&self, context: &Context) -> bool {
        // SAFETY: the event is ours.
        self.last.is_none_or(|last| !matches!(unsafe { context.driver().has_happened(last) }, Ok(false)))
    }

    fn destroy(self, context: &Context) {
        for event in self.events.into_iter().chain(self.last) {
            // SAFETY: it is not shared, as promised to new().
            let _ = unsafe { context.driver().destroy_event(event) };
        }
        if let Some(stream) = self.stream {
            // SAFETY: as above.
            let _ = unsafe { context.driver().destroy_stream(stream) };
        }
    }
}

/// Destroys the streams that have ended. Answers those that have not. Inside of the context.
pub(crate) fn reap(context: &Context, retired: Vec<Retired>) -> Vec<Retired> {
    let (ended, rest): (Vec<_>, Vec<_>) = retired.into_iter().partition(|retired| retired.has_ended(context));
    ended.into_iter().for_each(|ended| ended.destroy(context));
    rest
}

/// Destroys them all, and waits a while for that. Inside of the context.
pub(crate) fn bury(context: &Context, mut retired: Vec<Retired>) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        retired = reap(context, retired);
        if retired.is_empty() || Instant::now() >= deadline {
            break;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    retired.into_iter().for_each(|retired| retired.destroy(context));
}
