//! The settings of a `weft.Engine`.

use crate::interpreter::arguments;
use crate::interpreter::errors;
use crate::interpreter::host::Gil;
use pyo3::prelude::*;
use std::sync::Arc;
use weft_engine::{OnLimit, Policy, Settings};

/// Settings as Python gives them.
pub(crate) struct Given<'a> {
    pub(crate) workers: Option<i64>,
    pub(crate) policy: &'a str,
    pub(crate) max_pending_ops: i64,
    pub(crate) max_pending_bytes: Option<i64>,
    pub(crate) on_limit: &'a str,
    pub(crate) stall_after: Option<f64>,
    pub(crate) rename_limit: i64,
    pub(crate) name: Option<String>,
}

impl Given<'_> {
    pub(crate) fn read(self, py: Python<'_>, host: Gil) -> PyResult<Settings> {
        let workers = match self.workers {
            None => available_processors(py)?,
            Some(workers) => at_least_one(py, "workers", workers)?,
        };
        let on_limit = match self.on_limit {
            "block" => OnLimit::Block,
            "raise" => OnLimit::Raise,
            other => {
                let message = format!("unknown on_limit '{other}'; it is 'block' or 'raise'");
                return Err(errors::argument_value(py, &message));
            }
        };
        Ok(Settings {
            workers: usize::try_from(workers).ok(),
            policy: self.policy.parse::<Policy>().map_err(|error| errors::raised(py, error))?,
            max_pending_ops: at_least_one(py, "max_pending_ops", self.max_pending_ops)?,
            max_pending_bytes: match self.max_pending_bytes {
                None => Settings::default().max_pending_bytes,
                Some(bytes) => at_least_one(py, "max_pending_bytes", bytes)?,
            },
            on_limit,
            stall_after: arguments::seconds(py, "stall_after", self.stall_after)?,
            rename_limit: rename_limit(py, self.rename_limit)?,
            name: self.name,
            host: Arc::new(host),
        })
    }
}

/// Storages that a buffer may have.
fn rename_limit(py: Python<'_>, number: i64) -> PyResult<usize> {
    let most = Settings::MAX_RENAME_LIMIT;
    usize::try_from(number)
        .ok()
        .filter(|number| (1..=most).contains(number))
        .ok_or_else(|| errors::argument_value(py, &format!("rename_limit must be between 1 and {most}, not {number}")))
}

/// A number that is to be positive.
pub(crate) fn at_least_one(py: Python<'_>, what: &str, number: i64) -> PyResult<u64> {
    let message = || format!("{what} must be at least 1, not {number}");
    u64::try_from(number).ok().filter(|&number| number > 0).ok_or_else(|| errors::argument_value(py, &message()))
}

/// Whether ``WEFT_CHECK`` asks for checks.
pub(crate) fn checks(py: Python<'_>) -> PyResult<bool> {
    let said = std::env::var_os("WEFT_CHECK");
    match said.as_deref().map(|said| said.to_string_lossy()).as_deref() {
        None | Some("" | "0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => {
            let shown: String = other.chars().take(40).collect();
            Err(errors::argument_value(
                py,
                &format!("the environment variable WEFT_CHECK must be 0 or 1, not '{shown}'"),
            ))
        }
    }
}

/// Refuses the intervals that `sys.setswitchinterval` refuses.
pub(crate) fn check_interval(py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
    match seconds {
        Some(seconds) if !(seconds > 0.0 && seconds.is_finite()) => {
            let message = format!("switch_interval must be a positive number of seconds, not {seconds}");
            Err(errors::argument_value(py, &message))
        }
        _ => Ok(()),
    }
}

/// Processors that this process may use.
fn available_processors(py: Python<'_>) -> PyResult<u64> {
    let os = py.import("os")?;
    match os.getattr_opt("sched_getaffinity")? {
        Some(affinity) => affinity.call1((0,))?.len().map(|count| count as u64),
        None => Ok(os.call_method0("cpu_count")?.extract::<Option<u64>>()?.unwrap_or(1)),
    }
}
