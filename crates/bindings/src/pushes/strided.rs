//! NumPy's inner loops, taken from its ufuncs.

use super::kinds::{self, Stated};
use crate::array::moves::taken;
use crate::array::operator::scalar;
use crate::array::{NDArray, raised};
use crate::hearing::record;
use crate::interpreter::devices::Kernels;
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use crate::payloads::trace;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use smallvec::SmallVec;
use std::ffi::{c_char, c_int, c_void};
use weft_array::{Array, DType, Operand, Scalar, StridedLoop, cast_loop, choose_loop, half_loop, push_elementwise};
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

type Function = unsafe extern "C" fn(*mut *mut c_char, *const isize, *const isize, *mut c_void);

/// Bytes of a result from which on its op has a name, for the error when memory runs out. To name a small op would slow
/// it down.
const LARGE: usize = 1 << 20;

/// The beginning of NumPy's `PyUFuncObject`, which is part of its C API and has not changed since 1.0.
#[repr(C)]
struct UfuncObject {
    head: ffi::PyObject,
    nin: c_int,
    nout: c_int,
    nargs: c_int,
    identity: c_int,
    functions: *const Option<Function>,
    data: *const *mut c_void,
    ntypes: c_int,
    reserved: c_int,
    name: *const c_char,
    types: *const c_char,
}

/// One of NumPy's inner loops for given dtypes. It runs on workers without the GIL.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct Loop {
    pub(crate) kernel: StridedLoop,
    pub(crate) dtypes: SmallVec<[DType; 3]>,
    /// The ufunc's name.
    pub(crate) name: String,
    /// The first value of a reduction.
    pub(crate) identity: Option<Scalar>,
    /// Keeps the loop's code and data alive.
    ufunc: Option<Py<PyAny>>,
    /// Its kernels on devices.
    stated: Stated,
}

#[pymethods]
impl Loop {
    /// The loop of `ufunc` for these dtypes, inputs first; None if NumPy has none that runs without the GIL.
    #[staticmethod]
    pub(crate) fn of(ufunc: &Bound<'_, PyAny>, dtypes: &Bound<'_, PyTuple>) -> PyResult<Option<Self>> {
        let py = ufunc.py();
        let class = py.import("numpy")?.getattr("ufunc")?.cast_into::<PyType>()?;
        if !ufunc.get_type().is(&class) {
            return Err(errors::argument_type(
                py,
                &format!("expected a numpy.ufunc, not {}", ufunc.get_type().name()?),
            ));
        }
        let wanted: SmallVec<[DType; 3]> =
            dtypes.iter().map(|dtype| dtypes::from_python(&dtype)).collect::<PyResult<_>>()?;
        // Integer powers raise for negative exponents, which needs the GIL.
        let name: String = ufunc.getattr("__name__")?.extract()?;
        let floating = |dtype: &DType| dtype.is_floating();
        if name == "power" && !wanted.iter().all(floating) {
            return Ok(None);
        }
        // SAFETY: an instance of numpy.ufunc begins like this; its tables live as long as it does.
        let found = unsafe {
            let object = &*ufunc.as_ptr().cast::<UfuncObject>();
            find(object, &wanted)
        };
        let Some((function, data, inputs)) = found else { return Ok(None) };
        // SAFETY: NumPy's loops for numbers touch only their operands, and take them unaligned.
        let kernel = unsafe { StridedLoop::new(function, data, &wanted[..inputs], &wanted[inputs..]) };
        let made = kernel.map(|kernel| kernel.with_effort(effort(&name, wanted[0])).with_name(&name));
        let Some(kernel) = made else { return Ok(None) };
        let kernel = half_loop(&name, kernel).map_or(kernel, |ours| ours.with_name(&name));
        // A loop with a signature has axes of its own, and NumPy's iterator nothing to say about them.
        let kernel = if ufunc.getattr("signature")?.is_none() {
            // SAFETY: it runs along one axis.
            unsafe { kernel.tried() }
        } else {
            kernel
        };
        // Not 0 for sums of floating-point numbers: the sum of -0.0 is -0.0, as in NumPy.
        let identity = match name.as_str() {
            "add" if wanted.iter().all(floating) => Some(Scalar::Float(-0.0)),
            "add" => Some(Scalar::Int(0)),
            "multiply" => Some(Scalar::Int(1)),
            _ => None,
        };
        let (ufunc, stated) = (Some(ufunc.clone().unbind()), Stated::default());
        Ok(Some(Self { kernel, dtypes: wanted, name, identity, ufunc, stated }))
    }

