//! The surroundings of a call that are part of its signature: whether programs are on, the default engine, whether one
//! trains.

use super::key::Around;
use crate::tape::listen::tape_surroundings;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::cell::Cell;
use std::sync::{PoisonError, RwLock};

/// How often programs were switched off.
static EAGER: RwLock<usize> = RwLock::new(0);

/// All programs are switched off while one of these lives.
pub(crate) struct Eager(());

impl Eager {
    pub(crate) fn begin() -> Self {
        *EAGER.write().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(())
    }
}

impl Drop for Eager {
    fn drop(&mut self) {
        *EAGER.write().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

thread_local! {
    /// How often of that does not count for this thread: calls that a check has let be programs.
    static LIFTED: Cell<usize> = const { Cell::new(0) };
}

/// One switch less counts on this thread while one of these lives.
pub(super) struct Lifted(usize);

impl Lifted {
    pub(super) fn begin() -> Self {
        Self(LIFTED.replace(1))
    }
}

impl Drop for Lifted {
    fn drop(&mut self) {
        LIFTED.set(self.0);
    }
}

/// How often programs are switched off for this thread.
pub(super) fn switched_off() -> usize {
    EAGER.read().unwrap_or_else(PoisonError::into_inner).saturating_sub(LIFTED.get())
}

/// Whether all programs are switched off.
#[pyfunction]
pub(crate) fn is_eager() -> bool {
    switched_off() > 0
}

/// The surroundings of a call, or None if programs are switched off.
pub(super) fn surroundings(py: Python<'_>) -> PyResult<Option<Around<'_>>> {
    static DEFAULTS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    if is_eager() {
        return Ok(None);
    }
    let defaults =
        DEFAULTS.get_or_try_init(py, || -> PyResult<_> { Ok(py.import("weft._engine.default")?.dict().unbind()) })?;
    let engine = defaults.bind(py).get_item(pyo3::intern!(py, "_engine"))?;
    Ok(Some(Around { tape: tape_surroundings(py)?, engine }))
}
