//! Traces of a `weft.Engine`.

use super::Engine;
use crate::cuda::times;
use crate::errors;
use crate::trace::{self, Traced};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::PoisonError;
use weft_engine::trace::Note;

impl Engine {
    /// What a trace is to know of a payload, and the payload, its callable wrapped if the trace asks for that.
    #[cold]
    pub(crate) fn traced<P: Traced>(&self, py: Python<'_>, payload: P, name: Option<&str>) -> PyResult<(P, Note)> {
        let note = trace::note_of(py, &self.inner, &payload, name);
        let wrap = self.wrap.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|wrap| wrap.clone_ref(py));
        let payload = match wrap {
            None => payload,
            Some(wrap) => payload.wrapped(|callable| wrap.call1(py, (callable, name)))?,
        };
        Ok((payload, note))
    }

    /// Starts to record, and wraps callables from now on.
    pub(super) fn start_trace(&self, py: Python<'_>, limit: u64, wrap: Option<Py<PyAny>>) -> PyResult<()> {
        py.detach(|| self.inner.start_trace(limit)).map_err(|error| errors::raised(py, error))?;
        py.detach(|| times::begin(&self.inner));
        *self.wrap.lock().unwrap_or_else(PoisonError::into_inner) = wrap;
        Ok(())
    }

    /// What was recorded so far.
    pub(super) fn read_trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut recording = py.detach(|| self.inner.read_trace()).map_err(|error| errors::raised(py, error))?;
        py.detach(|| times::join(&mut recording));
        trace::to_python(py, &recording)
    }

    /// Ends the trace. Answers what was recorded.
    pub(super) fn stop_trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut recording = py.detach(|| self.inner.stop_trace()).map_err(|error| errors::raised(py, error))?;
        py.detach(|| {
            times::join(&mut recording);
            times::end(&recording);
        });
        // Bound to a name, so that it is dropped after the lock is released.
        let wrap = self.wrap.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(wrap);
        trace::to_python(py, &recording)
    }
}
