//! `weft.Variable`.

use super::Engine;
use super::recorded::check_pushed;
use crate::interpreter::errors;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

/// A handle on something that ops read and mutate. The engine orders accesses to it.
///
/// Made by `Engine.new_variable` or `Engine.variable_of`.
#[pyclass(module = "weft", frozen, weakref)]
pub(crate) struct Variable {
    pub(crate) inner: weft_engine::Variable,
    engine: Py<Engine>,
}

impl Variable {
    pub(crate) fn new(inner: weft_engine::Variable, engine: Py<Engine>) -> Self {
        Self { inner, engine }
    }

    /// The argument `var` of waits and deletions.
    #[inline]
    pub(crate) fn argument<'a, 'py>(var: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, Self>> {
        var.cast::<Self>().or_else(|_| {
            let found = var.get_type().name()?;
            let of_array =
                if found == "NDArray" { ": an array has wait_to_read() and wait_to_write() of its own" } else { "" };
            Err(errors::argument_type(var.py(), &format!("var must be a weft.Variable, not {found}{of_array}")))
        })
    }
}

#[pymethods]
impl Variable {
    /// The name it was given, or None.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.inner.name()
    }

    /// How many mutations of it were pushed.
    #[getter]
    fn version(&self) -> u64 {
        self.inner.version()
    }

    /// How many mutations of it have finished, failed ones included.
    #[getter]
    fn completed_version(&self) -> u64 {
        self.inner.completed_version()
    }

    /// The engine that made it.
    #[getter]
    pub(crate) fn engine(&self, py: Python<'_>) -> Py<Engine> {
        self.engine.clone_ref(py)
    }

    /// What tells it from all others: of its engine, and its own number.
    #[getter]
    fn _key(&self) -> (usize, u64) {
        (self.engine.get().inner.id(), self.inner.number())
    }

    #[getter]
    fn _deleted(&self) -> bool {
        self.inner.is_deleted()
    }

    /// Whether every mutation pushed so far has finished.
    ///
    /// Returns
    /// -------
    /// bool
    ///
    /// Raises
    /// ------
    /// CaptureError
    ///     While a function is recorded: if an op that changes it was recorded, not pushed.
    fn is_ready(&self, py: Python<'_>) -> PyResult<bool> {
        check_pushed(py, &self.inner)?;
        Ok(self.inner.is_ready())
    }

    /// The exception of its last finished version, without raising it; None if it did not fail.
    ///
    /// Returns
    /// -------
    /// BaseException or None
    ///
    /// Raises
    /// ------
    /// CaptureError
    ///     As for `is_ready`.
    fn exception(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        check_pushed(py, &self.inner)?;
        let engine = &self.engine.get().inner;
        let Some(failure) = py.detach(|| engine.failure(&self.inner)) else { return Ok(None) };
        failure.report();
        Ok(Some(errors::of_failure(py, &failure).into_value(py).into_any()))
    }

    /// Makes the last good version the value again, after ops that were to change it failed or were skipped.
    ///
    /// Waits for what was pushed. An op that was skipped has not touched what it was to change; one that raised may have.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds; no limit by default.
    ///
    /// Returns
    /// -------
    /// BaseException or None
    ///     What it had failed with, which counts as told; None if it had not failed.
    ///
    /// Raises
    /// ------
    /// RecoveryError
    ///     If an op that ran had begun to change it. Nothing has changed then: overwrite it.
    /// WaitTimeoutError
    ///     If the time ran out.
    #[pyo3(signature = (timeout=None))]
    fn recover<'py>(slf: &Bound<'py, Self>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("weft._engine.recover")?.getattr("recover_one")?.call1((slf, timeout))
    }

    /// Waits in asyncio, without blocking the event loop, until every mutation pushed so far has finished.
    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("weft._engine.awaitable")?.getattr("await_variable")?.call1((slf,))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.engine)
    }

    fn __repr__(&self) -> String {
        let name = match self.inner.name() {
            Some(name) => format!("'{name}'"),
            None => format!("#{}", self.inner.number()),
        };
        let (version, completed) = (self.inner.version(), self.inner.completed_version());
        let state = match (self.inner.is_deleted(), completed < version) {
            (true, _) => ", deleted".to_owned(),
            (false, true) => format!(", completed {completed}"),
            (false, false) => String::new(),
        };
        format!("<weft.Variable {name}, version {version}{state}>")
    }
}
