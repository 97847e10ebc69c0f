//! Arguments of kernels: the given values against the source's parameters.

use super::errors;
use crate::array::NDArray;
use crate::array::moves::now;
use crate::array::operator;
use crate::interpreter::dtypes;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use smallvec::SmallVec;
use weft_array::{Access, DType};
use weft_cuda::Parameter;

/// A parameter in the source.
pub(crate) struct Declaration {
    pointer: bool,
    /// The type of the value, or of its target, if that is one of NumPy's.
    dtype: Option<DType>,
}

pub(crate) type Parameters = Vec<Declaration>;

/// The same as Python has read it: whether it is a pointer, and the dtype's name.
pub(crate) type Known = (bool, Option<String>);

/// An argument.
pub(crate) enum Given<'py> {
    Array(Bound<'py, NDArray>, Access),
    Scalar(SmallVec<[u8; 16]>),
}

impl Given<'_> {
    /// The kernel's parameter that takes it.
    #[inline]
    pub(crate) fn parameter(&self) -> Parameter {
        match self {
            Self::Array(..) => Parameter::Pointer,
            Self::Scalar(bytes) => Parameter::Scalar(bytes.len()),
        }
    }
}

/// The parameters that Python has read in the source.
pub(crate) fn read(known: &[Known]) -> Parameters {
    let find = |name: &String| DType::ALL.into_iter().find(|dtype| dtype.name() == name);
    known
        .iter()
        .map(|(pointer, dtype)| Declaration { pointer: *pointer, dtype: dtype.as_ref().and_then(find) })
        .collect()
}

/// An argument of a kernel, with the kernel's access to it: the result of ``weft.Read(x)`` and its like.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct Declared {
    obj: Py<PyAny>,
    access: Access,
}

#[pymethods]
impl Declared {
    /// The argument.
    #[getter]
    fn obj(&self, py: Python<'_>) -> Py<PyAny> {
        self.obj.clone_ref(py)
    }

    /// The kernel's access to it.
    #[getter]
    fn access<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let name = match self.access {
            Access::Read => "READ",
            Access::Mutate => "MUTATE",
            Access::Overwrite => "OVERWRITE",
        };
        py.import("weft._engine.access")?.getattr("Access")?.getattr(name)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("weft.{:?}({})", self.access, self.obj.bind(py).repr()?))
    }

    #[allow(clippy::needless_pass_by_value)] // as pyo3 has it
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.obj)
    }
}

/// ``weft.Read(obj)``.
#[pyfunction]
pub(crate) fn _read(obj: Py<PyAny>) -> Declared {
    Declared { obj, access: Access::Read }
}

/// ``weft.Mutate(obj)``.
#[pyfunction]
pub(crate) fn _mutate(obj: Py<PyAny>) -> Declared {
    Declared { obj, access: Access::Mutate }
}

/// ``weft.Overwrite(obj)``.
#[pyfunction]
pub(crate) fn _overwrite(obj: Py<PyAny>) -> Declared {
    Declared { obj, access: Access::Overwrite }
}

/// The arrays of a keyword list.
#[inline]
pub(crate) fn named<'py>(list: Option<&Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, NDArray>>> {
    list.map_or_else(|| Ok(Vec::new()), listed)
}

fn listed<'py>(list: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, NDArray>>> {
    let items: PyResult<Vec<_>> = list.try_iter().and_then(Iterator::collect);
    let arrays = items.map(|items| items.into_iter().map(Bound::cast_into::<NDArray>).collect::<Result<Vec<_>, _>>());
    match arrays {
        Ok(Ok(arrays)) => Ok(arrays),
        _ => Err(errors::kernel_argument(list.py(), "reads and mutates are sequences of weft arrays")),
    }
}

