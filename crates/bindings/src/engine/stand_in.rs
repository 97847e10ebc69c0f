//! Waits of workers that sleep outside of the engine, in an event loop.

use super::variable::Variable;
use crate::interpreter::errors;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, Weak};

thread_local! {
    /// That of this thread: a loop may wait for many things at once.
    static HELD: RefCell<Weak<weft_engine::StandIn>> = const { RefCell::new(Weak::new()) };
}

/// In its block another worker works in the place of this thread, if that is a worker, which waits there for a variable.
#[pyclass(module = "weft._core", frozen, name = "_StandIn")]
pub(crate) struct StandIn(Mutex<Option<Arc<weft_engine::StandIn>>>);

#[pymethods]
impl StandIn {
    /// Raises where the wait could never end: inside an op that accesses the variable, or if too many workers wait.
    #[new]
    #[pyo3(signature = (variable=None))]
    fn new(py: Python<'_>, variable: Option<&Bound<'_, Variable>>) -> PyResult<Self> {
        if let Some(variable) = variable {
            let own = variable.get();
            own.engine(py).get().inner.is_done(&own.inner).map_err(|error| errors::raised(py, error))?;
        }
        let held = HELD.with_borrow_mut(|held| {
            if let Some(held) = held.upgrade() {
                return Ok(Some(held));
            }
            let begun = weft_engine::StandIn::begin()?.map(Arc::new);
            *held = begun.as_ref().map_or_else(Weak::new, Arc::downgrade);
            Ok(begun)
        });
        Ok(Self(Mutex::new(held.map_err(|error| errors::raised(py, error))?)))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, PyTuple>) {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(held);
    }
}
