//! Arrays as Python holds them: handles and their place on the tape, tensors that move, dtypes, operators.
//!
//! | module | home of |
//! |---|---|
//! | `ndarray`, `handle`, `moves` | the handle; its entry and the handle that it is a view of; the stand-in of a moved tensor. One type in three files |
//! | `moving` | the moves of a tensor |
//! | `operator`, `numpy` | Python's operators; NumPy's loops |
//! | `part` | parts that keys name; other shapes |
//! | `peek` | reads of values while a program is recorded |

pub(crate) mod handle;
pub(crate) mod moves;
pub(crate) mod moving;
mod ndarray;
pub(crate) mod numpy;
pub(crate) mod operator;
pub(crate) mod part;
mod peek;

pub(crate) use ndarray::NDArray;
pub(crate) use peek::check_look;

use crate::interpreter::errors;
use pyo3::prelude::*;
use weft_array::ArrayError;

/// A refusal as the exception of weft that is also NumPy's.
pub(crate) fn raised(py: Python<'_>, error: ArrayError) -> PyErr {
    match error {
        ArrayError::Engine(error) => errors::raised(py, error),
        ArrayError::OutOfBounds { .. } => errors::argument_index(py, &error.to_string()),
        ArrayError::Recorded { .. } | ArrayError::Capture(_) => errors::capture(py, &error.to_string()),
        ArrayError::Elsewhere { .. } | ArrayError::OnHost { .. } => errors::argument_value(py, &error.to_string()),
        ArrayError::Granted { .. } => errors::nested_push(py, &error.to_string()),
        ArrayError::GivenAway { .. } => errors::variable_deleted(py, &error.to_string()),
        ArrayError::ReadOnly => errors::argument_value(py, "assignment destination is read-only"),
        error => errors::argument_value(py, &error.to_string()),
    }
}
