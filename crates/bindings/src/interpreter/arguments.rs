//! Reading arguments that many calls have in common.

use super::errors;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::time::Duration;
use weft_engine::{Device, DeviceLane};

/// `exec_func`, if it can be called.
#[inline]
pub(crate) fn check_callable(exec_func: &Bound<'_, PyAny>) -> PyResult<()> {
    if exec_func.is_callable() {
        return Ok(());
    }
    let found = exec_func.get_type().name()?;
    Err(errors::argument_type(exec_func.py(), &format!("exec_func must be callable, not {found}")))
}

/// A `weft.Device`, or the default one.
#[inline]
pub(crate) fn device(device: Option<&Bound<'_, PyAny>>) -> PyResult<Device> {
    let Some(device) = device else { return Ok(Device::default()) };
    let read = || -> PyResult<Device> {
        let copy = device.getattr("lane")?.cast_into::<PyString>()?.to_cow()? == "copy";
        let lane = if copy { DeviceLane::Copy } else { DeviceLane::Compute };
        Ok(Device { index: device.getattr("_number")?.extract()?, lane })
    };
    read().or_else(|_| {
        let found = device.get_type().name()?;
        let message = format!("device must be a weft.Device, as weft.cpu(0) or weft.cpu(0).copy, not {found}");
        Err(errors::argument_type(device.py(), &message))
    })
}

/// Seconds as a duration; None for no limit.
pub(crate) fn timeout(py: Python<'_>, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    self::seconds(py, "timeout", seconds)
}

/// Seconds of the argument of this name.
pub(crate) fn seconds(py: Python<'_>, argument: &str, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    match seconds {
        None => Ok(None),
        Some(seconds) if seconds.is_nan() || seconds < 0.0 => {
            let message = format!("{argument} must be None or a number of seconds of at least 0, not {seconds}");
            Err(errors::argument_value(py, &message))
        }
        // Longer than any clock runs is no limit.
        Some(seconds) => Ok(Duration::try_from_secs_f64(seconds).ok()),
    }
}
