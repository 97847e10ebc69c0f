//! Arrays from and to memory that Python sees.

use super::kinds;
use crate::array::moves::now;
use crate::array::{NDArray, numpy, raised};
use crate::engine::Engine;
use crate::hearing::record;
use crate::interpreter::arguments::Lengths;
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use crate::interpreter::loose::Loose;
use crate::payloads::trace;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::Arc;
use weft_array::{
    Array, Buffer, DType, Layout, Operand, Ownership, Pinned, Shape, StridedLoop, Strides, copy_loop, granted,
    known_devices, push_elementwise, recording,
};
use weft_engine::trace::Kind;
use weft_engine::{Device, DeviceLane, PushOptions};

/// The bytes of an array's buffer as a Python buffer. It keeps them alive.
#[pyclass(module = "weft._core", frozen, name = "_Memory")]
pub(crate) struct Memory {
    storage: Pinned,
    readonly: bool,
    /// Prevents the reuse of the bytes for another array.
    _buffer: Option<Arc<Buffer>>,
}

#[pymethods]
impl Memory {
    #[allow(clippy::needless_pass_by_value)] // required by pyo3
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let own = slf.get();
        let storage = own.storage.storage();
        let start = storage.start().map_err(|cause| errors::out_of_memory(slf.py(), &cause.to_string()))?;
        let bytes = isize::try_from(storage.bytes()).map_err(|_| PyBufferError::new_err("too large"))?;
        // SAFETY: CPython has `view` filled here; the bytes live as long as this object, which the view holds.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.cast(), bytes, c_int::from(own.readonly), flags)
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// The lifetime of a NumPy array on an array's elements.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Lasting {
    /// Any lifetime.
    Always,
    /// The run of one op. The view does not hold the buffer: the frames of an exception that the op raises would then
    /// hold it, and through its variable themselves.
    Op,
}

/// A NumPy array on the elements, without a wait.
pub(crate) fn view<'py>(
    py: Python<'py>,
    array: &Array,
    readonly: bool,
    lasting: Lasting,
) -> PyResult<Bound<'py, PyAny>> {
    let (buffer, layout) = (array.buffer(), array.layout());
    if buffer.bytes() == 0 {
        let made = numpy::made(py, array.dtype(), &layout.shape)?; // no bytes to read
        if readonly {
            made.getattr("flags")?.setattr("writeable", false)?;
        }
        return Ok(made);
    }
    let storage = buffer.storage().map_err(|error| raised(py, error))?;
    let kept = (lasting == Lasting::Always).then(|| Arc::clone(buffer));
    // What the running op asks for goes with it as a rule.
    let pinned = if kept.is_some() && granted(array).is_none() { storage.export() } else { storage.pin() };
    view_of(py, array, (pinned, kept), readonly)
}

/// A NumPy array on elements in this storage. It keeps the storage where it is, and the buffer if one is given.
pub(super) fn view_of<'py>(
    py: Python<'py>,
    array: &Array,
    (storage, kept): (Pinned, Option<Arc<Buffer>>),
    readonly: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (buffer, layout) = (array.buffer(), array.layout());
    let start = storage.storage().start().map_err(|cause| errors::out_of_memory(py, &cause.to_string()))?;
    let memory = Bound::new(py, Memory { storage, readonly: buffer.is_readonly(), _buffer: kept })?;
    let writable = !readonly && !buffer.is_readonly();
    let start = start.wrapping_add(layout.offset);
    // SAFETY: the elements lie inside the storage, which `memory` holds.
    unsafe { numpy::on(array.dtype(), (&layout.shape, &layout.strides), start, writable, memory.into_any()) }
}

/// A new array, allocated at the first write to it.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from a sequence
pub(crate) fn empty(shape: Lengths, dtype: &Bound<'_, PyAny>, engine: &Bound<'_, Engine>) -> PyResult<NDArray> {
    let dtype = dtypes::from_python(dtype)?;
    let array = Array::empty(&engine.get().inner, &shape.0, dtype).map_err(|error| raised(engine.py(), error))?;
    Ok(NDArray::new(array, engine.clone().unbind()))
}

/// A new array beside another one: of the same engine, and on the same device if that has its own memory.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // as above
pub(crate) fn beside(x: &Bound<'_, NDArray>, shape: Lengths, dtype: &Bound<'_, PyAny>) -> PyResult<NDArray> {
    fresh_beside(x.py(), now(x).get(), &shape.0, dtypes::from_python(dtype)?)
}

