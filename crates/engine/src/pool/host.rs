//! The environment that some payloads need around them.

use std::any::Any;
use std::time::Duration;

/// Where hosted payloads run: for Python callables, a thread that holds the GIL.
pub trait Host: Any + Send + Sync {
    /// Calls `batch` inside. It runs many ops, so that entering is paid once for all of them.
    fn enter(&self, batch: &mut dyn FnMut());

    /// The calling thread is a worker, from now on.
    fn worker_begins(&self) {}

    /// A number of the calling thread outside of the engine, for traces. Called while ops wait for the answer: it must
    /// not wait itself, or run anything that a user wrote.
    fn thread(&self) -> u64 {
        0
    }

    /// How long a worker sleeps before [`Host::worker_rests`] is called on its thread; None if it need not be.
    fn rests_after(&self) -> Option<Duration> {
        None
    }

    /// The calling worker thread has slept for some time, and may do so for ever.
    fn worker_rests(&self) {}

    /// The calling worker thread is about to end; its state can go.
    fn worker_ends(&self) {}
}

/// The host of an engine that was given none: no environment at all.
pub(crate) struct DirectHost;

impl Host for DirectHost {
    fn enter(&self, batch: &mut dyn FnMut()) {
        batch();
    }
}
