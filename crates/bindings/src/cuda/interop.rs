//! Device memory in other libraries' hands, and theirs in ours: no copy, and no wait for the device.

use super::errors;
use super::hosted::{DeviceMemory, granted_place};
use super::memory::{array_on, buffer_of, expect, not_there};
use super::runtime;
use crate::array::moves::now;
use crate::array::{NDArray, check_look, raised};
use crate::engine::Engine;
use crate::engine::wait;
use crate::interpreter::dtypes;
use pyo3::prelude::*;
use weft_array::Layout;
use weft_cuda::driver::{DeviceAddress, StreamHandle};
use weft_cuda::{BufferAccess, CudaError, DeviceBuffer, Label, Request};
use weft_engine::AccessKind;

/// Where an array's buffer lies, its size, the device, a stream behind all its writers, and its keeper.
type Exported<'py> = (DeviceAddress, usize, usize, usize, Bound<'py, DeviceMemory>);

/// The place of an array's buffer, for a library that will read it behind the stream. In an op that was granted the
/// array, the stream is the op's; elsewhere this waits until what was pushed on the array is issued, and makes the
/// streams in `leads` wait for it.
#[pyfunction]
#[pyo3(signature = (x, leads=Vec::new()))]
pub(crate) fn cuda_export<'py>(x: &Bound<'py, NDArray>, leads: Vec<usize>) -> PyResult<Exported<'py>> {
    let x = now(x);
    let (py, actual) = (x.py(), x.get().actual());
    let array = &*actual;
    expect(py, array)?;
    let buffer = buffer_of(array).ok_or_else(|| errors::broken(py, not_there()))?;
    let device = buffer.device().clone();
    let keeper = Bound::new(py, DeviceMemory::new(&buffer))?;
    if let Some((address, stream)) = granted_place(array) {
        return Ok((address, buffer.bytes(), device.index(), stream, keeper));
    }
    check_look(py, array)?;
    wait::detached(py, array.engine(), None, |wait| array.wait_to_read(wait))?;
    let (label, accesses) = (Label::from("export"), [BufferAccess::part(&buffer, array.range(), AccessKind::Read)]);
    let begin = || -> Result<_, CudaError> {
        let begun = device.begin(&Request::new(&label, &accesses))?;
        let place = (begun.addresses()[0], begun.stream().handle().0);
        let fence = begun.finish()?;
        buffer.lend();
        for handle in leads {
            // SAFETY: the default stream, or the one that a library calls its current one.
            unsafe { fence.lead(StreamHandle(handle)) }?;
        }
        Ok(place)
    };
    let (address, stream) = begin().map_err(|error| errors::broken(py, error))?;
    Ok((address, buffer.bytes(), device.index(), stream, keeper))
}

/// Of this all elements' sizes are divisors, and it is one of the addresses at which libraries get memory from CUDA.
const ALIGNED: DeviceAddress = 16;

/// An array on another library's device memory, from `address` on, which `keeper` keeps. Ops come after what is on
/// `stream` now.
#[pyfunction]
#[pyo3(signature = (address, shape, strides, dtype, *, readonly, index, stream, keeper, engine))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // as the interface names them
pub(crate) fn cuda_wrap(
    address: DeviceAddress,
    shape: Vec<usize>,
    strides: Vec<isize>,
    dtype: &Bound<'_, PyAny>,
    readonly: bool,
    index: usize,
    stream: Option<usize>,
    keeper: &Bound<'_, PyAny>,
    engine: &Bound<'_, Engine>,
) -> PyResult<NDArray> {
    let py = keeper.py();
    let (dtype, device) = (dtypes::from_python(dtype)?, runtime::device(py, index)?);
    let steps = strides.iter().zip(&shape);
    let far = |(stride, length): (&isize, &usize)| stride * isize::try_from(*length).unwrap_or(0).saturating_sub(1);
    let below = if shape.contains(&0) { 0 } else { steps.map(far).map(|reach| reach.min(0)).sum::<isize>() };
    let layout = Layout { shape: shape.into(), strides: strides.into(), offset: below.unsigned_abs() };
    // The buffer begins where any element may: so an array's offset tells whether elements of another type may lie there.
    let first = address.wrapping_sub(below.unsigned_abs() as u64);
    let start = first - first % ALIGNED;
    let before = usize::try_from(first - start).unwrap_or(0);
    let layout = Layout { offset: layout.offset + before, ..layout };
    let bytes = layout.range(dtype.size()).end;
    let made = (|| {
        let ready = match stream {
            None => None,
            Some(handle) => {
                // SAFETY: the library says that it is a stream of this device.
                Some(unsafe { device.fence_behind(StreamHandle(handle), &Label::from("import")) }?)
            }
        };
        // SAFETY: the library says that these bytes are the device's; the object that keeps them is held.
        Ok(unsafe { DeviceBuffer::foreign(&device, start, bytes, ready, Box::new(keeper.clone().unbind())) })
    })();
    let memory = made.map_err(|error: CudaError| errors::broken(py, error))?;
    let array = array_on(&engine.get().inner, memory, readonly, layout, dtype).map_err(|error| raised(py, error))?;
    Ok(NDArray::new(array, engine.clone().unbind()))
}
