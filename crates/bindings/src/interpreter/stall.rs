//! Engines that stand still, as Python tells of them.

use super::location::Location;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Duration;

/// Lets the package say that nothing moves. An error there does not end the wait.
#[cold]
pub(crate) fn tell(py: Python<'_>, engine: &weft_engine::Engine, idle: Duration) {
    let told = || -> PyResult<()> {
        let report = report(py, engine)?;
        let tell = py.import("weft._trace.stall")?.getattr("log_stall")?;
        tell.call1((engine.name(), idle.as_secs_f64(), report)).map(drop)
    };
    if let Err(error) = told() {
        error.write_unraisable(py, None);
    }
}

/// Lets the package say that a wait is for an op of a device that does not end.
#[cold]
pub(crate) fn tell_of_device(py: Python<'_>, device: &str, op: &str, idle: Duration) {
    let told = || -> PyResult<()> {
        let tell = py.import("weft._trace.stall")?.getattr("log_device_stall")?;
        tell.call1((device, op, idle.as_secs_f64())).map(drop)
    };
    if let Err(error) = told() {
        error.write_unraisable(py, None);
    }
}

/// The ops that run, and those that wait, with their blockers.
pub(crate) fn report<'py>(py: Python<'py>, engine: &weft_engine::Engine) -> PyResult<Bound<'py, PyDict>> {
    let report = py.detach(|| engine.stall_report());
    let place = |bits| Location::of_bits(bits).describe(py).unwrap_or_default();
    let running = report.running.iter().map(|op| {
        let row = PyDict::new(py);
        row.set_item("label", &op.label)?;
        row.set_item("place", place(op.place))?;
        row.set_item("thread", op.thread)?;
        row.set_item("seconds", op.seen.as_secs_f64())?;
        Ok(row)
    });
    let running = running.collect::<PyResult<Vec<_>>>()?;
    let waiting = report.waiting.iter().map(|waiting| {
        let row = PyDict::new(py);
        row.set_item("label", &waiting.label)?;
        row.set_item("place", place(waiting.place))?;
        row.set_item("variable", &waiting.variable)?;
        row.set_item("blocked_by", &waiting.blocked_by)?;
        Ok(row)
    });
    let waiting = waiting.collect::<PyResult<Vec<_>>>()?;
    let answer = PyDict::new(py);
    answer.set_item("running", running)?;
    answer.set_item("waiting", waiting)?;
    answer.set_item("pending", report.pending)?;
    Ok(answer)
}
