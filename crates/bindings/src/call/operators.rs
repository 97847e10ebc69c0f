//! Operators on arrays: each type slot begins the walk of its op, and ends in Python where the walk does.

use super::alike::Memory;
use super::callee;
use super::on_device;
use super::walk::{by_dtype, cast_for, into_itself, operated};
use crate::array::NDArray;
use crate::array::moves::{elsewhere, instead};
use crate::array::operator::Operator;
use crate::hearing::short;
use crate::interpreter::devices::Kernels;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyInt;
use weft_array::{Array, DType, recording};

static DISPATCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Sets the function for operators without a cached loop: ``hook(name, left, right)``.
#[pyfunction]
pub(crate) fn set_dispatch(hook: Bound<'_, PyAny>) -> PyResult<()> {
    let py = hook.py();
    DISPATCH.set(py, hook.unbind()).map_err(|_| PyRuntimeError::new_err("there is a dispatch hook already"))
}

/// The kernels for operands on the device of an array, all of its dtype, if the operator's loop is known.
#[inline]
pub(super) fn kernels<'py>(py: Python<'py>, operator: Operator, array: &Array) -> PyResult<Option<&'py dyn Kernels>> {
    match callee::operated(py, operator).and_then(|op| op.get().alike.find(Memory::Device, array.dtype())) {
        Some(of) => of.get().kernels(py, array),
        None => Ok(None),
    }
}

#[inline]
fn is_replaced(py: Python<'_>, operator: Operator, memory: Memory) -> bool {
    callee::operated(py, operator).is_some_and(|op| op.get().alike.is_replaced(memory))
}

/// `left (operator) right`, with `array` one of the two.
#[inline]
pub(crate) fn binary<'py>(
    array: &Bound<'py, NDArray>,
    other: &Bound<'py, PyAny>,
    operator: Operator,
    reflected: bool,
) -> PyResult<Py<PyAny>> {
    let (py, own) = (array.py(), array.get());
    if let Some(done) = instead(array, |now| binary(now, other, operator, reflected)) {
        return done;
    }
    if own.inner.buffer().is_elsewhere() {
        if operator != Operator::Matmul
            && !is_replaced(py, operator, Memory::Device)
            && let Some(result) = on_device::binary(array, other, operator, reflected)?
        {
            let result = result.into_bound(py);
            heard(array, Some(other), operator, reflected, &result)?;
            return Ok(result.into_any().unbind());
        }
    } else if let Some(op) = callee::operated(py, operator) {
        let operands = if reflected { [other, array.as_any()] } else { [array.as_any(), other] };
        if let Some(result) = by_dtype(op, operands, own)? {
            heard(array, Some(other), operator, reflected, &result)?;
            return Ok(result.into_any().unbind());
        }
    } else if operator == Operator::Pow
        && !reflected
        && is_square(own, other)
        && let Some(op) = callee::operated(py, Operator::Multiply)
        && let Some(result) = by_dtype(op, [array.as_any(), array.as_any()], own)?
    {
        if own.tape.is_known() {
            short::note_square(array, &result)?;
        }
        return Ok(result.into_any().unbind());
    }
    if let Some(now) = elsewhere(other) {
        return binary(array, &now, operator, reflected);
    }
    let (left, right) = if reflected { (other, array.as_any()) } else { (array.as_any(), other) };
    if let Some(result) = operated(operator, [left, right])? {
        return Ok(result.into_any().unbind());
    }
    dispatch(py, operator.name(false), left, Some(right))
}

/// Whether `array ** other` is the array's product with itself. The tape hears it as the square.
fn is_square(own: &NDArray, other: &Bound<'_, PyAny>) -> bool {
    let dtype = own.inner.dtype();
    !matches!(dtype, DType::Bool | DType::Complex64 | DType::Complex128)
        && other.cast_exact::<PyInt>().is_ok_and(|number| number.extract::<i64>().is_ok_and(|number| number == 2))
        && !recording::is_open()
}

/// `array (operator)= other`.
#[inline]
pub(crate) fn in_place<'py>(
    array: &Bound<'py, NDArray>,
    other: &Bound<'py, PyAny>,
    operator: Operator,
) -> PyResult<()> {
    let (py, own) = (array.py(), array.get());
    if let Some(done) = instead(array, |now| in_place(now, other, operator)) {
        return done;
    }
    if is_known(own, other) || operator == Operator::Matmul {
        // The tape has to be asked first; a product has no element-wise loop.
    } else if own.inner.buffer().is_elsewhere() {
        if !is_replaced(py, operator, Memory::Device) && on_device::in_place(array, other, operator)? {
            return Ok(());
        }
    } else if let Some(op) = callee::operated(py, operator) {
        if into_itself(op, array, other)? {
            return Ok(());
        }
        if let Some(other) = cast_for(op, array, other)? {
            return in_place(array, other.as_any(), operator);
        }
    }
    let answer = dispatch(py, operator.name(true), array.as_any(), Some(other))?;
    if answer.is(array) {
        return Ok(());
    }
    // Python would bind the name to another object.
    Err(PyRuntimeError::new_err("an in-place operator has made another array"))
}

/// `(operator) array`.
#[inline]
pub(crate) fn unary(array: &Bound<'_, NDArray>, operator: Operator) -> PyResult<Py<PyAny>> {
    let (py, own) = (array.py(), array.get());
    if let Some(done) = instead(array, |now| unary(now, operator)) {
        return done;
    }
    let result = if !own.inner.buffer().is_elsewhere() {
        match callee::operated(py, operator) {
            Some(op) => by_dtype(op, [array.as_any()], own)?,
            None => None,
        }
    } else if is_replaced(py, operator, Memory::Device) {
        None
    } else {
        on_device::unary(array, operator)?.map(|result| result.into_bound(py))
    };
    if let Some(result) = result {
        heard(array, None, operator, false, &result)?;
        return Ok(result.into_any().unbind());
    }
    dispatch(py, operator.name(false), array.as_any(), None)
}

/// Whether the tape may know an operand.
#[inline]
fn is_known(own: &NDArray, other: &Bound<'_, PyAny>) -> bool {
    own.tape.is_known() || other.cast::<NDArray>().is_ok_and(|other| other.get().tape.is_known())
}

/// Tells the tape of a pushed operator.
#[inline]
fn heard(
    array: &Bound<'_, NDArray>,
    other: Option<&Bound<'_, PyAny>>,
    operator: Operator,
    reflected: bool,
    result: &Bound<'_, NDArray>,
) -> PyResult<()> {
    if !array.get().tape.is_known()
        && !other.is_some_and(|other| other.cast::<NDArray>().is_ok_and(|other| other.get().tape.is_known()))
    {
        return Ok(());
    }
    let own = Some(array.as_any());
    short::note_operator(array.py(), operator, if reflected { [other, own] } else { [own, other] }, result)
}

#[cold]
fn dispatch(
    py: Python<'_>,
    name: &str,
    left: &Bound<'_, PyAny>,
    right: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    match DISPATCH.get(py) {
        Some(hook) => hook.call1(py, (name, left, right)),
        None => Ok(py.NotImplemented()),
    }
}
