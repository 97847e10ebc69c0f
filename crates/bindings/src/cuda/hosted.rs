//! Python callables that issue work on a device: they run on the stream of their op, which is behind the fences of the
//! op's accesses, and the op's own fence follows their work.

use super::errors;
use super::memory::buffer_of;
use crate::array::raised;
use crate::interpreter::dtypes;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::RefCell;
use std::sync::Arc;
use weft_array::{Access, Array, ArrayError};
use weft_cuda::driver::DeviceAddress;
use weft_cuda::{BufferAccess, CudaError, Device, DeviceBuffer, Label, PinnedBuffer, Request};
use weft_engine::AccessKind;

/// The op that this thread runs, as foreign code sees it.
struct Current {
    device: usize,
    stream: usize,
    /// Where the buffers of its arrays lie.
    places: Vec<(Arc<DeviceBuffer>, DeviceAddress)>,
}

thread_local! {
    /// Ops under way on this thread, the innermost last.
    static CURRENT: RefCell<Vec<Current>> = const { RefCell::new(Vec::new()) };
}

/// Takes the op back, however it ends.
struct Until;

impl Drop for Until {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| drop(current.pop()));
    }
}

/// Keeps the memory of a device that foreign code looks at, where it lies.
#[pyclass(module = "weft._core", frozen, name = "_DeviceMemory")]
pub(crate) struct DeviceMemory {
    _buffer: PinnedBuffer,
}

impl DeviceMemory {
    pub(super) fn new(buffer: &Arc<DeviceBuffer>) -> Self {
        Self { _buffer: buffer.pin() }
    }
}

pub(super) fn accesses(arrays: &[(Array, Access)]) -> Vec<BufferAccess> {
    let access = |(array, access): &(Array, Access)| {
        let kind = if *access == Access::Read { AccessKind::Read } else { AccessKind::Mutate };
        buffer_of(array).map(|buffer| BufferAccess::part(&buffer, array.range(), kind))
    };
    arrays.iter().filter_map(access).collect()
}

/// The device of the arrays that are on one: that of the first which is written to, or else of the first.
pub(super) fn device(arrays: &[(Array, Access)]) -> Option<Device> {
    let on = |(array, _): &(Array, Access)| Some(buffer_of(array)?.device().clone());
    let written = arrays.iter().filter(|(_, access)| *access != Access::Read).find_map(on);
    written.or_else(|| arrays.iter().find_map(on))
}

/// Runs foreign code as an op on this device and stream, whose buffers lie at these places.
pub(super) fn as_current<T>(
    device: usize,
    stream: usize,
    places: Vec<(Arc<DeviceBuffer>, DeviceAddress)>,
    body: impl FnOnce() -> T,
) -> T {
    CURRENT.with_borrow_mut(|all| all.push(Current { device, stream, places }));
    let _until = Until;
    body()
}

/// Runs `body` as the op that was granted these arrays, on a stream of theirs if any is on a device.
pub(crate) fn on_stream(
    py: Python<'_>,
    arrays: &[(Array, Access)],
    label: &Label,
    body: impl FnOnce() -> PyResult<()>,
) -> PyResult<()> {
    let Some(device) = device(arrays) else { return body() };
    // The device may go on with an address of the host behind the op.
    arrays.iter().for_each(|(array, _)| array.buffer().pin_for_good());
    let accesses = accesses(arrays);
    let begun = device.begin(&Request::new(label, &accesses)).map_err(|error| errors::broken(py, error))?;
    let places = accesses.iter().map(|access| Arc::clone(&access.buffer)).zip(begun.addresses().iter().copied());
    let (index, stream, places) = (device.index(), begun.stream().handle().0, places.collect());
    let outcome = as_current(index, stream, places, || {
        let block = py.import("weft._cuda.streams")?.getattr("current")?.call1((index, stream))?;
        block.call_method0("__enter__")?;
        let outcome = body();
        block.call_method1("__exit__", (py.None(), py.None(), py.None())).and(outcome)
    });
    let finished = begun.finish().map(drop).map_err(|error: CudaError| errors::broken(py, error));
    outcome.and(finished)
}

/// The device and the stream of the op that this thread runs, if it is one on a device.
#[pyfunction]
pub(crate) fn cuda_current_stream() -> Option<(usize, usize)> {
    CURRENT.with_borrow(|current| current.last().map(|op| (op.device, op.stream)))
}

/// Where the buffer lies of an array that the running op was granted, and the op's stream.
pub(crate) fn granted_place(array: &Array) -> Option<(DeviceAddress, usize)> {
    let buffer = buffer_of(array)?;
    let place = |op: &Current| {
        let place = op.places.iter().find(|(place, _)| Arc::ptr_eq(place, &buffer))?;
        Some((place.1, op.stream))
    };
    CURRENT.with_borrow(|current| current.iter().rev().find_map(place))
}

/// A CuPy array on the elements, for the running op.
pub(crate) fn view<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let (Some((address, _)), Some(buffer)) = (granted_place(array), buffer_of(array)) else {
        let device = array.buffer().memory_elsewhere().map_or("cpu", |memory| memory.device()).to_owned();
        return Err(raised(py, ArrayError::Elsewhere { device }));
    };
    let layout = array.layout();
    let (bytes, device) = (buffer.bytes(), buffer.device().index());
    let keeper = Bound::new(py, DeviceMemory::new(&buffer))?;
    let dtype = dtypes::to_python(py, array.dtype())?;
    let shape = PyTuple::new(py, &layout.shape)?;
    let strides = PyTuple::new(py, &layout.strides)?;
    let arguments = (address, bytes, layout.offset, shape, strides, dtype, device, keeper);
    py.import("weft._cuda.views")?.getattr("view")?.call1(arguments)
}
