//! Arrays in the memory of a device.

use super::errors;
use super::runtime;
use crate::array::{NDArray, raised};
use crate::engine::Engine;
use crate::interpreter::dtypes;
use pyo3::prelude::*;
use weft_array::{Array, Buffer, DType, Layout, Ownership};
use weft_cuda::{Device, DeviceBuffer};
pub(crate) use weft_device::{array_on, buffer_of, fresh, memory_of, not_there};

/// The memory of an array, which must be on a device.
#[inline]
pub(crate) fn expect<'a>(py: Python<'_>, array: &'a Array) -> PyResult<&'a DeviceBuffer> {
    weft_device::expect(array).map_err(|error| raised(py, error))
}

/// An array of its own on a device, allocated when an op that fills it is issued.
pub(crate) fn empty_on(
    py: Python<'_>,
    engine: &Bound<'_, Engine>,
    shape: &[usize],
    dtype: DType,
    device: &Device,
) -> PyResult<NDArray> {
    let made = fresh(&engine.get().inner, device, shape, dtype);
    Ok(NDArray::new(made.map_err(|error| raised(py, error))?, engine.clone().unbind()))
}

/// An array of its own on the device of this number.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from a sequence
pub(crate) fn cuda_empty(
    shape: Vec<usize>,
    dtype: &Bound<'_, PyAny>,
    engine: &Bound<'_, Engine>,
    index: usize,
) -> PyResult<NDArray> {
    let py = engine.py();
    let device = runtime::device(py, index)?;
    empty_on(py, engine, &shape, dtypes::from_python(dtype)?, &device)
}

/// An array of the host's in pinned memory, which all devices reach by themselves.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from a sequence
pub(crate) fn cuda_empty_pinned(
    shape: Vec<usize>,
    dtype: &Bound<'_, PyAny>,
    engine: &Bound<'_, Engine>,
) -> PyResult<NDArray> {
    let py = engine.py();
    let (device, dtype) = (runtime::device(py, 0)?, dtypes::from_python(dtype)?);
    let layout = Layout::contiguous(&shape, dtype.size()).map_err(|error| raised(py, error))?;
    let bytes = layout.size() * dtype.size();
    // Pinning may take the driver a while.
    let block = py.detach(|| device.pinned(bytes)).map_err(|error| errors::broken(py, error))?;
    let start = block.first();
    // SAFETY: the block has so many bytes, which are its owner's alone. Who copies from or to them on a device holds the
    // buffer until that has ended, and so the block.
    let buffer =
        unsafe { Buffer::foreign(&engine.get().inner, start, bytes, false, Ownership::Owned, Box::new(block)) };
    let array = Array::on(buffer, layout, dtype).map_err(|error| raised(py, error))?;
    Ok(NDArray::new(array, engine.clone().unbind()))
}
