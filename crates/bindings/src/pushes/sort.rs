//! NumPy's loops that sort, taken out of its dtypes.

use super::kernel::Kernel;
use crate::array::dtypes;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::c_void;
use weft_array::{SortLoop, sort_step};

/// The beginning of NumPy's `PyArray_ArrFuncs`, which is part of its C API and has not changed since 1.7.
#[repr(C)]
struct ArrayFunctions {
    cast: [*const c_void; 21],
    others: [*const c_void; 12],
    /// Quick sort, heap sort, a stable one. Of numbers they need no GIL, and do not look at the array.
    sort: [Option<SortLoop>; 3],
}

/// Where NumPy's table of functions, since 2.0, has the one that answers a dtype's.
const OF_DTYPE: usize = 365;

type OfDType = unsafe extern "C" fn(*const ffi::PyObject) -> *const ArrayFunctions;

/// The kernel that writes so many elements of a vector to another one, sorted; None for a dtype that it has not.
#[pyfunction]
pub(crate) fn kernel_sort(name: String, dtype: &Bound<'_, PyAny>, count: usize) -> PyResult<Option<Kernel>> {
    let (py, dtype) = (dtype.py(), dtypes::from_python(dtype)?);
    let Some(sort) = loop_of(py, &dtypes::to_python(py, dtype)?)? else { return Ok(None) };
    // SAFETY: NumPy's own loop for the dtype; it runs it without the GIL, too.
    let step = unsafe { sort_step(sort, dtype, count) };
    Ok(step.map(|step| Kernel::alike(name, dtype, [count, count], 1, step)))
}

/// NumPy's loop for one of its own dtypes.
fn loop_of(py: Python<'_>, dtype: &Py<PyAny>) -> PyResult<Option<SortLoop>> {
    let table = py.import("numpy._core._multiarray_umath")?.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?;
    // SAFETY: the capsule has no name, and holds a table of functions, which lives as long as the process.
    let of_dtype = unsafe {
        let table = ffi::PyCapsule_GetPointer(table.as_ptr(), std::ptr::null()).cast::<*const c_void>();
        if table.is_null() {
            return Err(PyErr::take(py).unwrap_or_else(|| PyRuntimeError::new_err("NumPy has no table of functions")));
        }
        std::mem::transmute::<*const c_void, Option<OfDType>>(*table.add(OF_DTYPE))
    };
    let Some(of_dtype) = of_dtype else { return Ok(None) };
    // SAFETY: one of NumPy's own dtypes, whose table lives as long as it, and so as the process.
    Ok(unsafe { of_dtype(dtype.as_ptr()).as_ref() }.and_then(|functions| functions.sort[0]))
}
