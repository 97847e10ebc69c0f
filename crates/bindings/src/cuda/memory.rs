//! Arrays in the memory of a device.

use super::runtime;
use crate::array::{NDArray, dtypes, raised};
use crate::engine::Engine;
use crate::errors;
use pyo3::prelude::*;
use std::sync::Arc;
use weft_array::{Array, Buffer, DType, Elsewhere, Layout, Tuple};
use weft_cuda::{CudaError, Device, DeviceBuffer};

/// The device memory of an array that is on a device.
pub(crate) fn buffer_of(array: &Array) -> Option<Arc<DeviceBuffer>> {
    array.buffer().memory_elsewhere()?.memory()
}

/// The same, to look at.
#[inline]
pub(crate) fn memory_of(array: &Array) -> Option<&DeviceBuffer> {
    array.buffer().memory_elsewhere()?.get()
}

/// The same, where the array must be on a device.
#[inline]
pub(crate) fn expect<'a>(py: Python<'_>, array: &'a Array) -> PyResult<&'a DeviceBuffer> {
    memory_of(array).ok_or_else(|| {
        let message = format!(
            "an array of shape {} is on the CPU, and the op runs on a CUDA device: copy the array there by \
             x.to_device(weft.gpu(i))",
            Tuple(&array.layout().shape)
        );
        errors::argument_value(py, &message)
    })
}

/// What is said where memory of a device was looked for and is not.
pub(crate) fn not_there() -> CudaError {
    CudaError::InvalidArgument("an array is not on a device".to_owned())
}

/// Makes an array of device memory.
pub(crate) fn array_on(
    engine: &weft_engine::Engine,
    memory: Arc<DeviceBuffer>,
    readonly: bool,
    layout: Layout,
    dtype: DType,
) -> Result<Array, weft_array::ArrayError> {
    Array::on(shared(engine, memory, readonly), layout, dtype)
}

fn shared(engine: &weft_engine::Engine, memory: Arc<DeviceBuffer>, readonly: bool) -> Arc<Buffer> {
    let (bytes, number, name) = (memory.bytes(), runtime::number(memory.device()), runtime::name(memory.device()));
    Buffer::elsewhere(engine, bytes, readonly, number, Elsewhere::new(name, memory))
}

/// An array of its own on a device, in C order, allocated when an op that fills it is issued.
#[inline]
pub(crate) fn fresh(
    engine: &weft_engine::Engine,
    device: &Device,
    shape: &[usize],
    dtype: DType,
) -> Result<Array, weft_array::ArrayError> {
    Array::made(shape, dtype, |bytes| shared(engine, DeviceBuffer::new(device, bytes), false))
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
    let block = py.detach(|| device.pinned(bytes)).map_err(|error| errors::cuda(py, error))?;
    let start = block.first();
    // SAFETY: the block has so many bytes, which are its owner's alone. Who copies from or to them on a device holds the
    // buffer until that has ended, and so the block.
    let buffer = unsafe { Buffer::foreign(&engine.get().inner, start, bytes, false, Box::new(block)) };
    let array = Array::on(buffer, layout, dtype).map_err(|error| raised(py, error))?;
    Ok(NDArray::new(array, engine.clone().unbind()))
}
