//! CUDA in this process: the driver and its devices.

use super::device::Device;
use crate::driver::{Driver, RealDriver};
use crate::error::CudaError;
use crate::streams::{Runtime, Settings, fork};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
    /// [`CudaError::Unavailable`] names the missing part; [`CudaError::Forked`] if CUDA was in use before a fork.
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
        Self(Arc::new(Inner { runtime: Runtime::new(settings, driver), devices }))
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

    /// Ends the poller's thread when it has done its jobs, and waits for that. Answers whether it has ended.
    ///
    /// For the end of the process: a thread must not call the driver while that is taken down. A later job starts it
    /// anew.
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
