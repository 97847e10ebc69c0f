//! Python functions on small, ready arrays, run by their caller. The caller has the GIL already; a worker would have to
//! wake up and ask for it.

use super::memory;
use crate::array::moves::{elsewhere, now, taken};
use crate::array::{NDArray, numpy};
use crate::engine::Engine;
use crate::hearing::{record, short};
use crate::interpreter::call::{call, call_with};
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use crate::payloads::trace;
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyTuple};
use smallvec::SmallVec;
use std::ops::Range;
use weft_array::{Array, copy_if_there, copy_to_change, is_short, note_computed, places_of_copies, put_back};
use weft_engine::trace::{Kind, Span};

/// Calls `func(*outputs, *inputs)`, with NumPy arrays, at this moment, if the inputs are there, and that takes a short time,
/// at `effort` picoseconds for a byte of the arrays. The outputs are new. Answers whether it has: if not, or if the function has raised, the call is to be pushed.
#[pyfunction]
pub(crate) fn compute_here(
    func: &Bound<'_, PyAny>,
    outputs: &Bound<'_, PyTuple>,
    inputs: &Bound<'_, PyTuple>,
    name: &str,
    effort: usize,
) -> PyResult<bool> {
    let py = func.py();
    let (written, read) = (handles(outputs)?, handles(inputs)?);
    let Some(first) = written.first() else { return Ok(false) };
    let engine = first.get().owner().get();
    let written: SmallVec<[&Array; 2]> = written.iter().map(|array| &array.get().inner).collect();
    let read = of_core(&read);
    let Some(copies) = copies(py, engine, &written, &read, effort)? else { return Ok(false) };
    let mut views = Vec::with_capacity(written.len() + read.len());
    for array in &written {
        views.push(numpy::made(py, array.dtype(), &array.layout().shape)?);
    }
    views.extend(copies);
    let span = engine.inner.start_span();
    if !is_called(func, &views)? {
        return Ok(false);
    }
    for (array, found) in written.iter().zip(&views) {
        write(array, found)?;
    }
    if let Some(span) = span {
        record_call(func, engine, name, span);
    }
    note_computed(&written, &read);
    Ok(true)
}

/// Calls `func(x, *inputs)`, which changes `x`, with NumPy arrays now. All arrays must be ready, `x` without pending
/// ops, and the call short by `effort`. False: the call did not run, `func` raised, or another thread has written to
/// one of the arrays meanwhile. The caller then pushes it.
#[pyfunction]
pub(crate) fn change_here(
    func: &Bound<'_, PyAny>,
    x: &Bound<'_, NDArray>,
    inputs: &Bound<'_, PyTuple>,
    name: &str,
    effort: usize,
) -> PyResult<bool> {
    let (py, x) = (func.py(), &now(x));
    let read = handles(inputs)?;
    let engine = x.get().owner().get();
    let arrays: SmallVec<[&Array; 4]> = read.iter().chain([x]).map(|array| &array.get().inner).collect();
    let (places, bytes) = places_of_copies(&arrays);
    let Some((last, before)) = places.split_last().filter(|_| is_cheap(bytes, effort)) else { return Ok(false) };
    let mut copied = None;
    let block = PyByteArray::new_with(py, bytes, |block| {
        copied = copy_to_change(&engine.inner, &arrays, &places, block);
        Ok(())
    })?;
    let Some(copied) = copied else { return Ok(false) };
    let view = |array: &Array, place| copy_of(array, block.as_any(), block.data(), place, true);
    let mut views = vec![view(&x.get().inner, last)?];
    for (array, place) in arrays.iter().zip(before) {
        views.push(view(array, place)?);
    }
    let span = engine.inner.start_span();
    if !is_called(func, &views)? {
        return Ok(false);
    }
    // SAFETY: the block is shared with the views alone, and no more writes to them happen; Python does not run
    // meanwhile.
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

/// Calls a function with these arrays, and returns whether it ended without an error. After an error the call is
/// pushed: it fails again there, and with it the version that it would have made.
fn is_called(func: &Bound<'_, PyAny>, views: &[Bound<'_, PyAny>]) -> PyResult<bool> {
    let py = func.py();
    match call(func, Some(&PyTuple::new(py, views)?)) {
        Ok(_) => Ok(true),
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Records in the trace a call that began at `span`.
fn record_call(func: &Bound<'_, PyAny>, engine: &Engine, name: &str, span: Span) {
    let py = func.py();
    let note = trace::note_of_call(py, &engine.inner, Kind::Compute, Some(name), func, Location::here(py));
    engine.inner.record_run(note, span);
}

fn handles<'py>(list: &Bound<'py, PyTuple>) -> PyResult<SmallVec<[Bound<'py, NDArray>; 4]>> {
    list.iter().map(|item| Ok(taken(item)?)).collect()
}

/// The core's arrays of the handles.
pub(crate) fn of_core<'a>(handles: &'a [Bound<'_, NDArray>]) -> SmallVec<[&'a Array; 4]> {
    handles.iter().map(|array| &array.get().inner).collect()
}

/// A NumPy array on a copy of an array's bytes. The copy lies at `place` in `block`; the block begins at `start`.
fn copy_of<'py>(
    array: &Array,
    block: &Bound<'py, PyAny>,
    start: *mut u8,
    place: &Range<usize>,
    writable: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let layout = array.layout();
    if place.is_empty() {
        return numpy::made(block.py(), array.dtype(), &layout.shape); // no bytes to read
    }
    let first = start.wrapping_add(place.start + layout.offset - array.range().start);
    // SAFETY: the block holds all bytes that the layout reaches, at this place, and lives as long as its views.
    unsafe { numpy::on(array.dtype(), (&layout.shape, &layout.strides), first, writable, block.clone()) }
}

