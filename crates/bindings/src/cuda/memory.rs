//! Arrays in the memory of a device.

use super::runtime;
use crate::array::{NDArray, dtypes, raised};
use crate::engine::Engine;
use crate::errors;
use pyo3::prelude::*;
use std::sync::Arc;
use weft_array::{Array, Buffer, DType, Elsewhere, Layout};
use weft_cuda::{Device, DeviceBuffer};

/// The device memory of an array that is on a device.
pub(crate) fn buffer_of(array: &Array) -> Option<Arc<DeviceBuffer>> {
    array.buffer().storage().elsewhere()?.memory()
}

/// The same, where the array must be on a device.
pub(crate) fn expect(py: Python<'_>, array: &Array) -> PyResult<Arc<DeviceBuffer>> {
    buffer_of(array).ok_or_else(|| {
        let message = format!(
            "an array of shape {:?} is on the CPU, and the op runs on a CUDA device: copy the array there by \
             x.to_device(weft.gpu(i))",
            array.layout().shape.to_vec()
        );
        errors::argument_value(py, &message)
    })
}

/// Makes an array of device memory.
pub(crate) fn array_on(
    engine: &weft_engine::Engine,
    memory: Arc<DeviceBuffer>,
    readonly: bool,
    layout: Layout,
    dtype: DType,
) -> Result<Array, weft_array::ArrayError> {
    let (device, bytes) = (memory.device().clone(), memory.bytes());
    let name: Arc<str> = format!("cuda:{}", device.index()).into();
    let memory = Elsewhere::new(&name, memory);
    Array::on(Buffer::elsewhere(engine, bytes, readonly, runtime::number(&device), memory), layout, dtype)
}

/// An array of its own on a device, allocated when an op that fills it is issued.
pub(crate) fn empty_on(
    py: Python<'_>,
    engine: &Bound<'_, Engine>,
    shape: &[usize],
    dtype: DType,
    device: &Device,
) -> PyResult<NDArray> {
    let made = Layout::contiguous(shape, dtype.size()).and_then(|layout| {
        let memory = DeviceBuffer::new(device, layout.size() * dtype.size());
        array_on(&engine.get().inner, memory, false, layout, dtype)
    });
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
