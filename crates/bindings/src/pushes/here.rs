//! Python functions on small arrays that are there, run by their caller: it has the GIL, and a worker would have to wake up
//! and to ask for it.

use super::memory::{self, Lasting};
use crate::array::{NDArray, dtypes};
use crate::call::call;
use crate::location::Location;
use crate::trace;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use smallvec::SmallVec;
use std::ops::Range;
use weft_array::{Array, copy_if_there, note_computed, places_of_copies};
use weft_engine::trace::Kind;

/// Calls `func(*outputs, *inputs)`, with NumPy arrays, at this moment, if the inputs are there, and all arrays reach so many
/// bytes at most. The outputs are new. Answers whether it has: if not, or if the function has raised, the call is to be pushed.
#[pyfunction]
pub(crate) fn compute_here(
    func: &Bound<'_, PyAny>,
    outputs: &Bound<'_, PyTuple>,
    inputs: &Bound<'_, PyTuple>,
    name: &str,
    limit: usize,
) -> PyResult<bool> {
    let py = func.py();
    let (written, read) = (handles(outputs)?, handles(inputs)?);
    let Some(first) = written.first() else { return Ok(false) };
    let engine = first.get().owner().get();
    let written: SmallVec<[&Array; 2]> = written.iter().map(|array| &array.get().inner).collect();
    let read: SmallVec<[&Array; 4]> = read.iter().map(|array| &array.get().inner).collect();
    let (places, bytes) = places_of_copies(&read);
    let made: usize = written.iter().map(|array| array.bytes()).sum();
    if bytes.saturating_add(made) > limit {
        return Ok(false);
    }
    let mut copied = false;
    let block = PyBytes::new_with(py, bytes, |block| {
        copied = copy_if_there(&engine.inner, &written, &read, &places, block);
        Ok(())
    })?;
    if !copied {
        return Ok(false);
    }
    let mut views = Vec::with_capacity(written.len() + read.len());
    for array in &written {
        views.push(memory::view(py, array, false, Lasting::Op)?);
    }
    for (array, place) in read.iter().zip(&places) {
        views.push(copy_of(py, array, &block, place)?);
    }
    let span = engine.inner.start_span();
    match call(func, Some(&PyTuple::new(py, views)?)) {
        Ok(_) => {}
        // It fails once more where it is pushed, and there the version fails that it would have made.
        Err(error) if error.is_instance_of::<PyException>(py) => return Ok(false),
        Err(error) => return Err(error),
    }
    if let Some(span) = span {
        let location = Location::here(py);
        let note = trace::note_of_call(py, &engine.inner, Kind::Compute, Some(name), func, location);
        engine.inner.record_run(note, span);
    }
    note_computed(&written, &read);
    Ok(true)
}

fn handles<'py>(list: &Bound<'py, PyTuple>) -> PyResult<SmallVec<[Bound<'py, NDArray>; 4]>> {
    list.iter().map(|item| Ok(item.cast_into::<NDArray>()?)).collect()
}

/// A read-only NumPy array on a copy of the bytes that an array reaches.
fn copy_of<'py>(
    py: Python<'py>,
    array: &Array,
    block: &Bound<'py, PyBytes>,
    place: &Range<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let (layout, dtype) = (array.layout(), dtypes::to_python(py, array.dtype())?);
    let class = memory::ndarray(py)?;
    let shape = PyTuple::new(py, &layout.shape)?;
    if place.is_empty() {
        return class.call1((shape, dtype)); // there are no bytes to be looked at
    }
    let offset = place.start + layout.offset - array.range().start;
    class.call1((shape, dtype, block, offset, PyTuple::new(py, &layout.strides)?))
}
