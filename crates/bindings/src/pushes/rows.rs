//! The short way for `x[key]` with a key that is an array.

use crate::array::{NDArray, raised};
use crate::trace;
use pyo3::prelude::*;
use weft_array::{Array, pick_rows};
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

/// A new array of the rows of `x` that a key of int64, or a mask, names; None where that takes more than a look at both.
#[pyfunction]
pub(crate) fn fresh_rows(x: &Bound<'_, NDArray>, key: &Bound<'_, NDArray>) -> PyResult<Option<NDArray>> {
    let (py, own) = (x.py(), x.get());
    let owner = own.owner().get();
    if own.tape.is_known() {
        return Ok(None);
    }
    let note = trace::of_arrays(py, &owner.inner, Kind::Compute, "getitem");
    let made = |shape: &[usize]| Array::empty(&owner.inner, shape, own.inner.dtype());
    let picked = pick_rows(&own.inner, &key.get().inner, PushOptions { note, ..PushOptions::default() }, made)
        .map_err(|error| raised(py, error))?;
    Ok(picked.map(|picked| NDArray::new(picked, own.owner().clone_ref(py))))
}
