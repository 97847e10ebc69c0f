//! NumPy's dtypes and ours.

use super::errors;
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt};
use std::ffi::{c_int, c_long};
use weft_array::DType;

static DTYPES: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();

fn known(py: Python<'_>) -> PyResult<&Vec<Py<PyAny>>> {
    DTYPES.get_or_try_init(py, || {
        let dtype = py.import("numpy")?.getattr("dtype")?;
        DType::ALL.iter().map(|known| Ok(dtype.call1((known.name(),))?.unbind())).collect()
    })
}

/// NumPy's dtype of this type.
pub(crate) fn to_python(py: Python<'_>, dtype: DType) -> PyResult<Py<PyAny>> {
    Ok(known(py)?[dtype as usize].clone_ref(py))
}

/// The class of NumPy's scalars of this type.
pub(crate) fn scalar_type(py: Python<'_>, dtype: DType) -> PyResult<&Py<PyAny>> {
    static TYPES: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
    let types = TYPES.get_or_try_init(py, || {
        known(py)?.iter().map(|dtype| dtype.getattr(py, "type")).collect::<PyResult<Vec<_>>>()
    })?;
    Ok(&types[dtype as usize])
}

/// The type that NumPy's dtype of it stands for: one of the objects that `to_python` answers.
pub(crate) fn known_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    Ok(known(dtype.py())?.iter().position(|known| known.is(dtype)).map(|at| DType::ALL[at]))
}

/// The type that a `numpy.dtype`, or an object that makes one, stands for.
pub(crate) fn from_python(dtype: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = dtype.py();
    if let Some(found) = known_dtype(dtype)? {
        return Ok(found);
    }
    let known = known(py)?;
    let dtype = py.import("numpy")?.getattr("dtype")?.call1((dtype,))?;
    for (at, known) in known.iter().enumerate() {
        if dtype.eq(known)? {
            return Ok(DType::ALL[at]);
        }
    }
    let message =
        format!("weft has no arrays of dtype {dtype}: it has bool, integers, float16/32/64 and complex64/128");
    Err(errors::argument_type(py, &message))
}

/// The type that something stands for without having to be asked: one of NumPy's dtypes or of its scalars' types, or Python's.
pub(crate) fn known_as(dtype: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = dtype.py();
    if let Some(found) = known_dtype(dtype)? {
        return Ok(Some(found));
    }
    let python = [
        (PyFloat::type_object(py), DType::Float64),
        (PyInt::type_object(py), DType::Int64),
        (PyBool::type_object(py), DType::Bool),
    ];
    if let Some((_, found)) = python.iter().find(|(class, _)| class.is(dtype)) {
        return Ok(Some(*found));
    }
    for of in DType::ALL {
        if scalar_type(py, of)?.is(dtype) {
            return Ok(Some(of));
        }
    }
    Ok(None)
}

/// NumPy's numbers of the C types that are this type here.
pub(crate) fn numbers(dtype: DType) -> &'static [c_int] {
    const LONG_IS_64: bool = size_of::<c_long>() == 8;
    match dtype {
        DType::Bool => &[0],
        DType::Int8 => &[1],
        DType::UInt8 => &[2],
        DType::Int16 => &[3],
        DType::UInt16 => &[4],
        DType::Int32 => {
            if LONG_IS_64 {
                &[5]
            } else {
                &[5, 7]
            }
        }
        DType::UInt32 => {
            if LONG_IS_64 {
                &[6]
            } else {
                &[6, 8]
            }
        }
        DType::Int64 => {
            if LONG_IS_64 {
                &[7, 9]
            } else {
                &[9]
            }
        }
        DType::UInt64 => {
            if LONG_IS_64 {
                &[8, 10]
            } else {
                &[10]
            }
        }
        DType::Float16 => &[23],
        DType::Float32 => &[11],
        DType::Float64 => &[12],
        DType::Complex64 => &[14],
        DType::Complex128 => &[15],
    }
}
