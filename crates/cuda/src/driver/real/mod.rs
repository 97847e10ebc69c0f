//! The CUDA driver of the machine, opened at run time: nothing of CUDA is needed to build or to load this crate.

mod launches;
mod memory;
mod streams;
mod symbols;

use super::{Answer, Driver};
use crate::error::{CudaError, DriverError};
use cudarc::driver::sys;
use libloading::Library;
use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::fmt;
use std::ptr;
use symbols::Symbols;

/// The usual place of the driver's library.
const LIBRARY: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
/// The oldest driver with the functions that are used here.
const OLDEST: c_int = 12_000;
const SUCCESS: c_uint = 0;
const NOT_READY: c_uint = 600;

/// The driver. It is never unloaded, and its functions may be called from any thread.
pub(crate) struct RealDriver {
    symbols: Symbols,
    devices: Vec<sys::CUdevice>,
    version: c_int,
}

/// A handle as the driver knows it.
fn pointer<T>(handle: usize) -> *mut T {
    ptr::with_exposed_provenance_mut(handle)
}

/// The substitute for CUDA.
fn unavailable(reason: impl Into<String>) -> CudaError {
    CudaError::Unavailable { reason: reason.into() }
}

impl RealDriver {
    /// Opens the driver, at this path or where it usually is, and finds its devices.
    pub(crate) fn open(path: Option<&str>) -> Result<Self, CudaError> {
        let path = path.unwrap_or(LIBRARY);
        // SAFETY: loading the driver runs its initialisers, as a request for CUDA asks for.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            // The system's words, which the error itself does not repeat.
            let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            let hint = "where it is not in its usual place, WEFT_CUDA_LIBRARY is its path";
            unavailable(format!("the NVIDIA driver cannot be loaded ({reason}); {hint}"))
        })?;
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: a library of this name is the driver.
        let symbols = unsafe { Symbols::find(library) }.map_err(|missing| {
            unavailable(format!("the NVIDIA driver has no {missing}; weft needs one for CUDA 12.0 or newer"))
        })?;
        let mut driver = Self { symbols, devices: Vec::new(), version: 0 };
        driver.start()?;
        Ok(driver)
    }

    fn start(&mut self) -> Result<(), CudaError> {
        let refused = |error: DriverError| unavailable(error.to_string());
        // SAFETY: the functions are the driver's, and write where they are told to.
        unsafe {
            let started = self.check("cuInit", (self.symbols.init)(0));
            started.map_err(|error| match error.code {
                100 => unavailable(format!("the NVIDIA driver finds no device ({error})")),
                _ => unavailable(format!("the NVIDIA driver does not start: {error}")),
            })?;
            let version = (self.symbols.driver_version)(&raw mut self.version);
            self.check("cuDriverGetVersion", version).map_err(refused)?;
            if self.version < OLDEST {
                let (major, minor) = (self.version / 1000, self.version % 1000 / 10);
                let message = format!("the NVIDIA driver is for CUDA {major}.{minor}; weft needs 12.0 or newer");
                return Err(unavailable(message));
            }
            let mut count = 0;
            let counted = (self.symbols.device_count)(&raw mut count);
            self.check("cuDeviceGetCount", counted).map_err(refused)?;
            if count == 0 {
                let message = "the NVIDIA driver finds no device; is CUDA_VISIBLE_DEVICES empty?";
                return Err(unavailable(message));
            }
            for ordinal in 0..count {
                let mut device = 0;
                let found = (self.symbols.device)(&raw mut device, ordinal);
                self.check("cuDeviceGet", found).map_err(refused)?;
                self.devices.push(device);
            }
        }
        Ok(())
    }

    /// Turns a code into an answer.
    #[inline]
    fn check(&self, call: &'static str, code: c_uint) -> Answer {
        if code == SUCCESS { Ok(()) } else { Err(self.error(call, code)) }
    }

    #[cold]
    fn error(&self, call: &'static str, code: c_uint) -> DriverError {
        let mut name: *const c_char = ptr::null();
        // SAFETY: the driver writes the address of a text of its own, which lives as long as its library.
        let named = unsafe { (self.symbols.error_name)(code, &raw mut name) };
        let name = if named == SUCCESS && !name.is_null() {
            // SAFETY: as above.
            unsafe { CStr::from_ptr::<'static>(name) }.to_str().unwrap_or("an error")
        } else {
            "an error that the driver has no name for"
        };
        DriverError { call, code, name }
    }
}

impl Driver for RealDriver {}

impl fmt::Debug for RealDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealDriver")
            .field("version", &self.version)
            .field("devices", &self.devices.len())
            .finish_non_exhaustive()
    }
}