/// The same for a parsed shape and dtype.
pub(crate) fn fresh_beside(py: Python<'_>, own: &NDArray, shape: &[usize], dtype: DType) -> PyResult<NDArray> {
    let engine = &own.owner().get().inner;
    let array = match own.inner.buffer().home() {
        Some(home) => Array::made(shape, dtype, |bytes| Buffer::new_on(engine, bytes, home)),
        None => Array::empty(engine, shape, dtype),
    };
    Ok(NDArray::new(array.map_err(|error| raised(py, error))?, own.owner().clone_ref(py)))
}

/// A new array in the host's memory beside another one. Waits for room.
pub(crate) fn room_beside(py: Python<'_>, beside: &NDArray, shape: &[usize], dtype: DType) -> PyResult<Array> {
    let engine = beside.owner().get();
    let array = Array::empty(&engine.inner, shape, dtype).map_err(|error| raised(py, error))?;
    engine.wait_for_room(py, array.bytes() as u64)?;
    Ok(array)
}

/// An array's elements cast to a dtype by a loop, in a new array beside it.
pub(crate) fn cast_apart(py: Python<'_>, x: &NDArray, kernel: StridedLoop, dtype: DType) -> PyResult<Array> {
    apart(py, x, kernel, dtype, "astype", Kind::Compute)
}

/// The same without a cast: the elements in C order.
pub(crate) fn laid_out(py: Python<'_>, x: &NDArray) -> PyResult<Array> {
    let dtype = x.inner.dtype();
    apart(py, x, copy_loop(dtype), dtype, "copy", Kind::Copy)
}

fn apart(py: Python<'_>, x: &NDArray, kernel: StridedLoop, dtype: DType, name: &str, kind: Kind) -> PyResult<Array> {
    let made = Array::like(&x.inner, dtype).map_err(|error| raised(py, error))?;
    x.owner().get().wait_for_room(py, made.bytes() as u64)?;
    let note = trace::of_arrays(py, made.engine(), kind, name);
    let options = PushOptions { note, ..PushOptions::default() };
    push_elementwise(kernel, &[&made], &[Operand::Array(&x.inner)], options).map_err(|error| raised(py, error))?;
    Ok(made)
}

/// Bytes of a NumPy array up to which a copy costs less than a reference to it.
const FEW: usize = 1 << 12;

/// A copy of a NumPy array as a new array, if it is small and contiguous, and this thread does not record.
pub(super) fn copied(
    py: Python<'_>,
    shown: &numpy::Shown<'_, '_>,
    dtype: DType,
    engine: &Engine,
) -> PyResult<Option<Array>> {
    let layout =
        Layout { shape: Shape::from_slice(&shown.shape), strides: Strides::from_slice(shown.strides), offset: 0 };
    let bytes = layout.size().saturating_mul(dtype.size());
    if bytes > FEW || !layout.is_contiguous(dtype.size()) || recording::is_open() {
        return Ok(None);
    }
    let array = Array::empty(&engine.inner, &layout.shape, dtype).map_err(|error| raised(py, error))?;
    let start = array.buffer().start().map_err(|cause| errors::out_of_memory(py, &cause.to_string()))?;
    // SAFETY: NumPy's array has this many contiguous bytes, and so has the new one, which has no other user yet.
    unsafe { shown.start.copy_to_nonoverlapping(start, bytes) };
    Ok(Some(array))
}

/// A new array with the values of a NumPy array, as functions that make arrays need it: in one of our dtypes, and
/// small.
#[pyfunction]
pub(crate) fn fresh_copy(array: &Bound<'_, PyAny>, engine: &Bound<'_, Engine>) -> PyResult<Option<NDArray>> {
    let Some(shown) = numpy::shown(array)? else { return Ok(None) };
    let Some(dtype) = dtypes::known_as(&shown.dtype)? else { return Ok(None) };
    let Some(copied) = copied(array.py(), &shown, dtype, engine.get())? else { return Ok(None) };
    copied.set_device(0);
    Ok(Some(NDArray::new(copied, engine.clone().unbind())))
}

