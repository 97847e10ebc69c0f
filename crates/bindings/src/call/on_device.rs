//! Operators on arrays on a device: from the type slot to the launch without Python, where the kernels are known.
//! Uncommon calls, and errors among them, are left to Python.

use super::operators;
use crate::array::operator::{Operator, scalar};
use crate::array::{NDArray, raised};
use crate::interpreter::devices::{self, Kernels};
use pyo3::prelude::*;
use std::borrow::Cow;
use std::ptr;
use weft_array::{Array, Buffer, DType, Operand, Scalar, broadcast_shapes};

/// The kernels of an operator where an array is, one of its operands, for their dtypes.
#[inline]
fn kernels<'py>(
    py: Python<'py>,
    own: &NDArray,
    operator: Operator,
    (left, right): (DType, DType),
) -> PyResult<Option<&'py dyn Kernels>> {
    if left == right {
        operators::kernels(py, operator, &own.inner)
    } else {
        Ok(devices::of(&own.inner)?.mixed(operator as usize, left, right))
    }
}

/// The other operand.
enum Other<'a> {
    Array(&'a NDArray),
    Scalar(Scalar),
}

impl<'a> Other<'a> {
    /// An array of the same engine and device, or a number that takes the array's dtype.
    #[inline]
    fn of(own: &NDArray, other: &'a Bound<'_, PyAny>) -> Option<Self> {
        let Ok(array) = other.cast::<NDArray>() else {
            return scalar(other, own.inner.dtype()).map(Self::Scalar);
        };
        let array = array.get();
        let fits = !array.tape.is_moved()
            && array.owner().get().inner.is_same(&own.owner().get().inner)
            && ptr::addr_eq(array.inner.buffer().home()?, own.inner.buffer().home()?);
        fits.then_some(Self::Array(array))
    }

    #[inline]
    fn dtype(&self, own: DType) -> DType {
        if let Self::Array(array) = self { array.inner.dtype() } else { own }
    }

    #[inline]
    fn shape<'b>(&self, own: &'b [usize]) -> Option<Cow<'b, [usize]>> {
        match self {
            Self::Array(array) if *array.inner.layout().shape != *own => {
                broadcast_shapes(own, &array.inner.layout().shape).map(|shape| Cow::Owned(shape.into_vec()))
            }
            _ => Some(Cow::Borrowed(own)),
        }
    }

    #[inline]
    fn operand(&self, own: DType) -> Operand<'a> {
        match self {
            Self::Array(array) => Operand::Array(&array.inner),
            Self::Scalar(scalar) => Operand::Scalar(*scalar, own),
        }
    }
}

/// Pushes a launch that fills a new array.
#[inline]
fn filled(
    py: Python<'_>,
    own: &NDArray,
    kernels: &dyn Kernels,
    shape: &[usize],
    operands: &[Operand<'_>],
) -> PyResult<Option<Py<NDArray>>> {
    let Some(home) = own.inner.buffer().home() else { return Ok(None) };
    let engine = own.owner().get();
    let made = Array::made(shape, kernels.result(), |bytes| Buffer::new_on(&engine.inner, bytes, home));
    let output = made.map_err(|error| raised(py, error))?;
    engine.wait_for_room(py, output.bytes() as u64)?;
    kernels.push(own.owner().bind(py), &[&output], operands)?;
    Py::new(py, NDArray::new(output, own.owner().clone_ref(py))).map(Some)
}

/// `left (operator) right`, with `array` one of the two and on a device. None if Python has to compute it.
#[inline]
pub(crate) fn binary(
    array: &Bound<'_, NDArray>,
    other: &Bound<'_, PyAny>,
    operator: Operator,
    reflected: bool,
) -> PyResult<Option<Py<NDArray>>> {
    let (py, own) = (array.py(), array.get());
    let (dtype, Some(other)) = (own.inner.dtype(), Other::of(own, other)) else { return Ok(None) };
    let (first, second) = (dtype, other.dtype(dtype));
    let dtypes = if reflected { (second, first) } else { (first, second) };
    let Some(kernels) = kernels(py, own, operator, dtypes)? else { return Ok(None) };
    let Some(shape) = other.shape(&own.inner.layout().shape) else { return Ok(None) };
    let (first, second) = (Operand::Array(&own.inner), other.operand(dtype));
    let operands = if reflected { [second, first] } else { [first, second] };
    filled(py, own, kernels, &shape, &operands)
}

/// `array (operator)= other`. False: Python has to compute it.
#[inline]
pub(crate) fn in_place(array: &Bound<'_, NDArray>, other: &Bound<'_, PyAny>, operator: Operator) -> PyResult<bool> {
    let (py, own) = (array.py(), array.get());
    let dtype = own.inner.dtype();
    let Some(other) = Other::of(own, other) else { return Ok(false) };
    let Some(kernels) = kernels(py, own, operator, (dtype, other.dtype(dtype)))? else { return Ok(false) };
    let shape = &*own.inner.layout().shape;
    if kernels.result() != dtype || other.shape(shape).is_none_or(|broadcast| *broadcast != *shape) {
        return Ok(false);
    }
    own.owner().get().wait_for_room(py, own.inner.bytes() as u64)?;
    kernels.push(own.owner().bind(py), &[&own.inner], &[Operand::Array(&own.inner), other.operand(dtype)])?;
    Ok(true)
}

/// `(operator) array`. None if Python has to compute it.
#[inline]
pub(crate) fn unary(array: &Bound<'_, NDArray>, operator: Operator) -> PyResult<Option<Py<NDArray>>> {
    let (py, own) = (array.py(), array.get());
    let Some(kernels) = operators::kernels(py, operator, &own.inner)? else { return Ok(None) };
    filled(py, own, kernels, &own.inner.layout().shape, &[Operand::Array(&own.inner)])
}
