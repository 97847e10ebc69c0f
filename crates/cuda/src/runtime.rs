//! CUDA in this process: the driver, its devices, and what they share.

use crate::device::Device;
use crate::driver::{Driver, RealDriver};
use crate::error::CudaError;
use crate::fork;
use crate::poller::Poller;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How CUDA is used.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Bytes of a chunk of a copy from or to pageable memory: so many that the start of a copy does not count, so few
    /// that the host copies one while the device copies another.
    pub chunk: usize,
    /// Parts of one buffer at most, each with the fences of what was issued on it: it takes time to go through them.
    pub parts: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { chunk: 1 << 20, parts: 1024 }
    }
}

/// What the devices share.
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
    fn check_process(&self) -> Result<(), CudaError> {
        if self.process != std::process::id() {
            self.abandon();
        }
        if self.is_abandoned() { Err(CudaError::Forked) } else { Ok(()) }
    }
}

struct Inner {
    runtime: Arc<Runtime>,
    devices: Vec<Mutex<Option<Device>>>,
}

/// CUDA, as this process may use it: a handle; clones share it.
///
/// One per process is enough. Devices are set up when they are first asked for; the poller's thread is started when
/// something is first waited for on behalf of the host.
#[derive(Clone)]
pub struct Cuda(Arc<Inner>);

impl Cuda {
    /// Finds the driver.
    ///
    /// # Errors
    ///
    /// [`CudaError::Unavailable`] says what is missing; [`CudaError::Forked`] if CUDA was in use before a fork.
    pub fn open() -> Result<Self, CudaError> {
        Self::open_library(None)
    }

    /// [`open`](Self::open), with the driver's library at this path.
    pub fn open_library(path: Option<&str>) -> Result<Self, CudaError> {
        if fork::is_inherited() {
            return Err(CudaError::Forked);
        }
        RealDriver::open(path).map(|driver| Self::with_driver(Arc::new(driver)))
    }

    /// CUDA on this driver.
    #[must_use]
    pub fn with_driver(driver: Arc<dyn Driver>) -> Self {
        Self::with_settings(driver, Settings::default())
    }

    /// CUDA on this driver, used like this.
    #[must_use]
    pub fn with_settings(driver: Arc<dyn Driver>, settings: Settings) -> Self {
        let devices = (0..driver.device_count()).map(|_| Mutex::new(None)).collect();
        let runtime = Arc::new(Runtime {
            settings,
            driver,
            poller: Poller::default(),
            streams: Mutex::new(0),
            abandoned: OnceLock::new(),
            process: std::process::id(),
        });
        fork::register(&runtime);
        Self(Arc::new(Inner { runtime, devices }))
    }

    /// How many devices there are.
    #[must_use]
    pub fn device_count(&self) -> usize {
        self.0.devices.len()
    }

    /// A device. The first call retains its primary context and makes its streams.
    pub fn device(&self, index: usize) -> Result<Device, CudaError> {
        self.0.runtime.check_process()?;
        let count = self.device_count();
        let place = self.0.devices.get(index).ok_or(CudaError::NoDevice { index, count })?;
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = &*place {
            return Ok(device.clone());
        }
        let device = Device::new(&self.0.runtime, index)?;
        *place = Some(device.clone());
        Ok(device)
    }

    /// Devices that were asked for.
    #[must_use]
    pub fn known(&self) -> Vec<Device> {
        let place = |place: &Mutex<Option<Device>>| place.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.0.devices.iter().filter_map(place).collect()
    }

    /// Ends the poller's thread when it has done what it was given, and waits for that. Answers whether it has ended.
    ///
    /// For the end of the process: a thread must not call the driver while that is taken down. What is handed to the
    /// poller later starts it anew.
    #[must_use]
    pub fn shut_down(&self, patience: Duration) -> bool {
        self.0.runtime.is_abandoned() || self.0.runtime.poller.shut_down(patience)
    }

    /// Gives memory that is kept for reuse back: pinned blocks, and those of the devices' pools.
    pub fn trim(&self) -> Result<(), CudaError> {
        for device in self.known() {
            device.trim()?;
        }
        Ok(())
    }
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuda").field("driver", &self.0.runtime.driver).field("devices", &self.device_count()).finish()
    }
}
