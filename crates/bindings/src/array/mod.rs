//! Arrays: `weft.NDArray` and what its Python part stands on.

mod class;
mod compute;
pub(crate) mod dtypes;
pub(crate) mod fast;
pub(crate) mod granting;
mod memory;
mod strided;
mod taken;

pub(crate) use class::NDArray;
pub(crate) use compute::push_compute;
pub(crate) use fast::{cache_loop, forget_loops, set_dispatch};
pub(crate) use memory::{Memory, beside, copy_elements, empty, memory_stats, memory_trim, wrap};
pub(crate) use strided::Loop;

use crate::errors;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use weft_array::ArrayError;

/// A refusal as the exception that NumPy would raise.
pub(crate) fn raised(py: Python<'_>, error: ArrayError) -> PyErr {
    match error {
        ArrayError::Engine(error) => errors::raised(py, error),
        ArrayError::OutOfBounds { .. } => PyIndexError::new_err(error.to_string()),
        ArrayError::Recorded { .. } | ArrayError::Capture(_) => errors::capture(py, &error.to_string()),
        ArrayError::Elsewhere { .. } => errors::argument_value(py, &error.to_string()),
        ArrayError::TooLarge { .. } => PyMemoryError::new_err(error.to_string()),
        ArrayError::Granted { .. } => errors::nested_push(py, &error.to_string()),
        ArrayError::ReadOnly => PyValueError::new_err("assignment destination is read-only"),
        error => PyValueError::new_err(error.to_string()),
    }
}
