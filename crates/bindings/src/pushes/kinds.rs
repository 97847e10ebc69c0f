//! Kinds of devices by their backends in Python (`weft._call.backends`): kernels, copies and loops that a backend pushes.
//!
//! A kind without a [`Kind`] of the core's is [`Described`] by its backend alone. Its memory is bytes that only callables reach.

use super::memory::view_of;
use crate::array::{NDArray, raised};
use crate::engine::Engine;
use crate::engine::wait;
use crate::interpreter::arguments::Lengths;
use crate::interpreter::devices::{self, Kernels, Kind};
use crate::interpreter::{dtypes, errors};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyComplex, PyTuple};
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use weft_array::{Array, Buffer, DType, Elsewhere, Home, Operand, Scalar, Storage, recorded};

/// A device of a kind that is described.
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

/// The device of this number, the same one for the life of the process. None if the kind is one too many.
fn home_of(name: &str, number: u16) -> Option<&'static dyn Home> {
    static HOMES: Mutex<Vec<&'static KindHome>> = Mutex::new(Vec::new());
    let mut homes = HOMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = homes.iter().find(|known| known.number == number) {
        return Some(*known);
    }
    let kind = kind_of(name);
    if !devices::add(kind, || Box::leak(Box::new(Described { name: kind.to_owned().leak() }))) {
        return None;
    }
    let made: &'static KindHome = Box::leak(Box::new(KindHome { name: name.to_owned().leak(), number }));
    homes.push(made);
    Some(made)
}

/// The kind in the name of a device.
fn kind_of(device: &str) -> &str {
    device.split_once(':').map_or(device, |(kind, _)| kind)
}

/// A kind that Python defines.
struct Described {
    name: &'static str,
}

impl Kind for Described {
    fn name(&self) -> &'static str {
        self.name
    }

    fn owns(&self, array: &Array) -> bool {
        let of = |memory: &Elsewhere| memory.get::<Storage>().is_some() && kind_of(memory.device()) == self.name;
        array.buffer().memory_elsewhere().is_some_and(of)
    }

    fn view<'py>(&self, py: Python<'py>, array: &Array, readonly: bool) -> PyResult<Bound<'py, PyAny>> {
        let Some(storage) = array.buffer().memory_elsewhere().and_then(Elsewhere::memory::<Storage>) else {
            unreachable!("a kind is asked for arrays of its own");
        };
        view_of(py, array, (storage.pin(), None), readonly)
    }

    fn to_host(&self, engine: &Bound<'_, PyAny>, array: &Array) -> PyResult<Array> {
        let (py, engine) = (engine.py(), engine.cast::<Engine>()?);
        recorded::suspended(|| {
            let host = Array::empty(array.engine(), &array.layout().shape, array.dtype());
            let host = host.map_err(|error| raised(py, error))?;
            copy(py, &handle(engine, &host)?, &handle(engine, array)?)?;
            wait::detached(py, array.engine(), None, |wait| host.wait_to_read(wait))?;
            Ok(host)
        })
    }

    fn kernels(&self, stated: Bound<'_, PyAny>, result: DType) -> PyResult<Box<dyn Kernels>> {
        Ok(Box::new(Pushed { kernels: stated.unbind(), result }))
    }
}

/// An array as Python holds it.
fn handle<'py>(engine: &Bound<'py, Engine>, array: &Array) -> PyResult<Bound<'py, NDArray>> {
    Bound::new(engine.py(), NDArray::new(array.clone(), engine.clone().unbind()))
}

/// Kernels that an object of Python's pushes.
struct Pushed {
    kernels: Py<PyAny>,
    result: DType,
}

impl Kernels for Pushed {
    fn result(&self) -> DType {
        self.result
    }

