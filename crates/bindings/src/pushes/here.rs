//! Python functions on small arrays that are there, run by their caller: it has the GIL, and a worker would have to wake up
//! and to ask for it.

use super::memory::{self, Lasting};
use crate::array::{NDArray, dtypes};
use crate::call::call;
use crate::engine::Engine;
use crate::location::Location;
use crate::tape::moves::{now, taken};
use crate::tape::record;
use crate::trace;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyTuple};
use smallvec::SmallVec;
use std::ops::Range;
use weft_array::{Array, copy_if_there, copy_to_change, note_computed, places_of_copies, put_back};
use weft_engine::trace::{Kind, Span};

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
        views.push(copy_of(py, array, block.as_any(), place)?);
    }
    let span = engine.inner.start_span();
    if !is_called(func, views)? {
        return Ok(false);
    }
    if let Some(span) = span {
        record_call(func, engine, name, span);
    }
    note_computed(&written, &read);
    Ok(true)
}

/// Calls `func(x, *inputs)`, which changes `x`, with NumPy arrays, at this moment, if all are there, nothing is pending on `x`, and they
/// reach so many bytes at most. Answers whether it has: if not, if the function has raised or if somebody has written to one of
/// them meanwhile, the call is to be pushed.
#[pyfunction]
pub(crate) fn change_here(
    func: &Bound<'_, PyAny>,
    x: &Bound<'_, NDArray>,
    inputs: &Bound<'_, PyTuple>,
    name: &str,
    limit: usize,
) -> PyResult<bool> {
    let (py, x) = (func.py(), &now(x));
    let read = handles(inputs)?;
    let engine = x.get().owner().get();
    let arrays: SmallVec<[&Array; 4]> = read.iter().chain([x]).map(|array| &array.get().inner).collect();
    let (places, bytes) = places_of_copies(&arrays);
    let Some((last, before)) = places.split_last().filter(|_| bytes <= limit) else { return Ok(false) };
    let mut copied = None;
    let block = PyByteArray::new_with(py, bytes, |block| {
        copied = copy_to_change(&engine.inner, &arrays, &places, block);
        Ok(())
    })?;
    let Some(copied) = copied else { return Ok(false) };
    let mut views = vec![copy_of(py, &x.get().inner, block.as_any(), last)?];
    for (array, place) in arrays.iter().zip(before) {
        views.push(copy_of(py, array, block.as_any(), place)?);
    }
    let span = engine.inner.start_span();
    if !is_called(func, views)? {
        return Ok(false);
    }
    // SAFETY: nobody else has the block but the views, which nobody writes to any more; Python does not run meanwhile.
    let changed = unsafe { block.as_bytes() };
    let Some(changed) = changed.get(last.clone()) else { return Ok(false) };
    if !put_back(&engine.inner, &arrays, &copied, changed) {
        return Ok(false);
    }
    if let Some(span) = span {
        record_call(func, engine, name, span);
    }
    record::wrote(py, x.get());
    Ok(true)
}

/// Calls a function with these arrays. Answers whether it has come to its end: if not, it fails once more where it is pushed, and
/// there the version fails that it would have made.
fn is_called(func: &Bound<'_, PyAny>, views: Vec<Bound<'_, PyAny>>) -> PyResult<bool> {
    let py = func.py();
    match call(func, Some(&PyTuple::new(py, views)?)) {
        Ok(_) => Ok(true),
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Tells the trace of a call that has run since `span` began.
fn record_call(func: &Bound<'_, PyAny>, engine: &Engine, name: &str, span: Span) {
    let py = func.py();
    let note = trace::note_of_call(py, &engine.inner, Kind::Compute, Some(name), func, Location::here(py));
    engine.inner.record_run(note, span);
}

fn handles<'py>(list: &Bound<'py, PyTuple>) -> PyResult<SmallVec<[Bound<'py, NDArray>; 4]>> {
    list.iter().map(|item| Ok(taken(item)?)).collect()
}

/// A NumPy array on a copy of the bytes that an array reaches.
fn copy_of<'py>(
    py: Python<'py>,
    array: &Array,
    block: &Bound<'py, PyAny>,
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