    /// The loop of an activation, or of its gradient, for a dtype; None if there is none.
    #[staticmethod]
    fn activation(name: &str, dtype: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let dtype = dtypes::from_python(dtype)?;
        Ok(weft_kernels::activation(name, dtype).map(|kernel| Self::of_ours(kernel, &format!("nn.{name}"))))
    }

    /// The loop that casts elements of one dtype to another by NumPy's rules; None if there is none.
    #[staticmethod]
    fn cast(from_: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let dtypes = [dtypes::from_python(from_)?, dtypes::from_python(to)?];
        Ok(cast_loop(dtypes[0], dtypes[1]).map(|kernel| Self::of_ours(kernel, "astype")))
    }

    /// The loop that takes elements of one array where a mask is true and of another one elsewhere.
    #[staticmethod]
    fn choose(dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::of_ours(choose_loop(dtypes::from_python(dtype)?), "where"))
    }

    /// Whether it may write to an output with gaps between its elements; another loop writes to a line first.
    #[getter]
    fn takes_gaps(&self) -> bool {
        self.kernel.takes_gaps()
    }

    /// Pushes an op: the loop over `inputs`, arrays or numbers, broadcast to the shape of `outputs`.
    pub(crate) fn push(&self, outputs: &Bound<'_, PyTuple>, inputs: &Bound<'_, PyTuple>) -> PyResult<()> {
        let py = outputs.py();
        let targets = outputs;
        let outputs = arrays(outputs)?;
        let mut held: SmallVec<[Result<Bound<'_, NDArray>, weft_array::Scalar>; 2]> = SmallVec::new();
        for (at, input) in inputs.iter().enumerate() {
            let dtype = self.dtypes.get(at).copied().unwrap_or(DType::Float64);
            match taken(input) {
                Ok(array) => {
                    self.check(at, &array.get().inner)?;
                    held.push(Ok(array));
                }
                Err(error) => {
                    let input = error.into_inner();
                    let scalar = scalar(&input, dtype).ok_or_else(|| {
                        errors::argument_type(py, &format!("{input:?} cannot be an operand of dtype {}", dtype.name()))
                    })?;
                    held.push(Err(scalar));
                }
            }
        }
        for (at, output) in outputs.iter().enumerate() {
            self.check(self.kernel.inputs() + at, &output.get().inner)?;
        }
        let Some(first) = outputs.first() else { return Err(PyValueError::new_err("there is no output")) };
        let kernels = if first.get().inner.buffer().is_elsewhere() {
            match self.kernels(py, &first.get().inner)? {
                None => return kinds::push_loop(py, self.ufunc.as_ref(), targets, inputs),
                found => found,
            }
        } else {
            None
        };
        let bytes: usize = outputs.iter().map(|output| output.get().inner.bytes()).sum();
        first.get().owner().get().wait_for_room(py, bytes as u64)?;
        let operands: SmallVec<[Operand<'_>; 2]> = held
            .iter()
            .enumerate()
            .map(|(at, input)| match input {
                Ok(array) => Operand::Array(&array.get().inner),
                Err(scalar) => Operand::Scalar(*scalar, self.dtypes[at]),
            })
            .collect();
        let written: SmallVec<[&Array; 1]> = outputs.iter().map(|output| &output.get().inner).collect();
        if let Some(kernels) = kernels {
            return kernels.push(first.get().owner().bind(py), &written, &operands);
        }
        let fills = self.name == "positive" && operands.iter().all(|input| matches!(input, Operand::Scalar(..)));
        let options = Self::options(py, written[0], if fills { "fill" } else { &self.name });
        push_elementwise(self.kernel, &written, &operands, options).map_err(|error| raised(py, error))?;
        for output in &outputs {
            record::wrote(py, output.get());
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.dtypes.iter().map(|dtype| dtype.name()).collect();
        format!("<weft._core.Loop {}>", names.join(", "))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.ufunc)
    }
}

impl Loop {
    /// A loop of weft's own, not of a ufunc.
    fn of_ours(kernel: StridedLoop, name: &str) -> Self {
        let kernel = kernel.with_name(name);
        let dtypes = kernel.dtypes().into();
        Self { kernel, dtypes, name: name.to_owned(), identity: None, ufunc: None, stated: Stated::default() }
    }

    /// The name of a reduction by this loop.
    pub(crate) fn reduction(&self) -> &str {
        match self.name.as_str() {
            "add" => "sum",
            "multiply" => "prod",
            "maximum" => "max",
            "minimum" => "min",
            "logical_and" => "all",
            "logical_or" => "any",
            other => other,
        }
    }

    pub(crate) fn options<'a>(py: Python<'_>, output: &Array, name: &'a str) -> PushOptions<'a> {
        let bytes = output.bytes();
        let note = trace::placed(py, trace::of_arrays(py, output.engine(), Kind::Compute, name), bytes);
        PushOptions { note, name: (bytes >= LARGE).then_some(name), ..PushOptions::default() }
    }

    /// The kernels of the same loop on the device of an array, if there are any.
    #[inline]
    pub(crate) fn kernels<'a>(&'a self, py: Python<'_>, array: &Array) -> PyResult<Option<&'a dyn Kernels>> {
        match &self.ufunc {
            Some(ufunc) => self.stated.find(py, array, ufunc, &self.dtypes),
            None => Ok(None),
        }
    }

    fn check(&self, at: usize, array: &Array) -> PyResult<()> {
        match self.dtypes.get(at) {
            Some(dtype) if *dtype == array.dtype() => Ok(()),
            Some(dtype) => Err(PyTypeError::new_err(format!(
                "operand {at} of the loop is {}, not {}",
                dtype.name(),
                array.dtype().name()
            ))),
            None => Err(PyValueError::new_err(format!("the loop has {} operands", self.dtypes.len()))),
        }
    }
}

/// Picoseconds that NumPy's loops of this name take for an element, about, besides those for its bytes.
fn effort(name: &str, dtype: DType) -> u16 {
    match name {
        _ if dtype == DType::Float16 => UNKNOWN,
        "add" | "subtract" | "multiply" | "negative" | "positive" | "absolute" | "fabs" | "maximum" | "minimum"
        | "fmax" | "fmin" | "square" | "equal" | "not_equal" | "less" | "less_equal" | "greater" | "greater_equal"
        | "logical_and" | "logical_or" | "logical_not" | "logical_xor" | "bitwise_and" | "bitwise_or"
        | "bitwise_xor" | "invert" | "isnan" | "isfinite" | "isinf" | "signbit" | "sign" | "conjugate" | "copysign" => {
            100
        }
        "divide" | "sqrt" | "reciprocal" | "floor" | "ceil" | "trunc" | "rint" if dtype.is_floating() => 500,
        "exp" | "exp2" if dtype == DType::Float32 => 500,
        "exp" | "exp2" => 1200,
        _ => UNKNOWN,
    }
}

/// The same for any other loop.
const UNKNOWN: u16 = 4000;

fn arrays<'py>(list: &Bound<'py, PyTuple>) -> PyResult<SmallVec<[Bound<'py, NDArray>; 1]>> {
    list.iter().map(|item| Ok(taken(item)?)).collect()
}

/// # Safety
///
/// `object` is a ufunc.
unsafe fn find(object: &UfuncObject, wanted: &[DType]) -> Option<(Function, *mut c_void, usize)> {
    let operands = usize::try_from(object.nargs).ok()?;
    if operands != wanted.len() || object.functions.is_null() || object.types.is_null() {
        return None;
    }
    for at in 0..usize::try_from(object.ntypes).ok()? {
        // SAFETY: the tables have `ntypes` rows of `nargs` types each.
        let (types, function, data) = unsafe {
            let types = std::slice::from_raw_parts(object.types.add(at * operands), operands);
            let data = if object.data.is_null() { std::ptr::null_mut() } else { *object.data.add(at) };
            (types, *object.functions.add(at), data)
        };
        let fits = |(number, dtype): (&c_char, &DType)| dtypes::numbers(*dtype).contains(&c_int::from(*number));
        if let Some(function) = function
            && types.iter().zip(wanted).all(fits)
        {
            return Some((function, data, usize::try_from(object.nin).ok()?));
        }
    }
    None
}
