//! `weft._core.Nested`: blocks in blocks that are begun and ended by one call.
//!
//! Between the beginnings of two blocks an interrupt may come, where Python's code begins them: then the outer one is never
//! ended. Here none comes but inside of the managers' own calls.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Mutex, PoisonError};

/// Context managers, the outermost first, as one. It is not entered while it is entered.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct Nested {
    managers: Vec<Py<PyAny>>,
    entered: Mutex<bool>,
}

/// Ends blocks, the innermost first. Answers the first error.
fn leave<'py>(py: Python<'py>, managers: &[Py<PyAny>], error: &Bound<'py, PyTuple>) -> PyResult<()> {
    let leave = |manager: &Py<PyAny>| manager.call_method1(py, "__exit__", error).map(drop);
    managers.iter().rev().map(leave).fold(Ok(()), PyResult::and)
}

impl Nested {
    fn set_entered(&self, entered: bool) {
        *self.entered.lock().unwrap_or_else(PoisonError::into_inner) = entered;
    }
}

#[pymethods]
impl Nested {
    #[new]
    #[pyo3(signature = (*managers))]
    fn new(managers: Vec<Py<PyAny>>) -> Self {
        Self { managers, entered: Mutex::default() }
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let (py, own) = (slf.py(), slf.get());
        for (at, manager) in own.managers.iter().enumerate() {
            if let Err(error) = manager.call_method0(py, "__enter__") {
                let none = PyTuple::new(py, [py.None(), py.None(), py.None()])?;
                let _ = leave(py, &own.managers[..at], &none); // the error that came first is told
                return Err(error);
            }
        }
        own.set_entered(true);
        Ok(slf.clone())
    }

    #[pyo3(signature = (*error))]
    fn __exit__(&self, py: Python<'_>, error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.set_entered(false);
        leave(py, &self.managers, error)
    }

    /// Whether the blocks have begun.
    #[getter]
    fn _entered(&self) -> bool {
        *self.entered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.managers.iter().try_for_each(|manager| visit.call(manager))
    }
}
