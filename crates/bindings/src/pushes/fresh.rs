//! New arrays filled with a number, by a loop. All other calls get None and go through Python.

use super::Loop;
use crate::array::operator::scalar;
use crate::array::{NDArray, raised};
use crate::engine::Engine;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use weft_array::{Array, Operand, Shape, push_elementwise, recording};

/// A new array of an engine whose elements all are `value`, filled by the loop that copies its input. None if the shape
/// is not one of integers, or the loop's dtype does not hold the number.
#[pyfunction]
pub(crate) fn fresh_filled(
    r#loop: &Bound<'_, Loop>,
    shape: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    engine: &Bound<'_, Engine>,
) -> PyResult<Option<NDArray>> {
    let (py, of) = (shape.py(), r#loop.get());
    let length = |length: &Bound<'_, PyAny>| length.cast_exact::<PyInt>().ok()?.extract::<usize>().ok();
    let lengths: Option<Shape> = match shape.cast_exact::<PyTuple>() {
        Ok(lengths) => lengths.iter_borrowed().map(|each| length(&each)).collect(),
        Err(_) => length(shape).map(|length| Shape::from_slice(&[length])),
    };
    let (Some(shape), Some(value)) = (lengths, scalar(value, of.dtypes[0])) else { return Ok(None) };
    if recording::is_open() {
        return Ok(None);
    }
    let own = engine.get();
    let Ok(array) = Array::empty(&own.inner, &shape, of.dtypes[1]) else { return Ok(None) }; // the long way gives the reason
    array.set_device(0);
    own.wait_for_room(py, array.bytes() as u64)?;
    let operands = [Operand::Scalar(value, of.dtypes[0])];
    push_elementwise(of.kernel, &[&array], &operands, Loop::options(py, &array, &of.name))
        .map_err(|error| raised(py, error))?;
    Ok(Some(NDArray::new(array, engine.clone().unbind())))
}
