//! The failures of ops as the core holds them: the material of an exception for the first reader.

use super::exceptions::{ExceptionSlot, Exceptions};
use super::location::Location;
use super::loose::Loose;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::fmt;
use std::sync::Arc;
use weft_mpi::MpiError;

/// An exception that a callable raised.
pub(crate) struct Raised {
    place: Option<Loose<ExceptionSlot>>,
    text: String,
}

impl Raised {
    pub(crate) fn new(py: Python<'_>, exceptions: &Arc<Exceptions>, error: &PyErr) -> Self {
        let (value, traceback) = (error.value(py).clone().unbind(), error.traceback(py).map(Bound::unbind));
        let text = error.to_string();
        Self { place: exceptions.keep(py, value, traceback).map(Loose::from), text }
    }

    /// The original, to be raised again.
    pub(crate) fn exception(&self, py: Python<'_>) -> Option<Py<PyBaseException>> {
        self.place.as_ref()?.get().exception(py)
    }
}

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Raised {}

/// A native function that answered something else than 0.
pub(crate) struct NativeFailure {
    pub(crate) code: i32,
    pub(crate) op: String,
    pub(crate) location: Location,
    /// The engine's.
    pub(crate) exceptions: Arc<Exceptions>,
    /// The exception, made when it is first raised: every wait raises the same one.
    pub(crate) place: PyOnceLock<Option<Loose<ExceptionSlot>>>,
}

impl fmt::Display for NativeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answered {} instead of 0", self.op, self.code)
    }
}

impl fmt::Debug for NativeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for NativeFailure {}

/// The exception of a rule in Python.
#[derive(Debug)]
pub(crate) struct Thrown(pub(crate) PyErr);

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Python::attach(|py| f.write_str(&self.0.value(py).to_string()))
    }
}

impl std::error::Error for Thrown {}

/// A call of a communicator that did not come to its end.
#[derive(Debug)]
pub(crate) struct CommunicatorFailure {
    pub(crate) error: MpiError,
    pub(crate) location: Location,
}

impl fmt::Display for CommunicatorFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for CommunicatorFailure {}
