//! New arrays by a loop that copies or casts: of a number, or of an array's elements. They answer None for any other call, which Python makes.

use super::Loop;
use crate::array::operator::scalar;
use crate::array::{NDArray, raised};
use crate::engine::Engine;
use crate::hearing::short;
use crate::tape::attributes::Attributes;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use weft_array::{Array, DType, Operand, Shape, push_elementwise, recording};

/// Whether an array is in the host's memory and at home, and nobody records what is done with it.
fn is_plain(array: &NDArray) -> bool {
    array.inner.buffer().is_host() && !array.tape.is_moved() && !recording::is_open()
}

/// A new array beside another one, once there is room for it.
fn made(py: Python<'_>, beside: &NDArray, shape: &[usize], dtype: DType) -> PyResult<Array> {
    let engine = beside.owner().get();
    let array = Array::empty(&engine.inner, shape, dtype).map_err(|error| raised(py, error))?;
    engine.wait_for_room(py, array.bytes() as u64)?;
    Ok(array)
}

fn handle(py: Python<'_>, array: Array, beside: &NDArray) -> NDArray {
    NDArray::new(array, beside.owner().clone_ref(py))
}

/// A new array of an engine, each of whose elements is `value`, by the loop that gives back what it is given; None for what
/// is no shape of integers, and for a number that the loop's dtype does not hold.
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
    let Ok(array) = Array::empty(&own.inner, &shape, of.dtypes[1]) else { return Ok(None) }; // the long way says why
    array.set_device(0);
    own.wait_for_room(py, array.bytes() as u64)?;
    let operands = [Operand::Scalar(value, of.dtypes[0])];
    push_elementwise(of.kernel, &[&array], &operands, Loop::options(py, &array, &of.name))
        .map_err(|error| raised(py, error))?;
    Ok(Some(NDArray::new(array, engine.clone().unbind())))
}

/// The same by a loop that casts.
#[pyfunction]
pub(crate) fn fresh_cast(
    r#loop: &Bound<'_, Loop>,
    x: &Bound<'_, NDArray>,
    op: &Bound<'_, PyAny>,
) -> PyResult<Option<Py<NDArray>>> {
    unary(r#loop.get(), x, op, Attributes::DType)
}

fn unary(
    of: &Loop,
    x: &Bound<'_, NDArray>,
    op: &Bound<'_, PyAny>,
    attributes: Attributes,
) -> PyResult<Option<Py<NDArray>>> {
    let (py, own) = (x.py(), x.get());
    if !is_plain(own) || of.dtypes[0] != own.inner.dtype() {
        return Ok(None);
    }
    let output = made(py, own, &own.inner.layout().shape, of.dtypes[1])?;
    push_elementwise(of.kernel, &[&output], &[Operand::Array(&own.inner)], Loop::options(py, &output, &of.name))
        .map_err(|error| raised(py, error))?;
    short::noted(op, || Ok(attributes), &[x.as_any()], handle(py, output, own)).map(Some)
}
