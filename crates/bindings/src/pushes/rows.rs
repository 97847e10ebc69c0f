//! `x[key]` with a key that is an array.

use crate::array::moves::now;
use crate::array::{NDArray, raised};
use crate::hearing::short;
use crate::payloads::trace;
use crate::tape::attributes::Attributes;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weft_array::{Array, DType, pick_rows};
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

/// A new array of the rows of `x` that a key selects, an array of int64 or a mask. None for calls that need more than a
/// look at both. The tape hears it as `op`; for a mask it needs the positions, which are found elsewhere.
pub(crate) fn picked<'py>(
    x: &Bound<'py, NDArray>,
    key: &Bound<'py, NDArray>,
    op: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let (x, key) = (now(x), now(key));
    let (py, own) = (x.py(), x.get());
    let owner = own.owner().get();
    if own.tape.is_known() && key.get().inner.dtype() == DType::Bool {
        return Ok(None);
    }
    let note = trace::of_arrays(py, &owner.inner, Kind::Compute, "getitem");
    let made = |shape: &[usize]| Array::empty(&owner.inner, shape, own.inner.dtype());
    let picked = pick_rows(&own.inner, &key.get().inner, PushOptions { note, ..PushOptions::default() }, made)
        .map_err(|error| raised(py, error))?;
    let Some(picked) = picked else { return Ok(None) };
    let attributes = || {
        let made = PyDict::new(py);
        made.set_item(intern!(py, "key"), (intern!(py, "array"),))?;
        Ok(Attributes::Known(made.into_any().unbind()))
    };
    let result = Bound::new(py, NDArray::new(picked, own.owner().clone_ref(py)))?;
    short::noted_handle(op, attributes, &[x.as_any(), key.as_any()], &result)?;
    Ok(Some(result))
}