/// Checks the arguments of a launch.
pub(crate) fn given<'py>(
    kernel: &str,
    parameters: Option<&Parameters>,
    args: &Bound<'py, PyTuple>,
    reads: &[Bound<'py, NDArray>],
    mutates: &[Bound<'py, NDArray>],
) -> PyResult<SmallVec<[Given<'py>; 8]>> {
    let py = args.py();
    let refuse = |message: String| errors::kernel_argument(py, &format!("kernel '{kernel}': {message}"));
    if let Some(parameters) = parameters
        && parameters.len() != args.len()
    {
        return Err(refuse(format!("it takes {} arguments, and {} were given", parameters.len(), args.len())));
    }
    let mut all = SmallVec::new();
    for (at, mut argument) in args.iter().enumerate() {
        let parameter = parameters.map(|parameters| &parameters[at]);
        let mut access = None;
        if let Ok(declared) = argument.cast_exact::<Declared>() {
            let declared = declared.get();
            access = Some(declared.access);
            argument = declared.obj.bind(py).clone();
        }
        let one = match argument.cast_into::<NDArray>() {
            Ok(array) => {
                let listed = |list: &[Bound<'py, NDArray>]| list.iter().any(|item| item.is(&array));
                let access = access
                    .or_else(|| listed(mutates).then_some(Access::Mutate))
                    .or_else(|| listed(reads).then_some(Access::Read));
                let access = access.ok_or_else(|| {
                    refuse(format!(
                        "argument {at} is an array, and what the kernel does with it is not declared: write \
                         weft.Read(x), weft.Mutate(x) or weft.Overwrite(x), or name it in reads= or mutates="
                    ))
                })?;
                let array = now(&array);
                check_array(&array, parameter).map_err(|message| refuse(format!("argument {at} {message}")))?;
                Given::Array(array, access)
            }
            Err(error) => {
                let value = error.into_inner();
                match quick(&value, parameter) {
                    Some(scalar) => scalar,
                    None => Given::Scalar(
                        scalar(&value, parameter).map_err(|message| refuse(format!("argument {at} {message}")))?,
                    ),
                }
            }
        };
        all.push(one);
    }
    Ok(all)
}

/// A number of Python's, or NumPy's of the very type, for a parameter whose type is known and takes it.
#[inline]
fn quick<'py>(value: &Bound<'py, PyAny>, parameter: Option<&Declaration>) -> Option<Given<'py>> {
    let Some(Declaration { pointer: false, dtype: Some(dtype) }) = parameter else { return None };
    let bytes = operator::scalar(value, *dtype)?.bytes(*dtype)?;
    Some(Given::Scalar(SmallVec::from_slice(&bytes[..dtype.size()])))
}

fn check_array(array: &Bound<'_, NDArray>, parameter: Option<&Declaration>) -> Result<(), String> {
    let array = &array.get().inner;
    if !array.is_contiguous() {
        return Err("is a view whose elements do not lie one after the other: pass x.copy(), and assign that to the \
                    view again if the kernel writes to it"
            .to_owned());
    }
    match parameter {
        Some(Declaration { pointer: false, .. }) => Err("is an array, and the parameter is no pointer".to_owned()),
        Some(Declaration { dtype: Some(dtype), .. }) if *dtype != array.dtype() => {
            Err(format!("is an array of {}, and the parameter points to {}", array.dtype().name(), dtype.name()))
        }
        _ => Ok(()),
    }
}

/// The bytes of a number, as the parameter takes it.
fn scalar(value: &Bound<'_, PyAny>, parameter: Option<&Declaration>) -> Result<SmallVec<[u8; 16]>, String> {
    let describe = || value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    if matches!(parameter, Some(Declaration { pointer: true, .. })) {
        return Err(format!("is {}, and the parameter is a pointer: pass an array", describe()));
    }
    let wanted = parameter.and_then(|parameter| parameter.dtype);
    if let Ok(dtype) = value.getattr("dtype") {
        let found = dtypes::from_python(&dtype).map_err(|error| error.to_string())?;
        if let Some(wanted) = wanted
            && wanted != found
        {
            let (found, wanted) = (found.name(), wanted.name());
            return Err(format!(
                "is {found}, and the parameter is {wanted}: pass a Python number, or numpy.{wanted}(...)"
            ));
        }
        let bytes = value.call_method0("tobytes").map_err(|error| error.to_string())?;
        let bytes = bytes.cast_into::<PyBytes>().map_err(|_| "has no bytes".to_owned())?;
        if bytes.as_bytes().len() != found.size() {
            return Err("is an array of NumPy's: put it on the device by weft.asarray(x, device=...)".to_owned());
        }
        return Ok(SmallVec::from_slice(bytes.as_bytes()));
    }
    let number = [DType::Bool, DType::Int64, DType::UInt64, DType::Float64, DType::Complex128];
    let dtype = match wanted {
        Some(dtype) => Some(dtype),
        None => number.into_iter().find(|dtype| operator::scalar(value, *dtype).is_some()),
    };
    let bytes = dtype.and_then(|dtype| Some((operator::scalar(value, dtype)?.bytes(dtype)?, dtype.size())));
    bytes.map(|(bytes, size)| SmallVec::from_slice(&bytes[..size])).ok_or_else(|| match wanted {
        Some(wanted) => {
            let written = value.repr().map_or_else(|_| describe(), |text| text.to_string());
            format!("is {written}, which is no {}", wanted.name())
        }
        None => format!("is {}: arguments are weft arrays and numbers", describe()),
    })
}