/// Copies to a new array, which has no other user, the elements of the NumPy array made for it.
fn write(array: &Array, found: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some(shown) = numpy::shown(found)? else { return Ok(()) };
    let start = array.buffer().start().map_err(|cause| errors::out_of_memory(found.py(), &cause.to_string()))?;
    // SAFETY: both have this many bytes, in C order.
    unsafe { shown.start.copy_to_nonoverlapping(start, array.bytes()) };
    Ok(())
}

/// Whether a function that takes so many picoseconds for a byte of its arrays is run by its caller.
pub(super) fn is_cheap(bytes: usize, effort: usize) -> bool {
    is_short(bytes.saturating_mul(effort) / 1000)
}

/// Copies of small arrays as NumPy arrays, if all of them are there; None if not.
fn copies<'py>(
    py: Python<'py>,
    engine: &Engine,
    written: &[&Array],
    read: &[&Array],
    effort: usize,
) -> PyResult<Option<SmallVec<[Bound<'py, PyAny>; 4]>>> {
    let (places, bytes) = places_of_copies(read);
    let made: usize = written.iter().map(|array| array.bytes()).sum();
    if !is_cheap(bytes.saturating_add(made), effort) {
        return Ok(None);
    }
    let mut copied = false;
    let block = PyBytes::new_with(py, bytes, |block| {
        copied = copy_if_there(&engine.inner, written, read, &places, block);
        Ok(())
    })?;
    if !copied {
        return Ok(None);
    }
    let start = block.as_bytes().as_ptr().cast_mut(); // only for reading
    let views = read.iter().zip(&places).map(|(array, place)| copy_of(array, block.as_any(), start, place, false));
    views.collect::<PyResult<_>>().map(Some)
}

/// The result of a call on small arrays, and the arrays that it read.
struct Found<'py> {
    result: Bound<'py, PyAny>,
    read: SmallVec<[Bound<'py, NDArray>; 4]>,
}

/// Calls a NumPy function, which makes its own results, with these arrays and numbers now. None if an array is not
/// ready, the call is not short, or the function raised.
fn found<'py>(
    func: &Bound<'py, PyAny>,
    operands: &[Bound<'py, PyAny>],
    attributes: &Bound<'py, PyDict>,
    name: &Bound<'py, PyAny>,
    effort: usize,
) -> PyResult<Option<Found<'py>>> {
    let py = func.py();
    let mut read: SmallVec<[Bound<'_, NDArray>; 4]> = SmallVec::new();
    for operand in operands {
        if let Ok(array) = operand.cast::<NDArray>() {
            if elsewhere(operand).is_some() {
                return Ok(None);
            }
            read.push(array.clone());
        } else if !is_number(operand) {
            return Ok(None);
        }
    }
    let Some(first) = read.first() else { return Ok(None) };
    let engine = first.get().owner().get();
    let Some(copies) = copies(py, engine, &[], &of_core(&read), effort)? else { return Ok(None) };
    let positional = if copies.len() == operands.len() {
        PyTuple::new(py, copies)?
    } else {
        let mut copies = copies.into_iter();
        let given = operands.iter().map(|operand| match operand.cast::<NDArray>() {
            Ok(_) => copies.next().unwrap_or_else(|| operand.clone()),
            Err(_) => operand.clone(),
        });
        PyTuple::new(py, given.collect::<SmallVec<[_; 4]>>())?
    };
    let span = engine.inner.start_span();
    let attributes = Some(attributes).filter(|attributes| !attributes.is_empty());
    let result = match call_with(func, &positional, attributes) {
        Ok(result) => result,
        Err(error) if error.is_instance_of::<PyException>(py) => return Ok(None),
        Err(error) => return Err(error),
    };
    if let Some(span) = span {
        record_call(func, engine, &name.extract::<PyBackedStr>()?, span);
    }
    Ok(Some(Found { result, read }))
}

