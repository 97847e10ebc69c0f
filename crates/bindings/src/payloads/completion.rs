//! Completion tokens in Python's hands.

use super::callable::cause;
use crate::interpreter::errors;
use crate::interpreter::exceptions::Exceptions;
use crate::interpreter::location::Location;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use std::sync::Arc;

/// Completes one asynchronous op, once, from any thread.
///
/// Call it when the op's work is done, or call `fail` with an exception. If it is dropped unused,
/// the op fails with `CompletionError`.
#[pyclass(module = "weft", frozen)]
pub(crate) struct Completion {
    token: weft_engine::Completion,
    /// The engine's.
    exceptions: Arc<Exceptions>,
    name: String,
    location: Location,
}

impl Completion {
    pub(crate) fn new(
        token: weft_engine::Completion,
        exceptions: Arc<Exceptions>,
        name: String,
        location: Location,
    ) -> Self {
        Self { token, exceptions, name, location }
    }

    /// Fails the op, unless it has its answer. Answers whether it did.
    pub(crate) fn fail_with(&self, cause: weft_engine::Cause) -> bool {
        self.token.complete(Err(cause)).is_ok()
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if !self.token.is_used() {
            // The token's own drop would fail the op too, but could not say where it was pushed.
            Python::attach(|py| {
                let message = format!("the completion token of {} was dropped unused", self.name);
                let error = errors::completion(py, &message);
                let cause = cause(py, &self.exceptions, &error, &self.name, self.location);
                // If another call was faster, the op has its answer.
                let _ = self.token.complete(Err(cause));
            });
        }
    }
}

#[pymethods]
impl Completion {
    /// Completes the op.
    ///
    /// Raises
    /// ------
    /// CompletionError
    ///     If the token was used before.
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.token.complete(Ok(()))).map_err(|error| errors::raised(py, error))
    }

    /// Fails the op with an exception.
    ///
    /// Parameters
    /// ----------
    /// exc : BaseException
    ///     The exception that waits on the op's versions raise.
    ///
    /// Raises
    /// ------
    /// CompletionError
    ///     If the token was used before.
    fn fail(&self, exc: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = exc.py();
        let Ok(exception) = exc.cast::<PyBaseException>() else {
            let kind = exc.get_type().name()?;
            return Err(errors::argument_type(py, &format!("fail() takes an exception, not {kind}")));
        };
        if self.token.is_used() {
            return py.detach(|| self.token.complete(Ok(()))).map_err(|error| errors::raised(py, error));
        }
        let error = PyErr::from_value(exception.clone().into_any());
        let cause = cause(py, &self.exceptions, &error, &self.name, self.location);
        py.detach(|| self.token.complete(Err(cause))).map_err(|error| errors::raised(py, error))
    }

    fn __repr__(&self) -> String {
        let state = if self.token.is_used() { "used" } else { "unused" };
        format!("<weft.Completion of {}, {state}>", self.name)
    }
}
