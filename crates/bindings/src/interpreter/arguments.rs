//! Reading arguments that many calls have in common.

use super::errors;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::time::Duration;
use weft_engine::{Device, DeviceLane, Policy};

/// Refuses an object that cannot be called.
#[inline]
pub(crate) fn check_callable(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
    if object.is_callable() {
        return Ok(());
    }
    let found = object.get_type().name()?;
    Err(errors::argument_type(object.py(), &format!("{argument} must be callable, not {found}")))
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
pub(crate) fn timeout(py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Duration>> {
    seconds(py, "timeout", timeout.map(|timeout| timeout.0))
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

/// A value out of its range, or one of another type; any other error as it is.
#[cold]
fn refused(object: Borrowed<'_, '_, PyAny>, error: PyErr, what: &str) -> PyErr {
    let py = object.py();
    let shown = || object.repr().map_or_else(|_| "that".to_owned(), |text| text.to_string());
    if error.is_instance_of::<PyOverflowError>(py) || error.is_instance_of::<PyUnicodeEncodeError>(py) {
        errors::argument_value(py, &format!("{what}, not {}", shown()))
    } else if error.is_instance_of::<PyTypeError>(py) {
        errors::argument_type(py, &format!("{what}, not {}", shown()))
    } else {
        error
    }
}

/// The lengths of an array's axes.
pub(crate) struct Lengths(pub(crate) Vec<usize>);

impl<'py> FromPyObject<'_, 'py> for Lengths {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Self).map_err(|error| {
            refused(object, error, &format!("array is too big: axes have at most {} elements", usize::MAX))
        })
    }
}

/// Declares plain values that calls take, each with its description, which only errors show.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident$(<$text:lifetime>)?($type:ty) = $what:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default)]
        pub(crate) struct $name$(<$text>)?(pub(crate) $type);

        values!(extract $name $($text)? = $what);
    )*};
    (extract $name:ident = $what:expr) => {
        impl<'py> FromPyObject<'_, 'py> for $name {
            values!(body 'py, '_, $what);
        }
    };
    (extract $name:ident $text:lifetime = $what:expr) => {
        impl<$text, 'py> FromPyObject<$text, 'py> for $name<$text> {
            values!(body 'py, $text, $what);
        }
    };
    (body $py:lifetime, $text:lifetime, $what:expr) => {
        type Error = PyErr;

        #[inline]
        fn extract(object: Borrowed<$text, $py, PyAny>) -> PyResult<Self> {
            object.extract().map(Self).map_err(|error| refused(object, error, $what.as_ref()))
        }
    };
}

values! {
    /// Ready ops with a higher one go first.
    Priority(i32) = "priority is a whole number from -2**31 to 2**31 - 1";
    /// The bytes that an op holds while it is pending.
    Bytes(u64) = "nbytes is a whole number from 0 to 2**64 - 1";
    /// Threads of an engine.
    Workers(i64) = "workers is a whole number from 1 to 2**63 - 1";
    /// How many ops may be pending.
    PendingOps(i64) = "max_pending_ops is a whole number from 1 to 2**63 - 1";
    /// How many bytes pending ops may hold.
    PendingBytes(i64) = "max_pending_bytes is a whole number from 1 to 2**63 - 1";
    /// Of a function or of data.
    Address(usize) = "address and data are whole numbers from 0 to 2**64 - 1";
    /// How long a call may wait.
    Timeout(f64) = "timeout must be None or a number of seconds of at least 0";
    /// After how long a wait warns.
    StallAfter(f64) = "stall_after must be None or a number of seconds of at least 0";
    /// How many storages a buffer may have.
    RenameLimit(i64) = "rename_limit is a whole number from 1 to 64";
    /// How long a busy thread keeps the GIL.
    SwitchInterval(f64) = "switch_interval must be a positive number of seconds";
    /// Threads of BLAS.
    BlasThreads(i64) = "blas_threads is a whole number from 1 to 2**63 - 1";
    /// Whether an op runs after a failure, too.
    AlwaysRun(bool) = "always_run is True or False";
    /// Whether an engine guards arrays with pending tasks.
    Check(bool) = "check is True, False or None";
    /// Whether ops that have not started are dropped.
    Cancel(bool) = "cancel is True or False";
    /// Of an engine, a variable or an op.
    Name<'a>(&'a str) = "name must be a string that UTF-8 can encode";
    /// The scheduling policy.
    PolicyName<'a>(&'a str) = format!("policy is one of {}", Policy::forms().join(", "));
    /// The behaviour of a push over a limit.
    LimitMode<'a>(&'a str) = "on_limit is 'block' or 'raise'";
}
