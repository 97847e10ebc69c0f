//! Kinds of devices that Python defines (`weft._call.backends`). Their memory is bytes that only callables reach.

use super::memory::view_of;
use crate::array::{NDArray, raised};
use crate::engine::Engine;
use crate::engine::wait;
use crate::interpreter::{devices, dtypes};
use pyo3::prelude::*;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use weft_array::{Array, Buffer, Home, Storage, recorded};

/// A device of such a kind.
struct KindHome {
    name: &'static str,
    number: u16,
}

impl Home for KindHome {
    fn name(&self) -> &'static str {
        self.name
    }

    fn number(&self) -> u16 {
        self.number
    }

    fn memory(&self, bytes: usize, _: usize) -> Arc<dyn Any + Send + Sync> {
        Storage::new(bytes)
    }
}

/// The device of this number, the same one for the life of the process.
fn home_of(name: &str, number: u16) -> &'static dyn Home {
    static HOMES: Mutex<Vec<&'static KindHome>> = Mutex::new(Vec::new());
    let mut homes = HOMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = homes.iter().find(|known| known.number == number) {
        return *known;
    }
    let made: &'static KindHome = Box::leak(Box::new(KindHome { name: name.to_owned().leak(), number }));
    homes.push(made);
    made
}

/// A new array on a device of a kind that Python defines, given the device's name and number.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from a sequence
pub(crate) fn kind_empty(
    shape: Vec<usize>,
    dtype: &Bound<'_, PyAny>,
    engine: &Bound<'_, Engine>,
    name: &str,
    number: u16,
) -> PyResult<NDArray> {
    let (owner, home) = (&engine.get().inner, home_of(name, number));
    let made = Array::made(&shape, dtypes::from_python(dtype)?, |bytes| Buffer::new_on(owner, bytes, home));
    Ok(NDArray::new(made.map_err(|error| raised(engine.py(), error))?, engine.clone().unbind()))
}

/// The bytes of an array on such a device.
fn storage_of(array: &Array) -> Option<Arc<Storage>> {
    array.buffer().memory_elsewhere()?.memory()
}

/// The elements of an array on a device, for the running op, as a NumPy or a CuPy array.
pub(super) fn view<'py>(py: Python<'py>, array: &Array, readonly: bool) -> PyResult<Bound<'py, PyAny>> {
    match storage_of(array) {
        Some(storage) => view_of(py, array, (storage.pin(), None), readonly),
        None => devices::of(array)?.view(py, array),
    }
}

/// The same for a request for the values inside an op that was granted the array.
pub(crate) fn granted_view<'py>(py: Python<'py>, array: &Array, writable: bool) -> PyResult<Bound<'py, PyAny>> {
    view(py, array, !writable)
}

/// The elements of an array on a device, copied to the host's memory. Waits for them.
pub(crate) fn to_host(py: Python<'_>, engine: &Py<Engine>, array: &Array) -> PyResult<Array> {
    if storage_of(array).is_none() {
        return devices::of(array)?.to_host(py, array);
    }
    recorded::suspended(|| {
        let host = Array::empty(array.engine(), &array.layout().shape, array.dtype());
        let host = host.map_err(|error| raised(py, error))?;
        let given = NDArray::new(array.clone(), engine.clone_ref(py));
        let result = NDArray::new(host.clone(), engine.clone_ref(py));
        copy(py, &Bound::new(py, result)?, &Bound::new(py, given)?)?;
        wait::detached(py, array.engine(), None, |wait| host.wait_to_read(wait))?;
        Ok(host)
    })
}

/// Pushes a copy of elements to, from or between devices, by the backend of their kind.
pub(crate) fn copy(py: Python<'_>, output: &Bound<'_, NDArray>, x: &Bound<'_, NDArray>) -> PyResult<()> {
    py.import("weft._call.backends")?.getattr("copy_elements")?.call1((output, x)).map(drop)
}

/// Pushes a loop over arrays on a device without kernels for it, by the backend of its kind.
pub(super) fn push_loop(
    py: Python<'_>,
    ufunc: Option<&Py<PyAny>>,
    targets: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
) -> PyResult<()> {
    py.import("weft._call.backends")?.getattr("push_loop")?.call1((ufunc, targets, inputs)).map(drop)
}
