//! NumPy's sorting loops, taken from its dtypes.

use super::kernel::Kernel;
use crate::array::numpy;
use crate::interpreter::dtypes;
use pyo3::prelude::*;
use weft_array::sort_step;

/// The kernel that writes the sorted elements of a vector of `count` to another one; None if the dtype has none.
#[pyfunction]
pub(crate) fn kernel_sort(name: String, dtype: &Bound<'_, PyAny>, count: usize) -> PyResult<Option<Kernel>> {
    let (py, dtype) = (dtype.py(), dtypes::from_python(dtype)?);
    let Some(sort) = numpy::functions_of(py, dtype)?.and_then(|functions| functions.sort[0]) else { return Ok(None) };
    // SAFETY: it is NumPy's own loop for the dtype, and runs without the GIL, too.
    let step = unsafe { sort_step(sort, dtype, count) };
    Ok(step.map(|step| Kernel::alike(name, dtype, [count, count], 1, step)))
}
