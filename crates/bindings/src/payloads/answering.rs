//! Callables whose waiter is to hear of it if the engine drops them unrun.
//!
//! The finalizers of Python's objects do not serve for that. A native worker that skips an op is not attached, and puts
//! its drops off until another thread attaches; and where there is no GIL, an object that another thread made is left
//! to that thread, which may wait for this very answer.

use crate::interpreter::loose::Loose;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A callable that an op calls, or that is called without arguments when the op is skipped or cancelled.
#[pyclass(module = "weft._core", frozen, name = "_Answering")]
pub(crate) struct Answering {
    run: Py<PyAny>,
    dropped: Py<PyAny>,
}

#[pymethods]
impl Answering {
    #[new]
    fn new(run: Py<PyAny>, dropped: Py<PyAny>) -> Self {
        Self { run, dropped }
    }

    #[pyo3(signature = (*args))]
    fn __call__(&self, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        self.run.call1(args.py(), args)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.run)?;
        visit.call(&self.dropped)
    }
}

impl Answering {
    /// Whether this is such a callable.
    #[inline]
    pub(crate) fn is(callable: &Bound<'_, PyAny>) -> bool {
        callable.is_exact_instance_of::<Self>()
    }

    /// The call of an op, and the call in its place if the op does not run.
    #[inline]
    pub(crate) fn open(callable: &Bound<'_, PyAny>) -> (Py<PyAny>, Option<Py<PyAny>>) {
        match callable.cast_exact::<Self>() {
            Ok(answering) => {
                let (answering, py) = (answering.get(), callable.py());
                (answering.run.clone_ref(py), Some(answering.dropped.clone_ref(py)))
            }
            Err(_) => (callable.clone().unbind(), None),
        }
    }
}

/// Says that an op was dropped, unless the interpreter ends.
#[inline]
pub(crate) fn tell(dropped: Option<Loose<PyAny>>) {
    if let Some(dropped) = dropped {
        Python::try_attach(|py| {
            if let Err(error) = dropped.call0(py) {
                error.write_unraisable(py, Some(dropped.bind(py)));
            }
        });
    }
}
