//! Traces of a `weft.Engine`.

use super::Engine;
use crate::payloads::trace::{self, Traced};
use pyo3::prelude::*;
use std::sync::PoisonError;
use weft_engine::trace::Note;

impl Engine {
    /// The trace's note of a payload, and the payload, its callable wrapped if the trace asks for that.
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
}