/// An array on the memory of a NumPy array, which it keeps. `own` promises that no other code will touch that memory.
/// Few values are copied. What is written to `shared` memory is for others to see: a recording writes there, too, and makes no
/// such array anew.
#[pyfunction]
#[pyo3(signature = (array, engine, *, own = false, shared = false))]
pub(crate) fn wrap(array: &Bound<'_, PyAny>, engine: &Bound<'_, Engine>, own: bool, shared: bool) -> PyResult<NDArray> {
    let py = array.py();
    let Some(shown) = numpy::shown(array)? else {
        return Err(errors::argument_type(py, &format!("expected a numpy.ndarray, not {}", array.get_type().name()?)));
    };
    let dtype = dtypes::from_python(&shown.dtype)?;
    if own && let Some(copied) = copied(py, &shown, dtype, engine.get())? {
        return Ok(NDArray::new(copied, engine.clone().unbind()));
    }
    let (start, readonly) = (shown.start, !shown.is_writable);
    let (shape, strides) = (Shape::from_slice(&shown.shape), Strides::from_slice(shown.strides));
    let far = |stride: isize, length: usize| stride * isize::try_from(length).unwrap_or(0).saturating_sub(1);
    let empty = shape.contains(&0);
    let below: isize =
        strides.iter().zip(&shape).map(|(&stride, &length)| if empty { 0 } else { far(stride, length).min(0) }).sum();
    let mut layout = Layout { shape, strides, offset: below.unsigned_abs() };
    let end = layout.range(dtype.size()).end;
    if empty {
        layout.offset = 0;
    }
    let start =
        NonNull::new(start.wrapping_offset(below)).ok_or_else(|| PyValueError::new_err("the array has no memory"))?;
    let keeper = Box::new(Loose::from(array.clone().unbind()));
    let (engine_of, end) = (&engine.get().inner, if empty { 0 } else { end });
    let ownership = if own { Ownership::Owned } else { Ownership::Borrowed };
    // SAFETY: NumPy keeps the bytes for the life of its array, which `keeper` holds; the caller answers for `own`.
    let buffer = unsafe { Buffer::foreign(engine_of, start, end, readonly, ownership, keeper) };
    if !shared {
        recording::note_constant(&buffer);
    }
    let array = Array::on(buffer, layout, dtype).map_err(|error| raised(py, error))?;
    Ok(NDArray::new(array, engine.clone().unbind()))
}

/// Pushes a copy of `x`, broadcast, to `output`, which has its dtype.
#[pyfunction]
pub(crate) fn copy_elements(output: &Bound<'_, NDArray>, x: &Bound<'_, NDArray>) -> PyResult<()> {
    let (output, x) = (now(output), now(x));
    let (py, to, from) = (output.py(), output.get(), x.get());
    if to.inner.dtype() != from.inner.dtype() {
        let message = format!("cannot copy {} to {}", from.inner.dtype().name(), to.inner.dtype().name());
        return Err(PyValueError::new_err(message));
    }
    let same = to.inner.buffer().is_same(from.inner.buffer()) && to.inner.layout() == from.inner.layout();
    if same {
        return Ok(()); // `x[i] += 1` ends with such an assignment
    }
    if to.inner.buffer().is_elsewhere() || from.inner.buffer().is_elsewhere() {
        return kinds::copy(py, &output, &x);
    }
    copy_on_host(py, to.owner().get(), &to.inner, &from.inner)?;
    record::wrote(py, to);
    Ok(())
}

/// The same between arrays of an engine and of one dtype in the host's memory. The tape is not told.
pub(crate) fn copy_on_host(py: Python<'_>, engine: &Engine, to: &Array, from: &Array) -> PyResult<()> {
    engine.wait_for_room(py, 0)?;
    let buffers = [Some(to.buffer()), Some(from.buffer())];
    let lane = match known_devices(&buffers)[..] {
        [one, other] if one.unwrap_or(0) != other.unwrap_or(0) => DeviceLane::Copy,
        _ => DeviceLane::Compute,
    };
    let options = PushOptions {
        device: Device { lane, ..Device::default() },
        note: trace::of_arrays(py, to.engine(), Kind::Copy, "copy"),
        ..PushOptions::default()
    };
    push_elementwise(copy_loop(to.dtype()), &[to], &[Operand::Array(from)], options).map_err(|error| raised(py, error))
}

/// Bytes of arrays in this process, without those below 4 KiB: allocated, in_use, cached, peak.
#[pyfunction]
pub(crate) fn memory_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = weft_array::memory_stats();
    let figures = PyDict::new(py);
    figures.set_item("allocated", stats.allocated)?;
    figures.set_item("in_use", stats.in_use)?;
    figures.set_item("cached", stats.cached)?;
    figures.set_item("peak", stats.peak)?;
    Ok(figures)
}

/// Returns to the system the memory kept for reuse, and starts the peak anew.
#[pyfunction]
pub(crate) fn memory_trim(py: Python<'_>) {
    py.detach(weft_array::trim_memory);
}