    fn push(&self, engine: &Bound<'_, PyAny>, outputs: &[&Array], inputs: &[Operand<'_>]) -> PyResult<()> {
        let (py, engine) = (engine.py(), engine.cast::<Engine>()?);
        let results = outputs.iter().map(|output| handle(engine, output)).collect::<PyResult<Vec<_>>>()?;
        let operand = |input: &Operand<'_>| match input {
            Operand::Array(array) => Ok(handle(engine, array)?.into_any()),
            Operand::Scalar(Scalar::Bool(number), _) => number.into_bound_py_any(py),
            Operand::Scalar(Scalar::Int(number), _) => number.into_bound_py_any(py),
            Operand::Scalar(Scalar::UInt(number), _) => number.into_bound_py_any(py),
            Operand::Scalar(Scalar::Float(number), _) => number.into_bound_py_any(py),
            Operand::Scalar(Scalar::Complex(re, im), _) => Ok(PyComplex::from_doubles(py, *re, *im).into_any()),
        };
        let operands = inputs.iter().map(operand).collect::<PyResult<Vec<_>>>()?;
        let given = (PyTuple::new(py, results)?, PyTuple::new(py, operands)?);
        self.kernels.bind(py).call_method1("push", given).map(drop)
    }
}

/// The kernels of a loop, by the places of kinds; None inside where the backend has none.
pub(super) struct Stated([PyOnceLock<Option<Box<dyn Kernels>>>; devices::MANY]);

impl Default for Stated {
    fn default() -> Self {
        Self([const { PyOnceLock::new() }; devices::MANY])
    }
}

impl Stated {
    /// The kernels that do the work of NumPy's loop of `ufunc` for these dtypes on the device of an array.
    #[inline]
    pub(super) fn find(
        &self,
        py: Python<'_>,
        array: &Array,
        ufunc: &Py<PyAny>,
        dtypes: &[DType],
    ) -> PyResult<Option<&dyn Kernels>> {
        let (place, kind) = devices::placed(array)?;
        let found = self.0[place].get_or_try_init(py, || ask(py, kind, ufunc, dtypes))?;
        Ok(found.as_deref())
    }
}

/// Asks the backend of a kind for these kernels.
#[cold]
fn ask(py: Python<'_>, kind: &dyn Kind, ufunc: &Py<PyAny>, dtypes: &[DType]) -> PyResult<Option<Box<dyn Kernels>>> {
    let Some(result) = dtypes.last() else { return Ok(None) };
    let dtypes = dtypes.iter().map(|dtype| dtypes::to_python(py, *dtype)).collect::<PyResult<Vec<_>>>()?;
    let backend = py.import("weft._call.backends")?.getattr("backend_named")?.call1((kind.name(),))?;
    let stated = backend.call_method1("kernels", (ufunc, PyTuple::new(py, dtypes)?))?;
    if stated.is_none() { Ok(None) } else { kind.kernels(stated, *result).map(Some) }
}

/// A new array on a device of a kind that Python defines, given the device's name and number.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from a sequence
pub(crate) fn kind_empty(
    shape: Lengths,
    dtype: &Bound<'_, PyAny>,
    engine: &Bound<'_, Engine>,
    name: &str,
    number: u16,
) -> PyResult<NDArray> {
    let py = engine.py();
    let Some(home) = home_of(name, number) else {
        let message = format!("{name} is a device of a kind too many: there may be {}", devices::MANY);
        return Err(errors::argument_value(py, &message));
    };
    let owner = &engine.get().inner;
    let made = Array::made(&shape.0, dtypes::from_python(dtype)?, |bytes| Buffer::new_on(owner, bytes, home));
    Ok(NDArray::new(made.map_err(|error| raised(py, error))?, engine.clone().unbind()))
}

/// The elements of an array on a device, for the running op, as a NumPy or a CuPy array.
pub(super) fn view<'py>(py: Python<'py>, array: &Array, readonly: bool) -> PyResult<Bound<'py, PyAny>> {
    devices::of(array)?.view(py, array, readonly)
}

/// The same for a request for the values inside an op that was granted the array.
pub(crate) fn granted_view<'py>(py: Python<'py>, array: &Array, writable: bool) -> PyResult<Bound<'py, PyAny>> {
    view(py, array, !writable)
}

/// The elements of an array on a device, copied to the host's memory. Waits for them.
pub(crate) fn to_host(py: Python<'_>, engine: &Py<Engine>, array: &Array) -> PyResult<Array> {
    devices::of(array)?.to_host(engine.bind(py), array)
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
