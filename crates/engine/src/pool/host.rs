//! The environment that some payloads need around them.

use std::any::Any;

/// Where hosted payloads run: for Python callables, a thread that holds the GIL.
pub trait Host: Any + Send + Sync {
    /// Calls `batch` inside. It runs many ops, so that entering is paid once for all of them.
    fn enter(&self, batch: &mut dyn FnMut());

    /// The calling thread is a worker, from now on.
    fn worker_begins(&self) {}

    /// A number by which others than the engine know the calling thread, for traces. Called while ops wait for the
    /// answer: it must not wait itself, or run anything that a user wrote.
    fn thread(&self) -> u64 {
        0
    }

    /// The calling worker thread is about to end; what was kept for it can go.
    fn worker_ends(&self) {}
}

/// The host of an engine that was given none: no environment at all.
pub(crate) struct DirectHost;

impl Host for DirectHost {
    fn enter(&self, batch: &mut dyn FnMut()) {
        batch();
    }
}