impl<'py> Found<'py> {
    /// The result, or one of several, as a new array; None if arrays cannot have such elements.
    fn array(&self, result: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, NDArray>>> {
        let py = result.py();
        let Some(shown) = numpy::shown(result)? else {
            static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let as_array =
                AS_ARRAY.get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.getattr("asarray")?.unbind()))?;
            let array = as_array.bind(py).call1((result,))?;
            return if numpy::shown(&array)?.is_some() { self.array(&array) } else { Ok(None) };
        };
        let Ok(dtype) = dtypes::from_python(&shown.dtype) else { return Ok(None) };
        let owner = self.read[0].get().owner();
        let array = if let Some(copied) = memory::copied(py, &shown, dtype, owner.get())? {
            NDArray::new(copied, owner.clone_ref(py))
        } else if shown.is_own && shown.is_writable {
            memory::wrap(result, owner.bind(py), true, false)?
        } else {
            return self.array(&result.call_method0(intern!(py, "copy"))?);
        };
        note_computed(&[&array.inner], &of_core(&self.read));
        Bound::new(py, array).map(Some)
    }
}

/// The results of a NumPy function for ready arrays, as new arrays; `name` names the call. None if the caller has to
/// wait: an array is not ready, is large, or is known to the tape, or the function raised.
#[pyfunction]
#[pyo3(signature = (func, name, operands, effort, attributes))]
pub(crate) fn values_here<'py>(
    func: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyTuple>,
    effort: usize,
    attributes: &Bound<'py, PyDict>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let operands: SmallVec<[Bound<'_, PyAny>; 4]> = operands.iter().collect();
    if operands.iter().any(short::is_known) {
        return Ok(None);
    }
    let Some(found) = found(func, &operands, attributes, name, effort)? else { return Ok(None) };
    let Ok(several) = found.result.cast::<PyTuple>() else {
        return Ok(found.array(&found.result)?.map(Bound::into_any));
    };
    let mut arrays: SmallVec<[Bound<'_, NDArray>; 4]> = SmallVec::new();
    for result in several.iter() {
        let Some(array) = found.array(&result)? else { return Ok(None) };
        arrays.push(array);
    }
    let arrays = PyTuple::new(func.py(), arrays)?;
    if several.is_exact_instance_of::<PyTuple>() {
        return Ok(Some(arrays.into_any()));
    }
    several.get_type().call_method1(intern!(func.py(), "_make"), (arrays,)).map(Some) // a named tuple
}

/// An op's answer for these operands now, as a new array that the tape is told of; None if the op has to be pushed.
pub(crate) fn answered<'py>(
    op: &Bound<'py, PyAny>,
    (answer, effort): (&Bound<'py, PyAny>, usize),
    given: &[Bound<'py, PyAny>],
    attributes: impl FnOnce() -> PyResult<Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let py = op.py();
    if given.first().is_some_and(has_threads) {
        return Ok(None);
    }
    let (name, attributes) = (op.getattr(intern!(py, "name"))?, attributes()?);
    let Some(found) = found(answer, given, &attributes, &name, effort)? else { return Ok(None) };
    let Some(array) = found.array(&found.result)? else { return Ok(None) };
    if given.iter().any(short::is_known) {
        let given: SmallVec<[&Bound<'_, PyAny>; 4]> = given.iter().collect();
        let attributes = Some(attributes).filter(|attributes| !attributes.is_empty());
        let attributes =
            attributes.map(|attributes| Ok::<_, PyErr>(attributes.copy()?.into_any().unbind())).transpose()?;
        short::noted_handle(op, || Ok(attributes.into()), &given, &array)?;
    }
    Ok(Some(array))
}

/// Whether the array's engine sets its own number of threads for BLAS.
fn has_threads(operand: &Bound<'_, PyAny>) -> bool {
    operand.cast::<NDArray>().is_ok_and(|array| array.get().owner().get().blas_threads.is_some())
}

fn is_number(x: &Bound<'_, PyAny>) -> bool {
    x.is_exact_instance_of::<PyInt>()
        || x.is_exact_instance_of::<PyFloat>()
        || x.is_exact_instance_of::<PyBool>()
        || x.is_exact_instance_of::<PyComplex>()
}
