//! NumPy's loops that sort, taken out of its dtypes.

use super::kernel::Kernel;
use crate::array::numpy;
use crate::interpreter::dtypes;
use pyo3::prelude::*;
use weft_array::sort_step;

/// The kernel that writes so many elements of a vector to another one, sorted; None for a dtype that it has not.
#[pyfunction]
pub(crate) fn kernel_sort(name: String, dtype: &Bound<'_, PyAny>, count: usize) -> PyResult<Option<Kernel>> {
    let (py, dtype) = (dtype.py(), dtypes::from_python(dtype)?);
    let Some(sort) = numpy::functions_of(py, dtype)?.and_then(|functions| functions.sort[0]) else { return Ok(None) };
    // SAFETY: NumPy's own loop for the dtype; it runs it without the GIL, too.
    let step = unsafe { sort_step(sort, dtype, count) };
    Ok(step.map(|step| Kernel::alike(name, dtype, [count, count], 1, step)))
}
