//! Copies between the host and devices, and between devices.
//!
//! One from or to the host is pushed as two ops (see `weft_cuda::Landing`): one issues it, one ends when the device has
//! done with the host's memory.

use super::elementwise::compact;
use super::errors::broken;
use super::memory::expect;
use crate::array::moves::now;
use crate::array::{NDArray, raised};
use crate::engine::wait;
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use crate::payloads::trace;
use pyo3::prelude::*;
use weft_array::{Array, DType, Layout, recorded, recording};
use weft_device::{CopyError, Noted};
use weft_engine::Engine;
use weft_engine::trace::Kind;

/// The name of copies.
const COPY: &str = "copy";

/// Pushes a copy of contiguous elements, one side of which is on a device.
fn push_copy(py: Python<'_>, engine: &Engine, to: &Array, from: &Array) -> PyResult<()> {
    let location = Location::here(py);
    let noted = Noted {
        place: location.bits(),
        copy: trace::of_arrays(py, engine, Kind::Copy, COPY),
        land: trace::of_arrays(py, engine, Kind::Async, "land copy"),
    };
    weft_device::copy(engine, to, from, &noted).map_err(|error| match error {
        CopyError::Array(error) => raised(py, error),
        CopyError::Cuda(error) => broken(py, error),
    })
}

/// Pushes a copy of `x`, of the same dtype, size and order, to `output`; both are contiguous, and one is on a device.
#[pyfunction]
pub(crate) fn cuda_copy(output: &Bound<'_, NDArray>, x: &Bound<'_, NDArray>) -> PyResult<()> {
    let (output, x) = (now(output), now(x));
    let (py, to, from) = (output.py(), &output.get().inner, &x.get().inner);
    if to.dtype() != from.dtype() || to.bytes() != from.bytes() || !to.is_contiguous() || !from.is_contiguous() {
        let message = "a transfer takes two contiguous arrays of one dtype and size";
        return Err(errors::argument_value(py, message));
    }
    let engine = output.get().owner().get();
    engine.wait_for_room(py, to.bytes() as u64)?;
    push_copy(py, &engine.inner, to, from)
}

/// The elements of an array that is on a device, in memory of the host: waits for them.
///
/// All bytes between the first and the last element are copied, so that the layout stays as it is; unless most of them
/// are other arrays': then the elements are first brought together on the device.
pub(crate) fn to_host(py: Python<'_>, array: &Array) -> PyResult<Array> {
    expect(py, array)?;
    // Looks at values while this thread records have been checked.
    if recording::is_open() { recorded::suspended(|| copied_to_host(py, array)) } else { copied_to_host(py, array) }
}

fn copied_to_host(py: Python<'_>, array: &Array) -> PyResult<Array> {
    let range = array.range();
    if weft_device::is_gathered_first(array) {
        return copied_to_host(py, &compact(py, array)?);
    }
    let bytes = |buffer, offset| {
        let layout = Layout { offset, ..Layout::contiguous(&[range.len()], 1)? };
        Array::on(buffer, layout, DType::UInt8)
    };
    let engine = array.engine();
    let copied = (|| {
        let host = Array::empty(engine, &[range.len()], DType::UInt8)?;
        Ok((bytes(array.buffer().clone(), range.start)?, host))
    })();
    let (device, host) = copied.map_err(|error| raised(py, error))?;
    push_copy(py, engine, &host, &device)?;
    wait::detached(py, engine, None, |wait| host.wait_to_read(wait))?;
    let layout = Layout { offset: array.layout().offset.saturating_sub(range.start), ..array.layout().clone() };
    Array::on(host.buffer().clone(), layout, array.dtype()).map_err(|error| raised(py, error))
}
