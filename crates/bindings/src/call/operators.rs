//! Operators on arrays: each type slot begins the walk of its op, and ends in Python where the walk does.

use super::alike::Memory;
use super::callee::{self, Callee};
use super::kind::{Kind, Taken};
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
    let Some(beside) = Taken::of(other) else {
        let now = elsewhere(other);
        return binary(array, now.as_ref().unwrap_or(other), operator, reflected);
    };
    let at_home = Taken::Array(array);
    let operands = if reflected { [beside, at_home] } else { [at_home, beside] };
    let op = callee::operated(py, operator);
    if own.inner.buffer().is_elsewhere() {
        if operator != Operator::Matmul
            && !is_replaced(py, operator, Memory::Device)
            && let Some(result) = on_device::binary(array, other, operator, reflected)?
        {
            let result = result.into_bound(py);
            heard(operator, operands, &result)?;
            return Ok(result.into_any().unbind());
        }
    } else if let Some(op) = op {
        if let Some(result) = by_dtype(op, operands, own)? {
            heard(operator, operands, &result)?;
            return Ok(result.into_any().unbind());
        }
    } else if operator == Operator::Pow
        && !reflected
        && is_square(own, other)
        && let Some(op) = callee::operated(py, Operator::Multiply)
        && let Some(result) = squared(op, array)?
    {
        if own.tape.is_known() {
            short::note_square(array, &result)?;
        }
        return Ok(result.into_any().unbind());
    }
    if let Some(op) = op
        && let Some(result) = operated(op, array, operands)?
    {
        return Ok(result.unbind());
    }
    let [left, right] = operands;
    dispatch(py, operator.name(false), left.any(), Some(right.any()))
}

/// Whether `array ** other` is the array's product with itself. The tape hears it as the square.
fn is_square(own: &NDArray, other: &Bound<'_, PyAny>) -> bool {
    let dtype = own.inner.dtype();
    !matches!(dtype, DType::Bool | DType::Complex64 | DType::Complex128)
        && other.cast_exact::<PyInt>().is_ok_and(|number| number.extract::<i64>().is_ok_and(|number| number == 2))
        && !recording::is_open()
}

/// The product of an array on the host with itself. The first one of a dtype makes the plan that names its loop.
fn squared<'py>(op: &Bound<'py, Callee>, array: &Bound<'py, NDArray>) -> PyResult<Option<Bound<'py, NDArray>>> {
    let (own, dtype) = (array.get(), array.get().inner.dtype());
    if op.get().alike.find(Memory::Host, dtype).is_none() {
        Callee::plan(op, &[Kind::Array(dtype); 2], None)?;
    }
    by_dtype(op, [Taken::Array(array); 2], own)
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
    // The tape has to be asked first, as it is for a tensor that has moved; a product has no element-wise loop.
    if let Some(beside) = Taken::of(other)
        && !(own.tape.is_known() || beside.is_known() || operator == Operator::Matmul)
    {
        if own.inner.buffer().is_elsewhere() {
            if !is_replaced(py, operator, Memory::Device) && on_device::in_place(array, other, operator)? {
                return Ok(());
            }
        } else if let Some(op) = callee::operated(py, operator) {
            if into_itself(op, array, beside)? {
                return Ok(());
            }
            if let Some(other) = cast_for(op, array, beside)? {
                return in_place(array, other.as_any(), operator);
            }
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
    let operands = [Taken::Array(array)];
    let result = if !own.inner.buffer().is_elsewhere() {
        match callee::operated(py, operator) {
            Some(op) => by_dtype(op, operands, own)?,
            None => None,
        }
    } else if is_replaced(py, operator, Memory::Device) {
        None
    } else {
        on_device::unary(array, operator)?.map(|result| result.into_bound(py))
    };
    if let Some(result) = result {
        heard(operator, operands, &result)?;
        return Ok(result.into_any().unbind());
    }
    dispatch(py, operator.name(false), array.as_any(), None)
}

/// Tells the tape of a pushed operator.
#[inline]
fn heard<const N: usize>(
    operator: Operator,
    operands: [Taken<'_, '_>; N],
    result: &Bound<'_, NDArray>,
) -> PyResult<()> {
    if operands.iter().any(Taken::is_known) {
        short::note_operator(operator, &operands.each_ref().map(Taken::any), result)?;
    }
    Ok(())
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
