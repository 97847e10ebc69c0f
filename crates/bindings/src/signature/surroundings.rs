//! What surrounds a call and is part of its signature: whether programs are on, the default engine, whether one trains.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use smallvec::SmallVec;
use std::sync::{PoisonError, RwLock};

/// Whether programs are switched off, and the functions that tell what surrounds a call: whether one trains, say.
static SURROUNDINGS: RwLock<Surroundings> = RwLock::new(Surroundings { eager: 0, ambient: Vec::new() });

struct Surroundings {
    eager: usize,
    ambient: Vec<Py<PyAny>>,
}

/// Switches all programs off, or on again; they count.
#[pyfunction]
pub(crate) fn set_eager(on: bool) {
    let mut surroundings = SURROUNDINGS.write().unwrap_or_else(PoisonError::into_inner);
    surroundings.eager = if on { surroundings.eager + 1 } else { surroundings.eager.saturating_sub(1) };
}

/// Whether all programs are switched off.
#[pyfunction]
pub(crate) fn is_eager() -> bool {
    SURROUNDINGS.read().unwrap_or_else(PoisonError::into_inner).eager > 0
}

/// Makes what `read()` returns part of every signature from now on.
#[pyfunction]
pub(crate) fn ambient(read: Py<PyAny>) {
    SURROUNDINGS.write().unwrap_or_else(PoisonError::into_inner).ambient.push(read);
}

/// What surrounds a call, or None if programs are switched off.
pub(super) fn surroundings(py: Python<'_>) -> PyResult<Option<SmallVec<[Bound<'_, PyAny>; 4]>>> {
    static DEFAULTS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let surroundings = SURROUNDINGS.read().unwrap_or_else(PoisonError::into_inner);
    if surroundings.eager > 0 {
        return Ok(None);
    }
    let reads: SmallVec<[_; 4]> = surroundings.ambient.iter().map(|read| read.bind(py).clone()).collect();
    drop(surroundings); // before Python runs
    let defaults =
        DEFAULTS.get_or_try_init(py, || -> PyResult<_> { Ok(py.import("weft._default")?.dict().unbind()) })?;
    let engine = defaults.bind(py).get_item(pyo3::intern!(py, "_engine"))?;
    let mut found: SmallVec<[_; 4]> = reads.iter().map(PyAnyMethods::call0).collect::<PyResult<_>>()?;
    found.extend(engine);
    Ok(Some(found))
}
