//! The handle that Python has on an array. Its methods are in `face`.

use super::handle::Handle;
use super::raised;
use crate::engine::Engine;
use pyo3::prelude::*;
use std::borrow::Cow;
use weft_array::{Array, DType, Layout, stands_for};

/// An asynchronous n-dimensional array: operations on it push ops and return at once.
///
/// It is a handle on a shape, a dtype and memory that is allocated when the op runs that fills it. Reading its
/// values (``numpy()``, ``item()``, ``bool()``, printing) waits. Made by `asarray`, `empty`, `zeros` and all
/// functions that return arrays.
#[pyclass(module = "weft", frozen, weakref, subclass, name = "NDArray")]
pub(crate) struct NDArray {
    pub(crate) inner: Array,
    pub(crate) engine: Py<Engine>,
    pub(crate) tape: Handle,
}

impl NDArray {
    #[inline]
    pub(crate) fn new(inner: Array, engine: Py<Engine>) -> Self {
        Self { inner, engine, tape: Handle::default() }
    }

    /// A handle that the tape knows.
    pub(crate) fn with_tape(inner: Array, engine: Py<Engine>, tape: Handle) -> Self {
        Self { inner, engine, tape }
    }

    /// A view of an array's memory by this layout. The caller tells the tape.
    #[inline]
    pub(crate) fn view_of(of: &Bound<'_, Self>, layout: Layout, dtype: DType) -> PyResult<Self> {
        let (py, own) = (of.py(), of.get());
        let view = Array::on(own.inner.buffer().clone(), layout, dtype).map_err(|error| raised(py, error))?;
        Ok(Self::with_tape(view, own.engine.clone_ref(py), Handle::view_of(of)))
    }

    #[inline]
    pub(crate) fn owner(&self) -> &Py<Engine> {
        &self.engine
    }

    /// The array, or its stand-in in the op that this thread runs.
    #[inline]
    pub(crate) fn actual(&self) -> Cow<'_, Array> {
        stands_for(&self.inner).map_or(Cow::Borrowed(&self.inner), Cow::Owned)
    }
}
