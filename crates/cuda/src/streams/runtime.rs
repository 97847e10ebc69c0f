//! The shared state of this process's devices: the driver, the thread that looks after fences, and whether all this was
//! forked.

use super::fork;
use super::poller::Poller;
use crate::driver::Driver;
use crate::error::CudaError;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How CUDA is used.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Bytes of a chunk of a copy from or to pageable memory: so many that the start of a copy does not count, so few
    /// that the host copies one while the device copies another.
    pub chunk: usize,
    /// Parts of one buffer at most, each with the fences of its work: it takes time to go through them.
    pub parts: usize,
    /// Chunks of pinned memory that are made ready before copies want them, when a device is first used and when a copy has
    /// found none.
    pub ahead: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { chunk: 1 << 20, parts: 1024, ahead: 4 }
    }
}

/// The shared state of the devices.
pub(crate) struct Runtime {
    pub(crate) settings: Settings,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) poller: Poller,
    streams: Mutex<usize>,
    /// Set in a forked child.
    abandoned: OnceLock<()>,
    process: u32,
}

impl Runtime {
    pub(crate) fn new(settings: Settings, driver: Arc<dyn Driver>) -> Arc<Self> {
        let runtime = Arc::new(Self {
            settings,
            driver,
            poller: Poller::default(),
            streams: Mutex::new(0),
            abandoned: OnceLock::new(),
            process: std::process::id(),
        });
        fork::register(&runtime);
        runtime
    }

    /// A number for a stream, its own among all devices'.
    pub(crate) fn number_stream(&self) -> usize {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        *streams += 1;
        *streams - 1
    }

    /// Notes that the process was forked.
    pub(crate) fn abandon(&self) {
        let _ = self.abandoned.set(());
    }

    /// Whether the driver must not be called, because the process was forked.
    #[inline]
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.get().is_some()
    }

    /// Refuses in a forked child, whether anybody told us of the fork or not.
    pub(crate) fn check_process(&self) -> Result<(), CudaError> {
        if self.process != std::process::id() {
            self.abandon();
        }
        if self.is_abandoned() { Err(CudaError::Forked) } else { Ok(()) }
    }
}
