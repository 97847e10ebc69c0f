//! Reads of values while a program is recorded.

use super::raised;
use crate::engine::recorded::{line_of, refusal};
use pyo3::prelude::*;
use weft_array::{Array, Tuple, recording as transcripts};

/// Refuses to read, or to wait for, unknown values: those of arrays that a recording makes or changes.
#[inline]
pub(crate) fn check_look(py: Python<'_>, array: &Array) -> PyResult<()> {
    if transcripts::is_open() || array.buffer().recording().is_some() { check_known(py, array) } else { Ok(()) }
}

#[cold]
fn check_known(py: Python<'_>, array: &Array) -> PyResult<()> {
    let Err((name, place)) = transcripts::look(array) else {
        return match array.buffer().recording() {
            None => Ok(()),
            Some(_) => array.buffer().storage().map(drop).map_err(|error| raised(py, error)),
        };
    };
    let described = format!("an array of shape {} and dtype {}", Tuple(&array.layout().shape), array.dtype().name());
    let maker = if name.is_empty() {
        "it is an argument".to_owned()
    } else {
        format!("op '{name}' makes it{}", line_of(py, place))
    };
    let refused = format!("the value of {described} is not known");
    Err(refusal(py, &refused, &maker, "Compute with arrays instead (weft.where, weft.cond), or look at values outside"))
}
