//! Copies between the host and devices, and between devices.
//!
//! One from or to the host is pushed as two ops (see `weft_cuda::Landing`): one issues it, one ends when the device has
//! done with the host's memory.

use super::capture;
use super::elementwise::{AXES, compact};
use super::memory::{buffer_of, expect};
use crate::array::{NDArray, raised};
use crate::errors;
use crate::location::Location;
use crate::trace;
use crate::wait;
use pyo3::prelude::*;
use std::mem::offset_of;
use weft_array::{Access, Array, Call, DType, Layout, push, push_pair};
use weft_cuda::{CudaError, HostMemory, Label, Landing, Region, copy, copy_in, copy_out};
use weft_engine::trace::Kind;
use weft_engine::{Cause, Engine, InOrder, OpContext, Payload, PlaceOffset, PushOptions};

/// What copies are called.
const COPY: &str = "copy";

/// Issues a copy from or to the host.
struct Transfer {
    device: Region,
    host: Array,
    to_device: bool,
    landing: Landing,
    location: Location,
}

impl Payload for Transfer {
    // SAFETY: a `Location` is eight bytes without padding.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(offset_of!(Transfer, location)) });

    fn queue(&self) -> Option<InOrder> {
        Some(self.device.device().queue())
    }

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let start = self.host.buffer().start()?.wrapping_add(self.host.layout().offset);
        // SAFETY: the array is contiguous, the two ops of this copy have its variable until it has landed, and the
        // landing keeps it. An array's memory is pinned as a whole or not at all, whoever has made it.
        let memory = unsafe { HostMemory::new(start, self.host.bytes()) };
        let label = label(self.location);
        if self.to_device {
            copy_in(context, &label, &self.device, memory, self.landing)?;
        } else {
            copy_out(context, &label, memory, &self.device, self.landing)?;
        }
        Ok(())
    }
}

fn label(location: Location) -> Label {
    Label::from(COPY).at(location.bits())
}

fn region(array: &Array) -> Result<Option<Region>, CudaError> {
    buffer_of(array).map(|buffer| Region::new(&buffer, array.layout().offset, array.bytes())).transpose()
}

/// What may go wrong with a push of a copy.
enum Refusal {
    Array(weft_array::ArrayError),
    Cuda(CudaError),
    Python(PyErr),
}

impl Refusal {
    fn raised(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Array(error) => raised(py, error),
            Self::Cuda(error) => errors::cuda(py, error),
            Self::Python(error) => error,
        }
    }
}

/// Pushes a copy of contiguous elements, one side of which is on a device.
fn push_copy(py: Python<'_>, engine: &Engine, to: &Array, from: &Array) -> Result<(), Refusal> {
    let location = Location::here(py);
    let (target, source) = (region(to).map_err(Refusal::Cuda)?, region(from).map_err(Refusal::Cuda)?);
    let arrays = [(to, Access::Overwrite), (from, Access::Read)];
    if capture::is_open() {
        match (&target, &source) {
            (Some(target), Some(source)) if target.device() == source.device() => {
                return capture::copy(py, engine, (target, source), &arrays).map_err(Refusal::Python);
            }
            (Some(_), Some(_)) => capture::refuse(py, &label(location), &arrays, "it copies between devices"),
            _ => capture::refuse(py, &label(location), &arrays, "it copies from or to the host"),
        }
        .map_err(Refusal::Python)?;
    }
    let note = trace::of_arrays(py, engine, Kind::Copy, COPY);
    let options = PushOptions { name: Some(COPY), bytes: to.bytes() as u64, note, ..PushOptions::default() };
    let request = Call::anywhere(engine, &arrays, options);
    let (host, device, to_device) = match (target, source) {
        (Some(target), Some(source)) => {
            let device = target.device().clone();
            let payload = device.issuing(move |_| Ok(copy(&label(location), &target, &source).map(drop)?));
            return push(payload, &request).map_err(Refusal::Array);
        }
        (Some(target), None) => (from, target, true),
        (None, Some(source)) => (to, source, false),
        (None, None) => {
            return Err(Refusal::Cuda(CudaError::InvalidArgument("neither array is on a device".to_owned())));
        }
    };
    let (landing, land) = Landing::keeping(device.device(), Box::new(host.clone()));
    let transfer = Transfer { device, host: host.clone(), to_device, landing, location };
    let kept = [(host, if to_device { Access::Read } else { Access::Mutate })];
    let landed = {
        // It waits for the device, and moves nothing.
        let note = trace::of_arrays(py, engine, Kind::Async, "land copy");
        Call::anywhere(engine, &kept, PushOptions { bytes: 0, note, ..options })
    };
    push_pair((transfer, &request), (land, &landed)).map_err(Refusal::Array)
}

/// Pushes a copy of `x`, of the same dtype, size and order, to `output`; both are contiguous, and one is on a device.
#[pyfunction]
pub(crate) fn cuda_copy(output: &Bound<'_, NDArray>, x: &Bound<'_, NDArray>) -> PyResult<()> {
    let (py, to, from) = (output.py(), &output.get().inner, &x.get().inner);
    if to.dtype() != from.dtype() || to.bytes() != from.bytes() || !to.is_contiguous() || !from.is_contiguous() {
        let message = "a transfer takes two contiguous arrays of one dtype and size";
        return Err(errors::argument_value(py, message));
    }
    let engine = output.get().owner().get();
    engine.wait_for_room(py, to.bytes() as u64)?;
    push_copy(py, &engine.inner, to, from).map_err(|refusal| refusal.raised(py))
}

/// The elements of an array that is on a device, in memory of the host: waits for them.
///
/// All bytes between the first and the last element are copied, so that the layout stays as it is; unless most of them
/// are other arrays': then the elements are first brought together on the device.
pub(crate) fn to_host(py: Python<'_>, array: &Array) -> PyResult<Array> {
    expect(py, array)?;
    let range = array.range();
    if array.bytes() > 0 && array.bytes() < range.len() / 4 * 3 && array.layout().shape.len() <= AXES {
        return to_host(py, &compact(py, array)?);
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
    push_copy(py, engine, &host, &device).map_err(|refusal| refusal.raised(py))?;
    wait::detached(py, engine, None, |wait| host.wait_to_read(wait))?;
    let layout = Layout { offset: array.layout().offset.saturating_sub(range.start), ..array.layout().clone() };
    Array::on(host.buffer().clone(), layout, array.dtype()).map_err(|error| raised(py, error))
}
