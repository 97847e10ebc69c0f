//! `x[key] = value` for a part of an array and a value that needs no cast.

use crate::array::operator::scalar;
use crate::array::{NDArray, raised};
use crate::pushes::{Loop, memory};
use pyo3::prelude::*;
use weft_array::{Array, Layout, Operand, broadcast_shapes, copy_loop, push_elementwise};

/// Pushes the write of a number, or of an array of the same dtype, to a part of `x`. False: the write needs a cast, is
/// refused, is heard by the tape or is on a device, and nothing was pushed.
pub(crate) fn assign(x: &Bound<'_, NDArray>, part: Layout, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (py, own) = (x.py(), x.get());
    let buffer = own.inner.buffer();
    let shows_twice =
        own.inner.layout().strides.iter().zip(&own.inner.layout().shape).any(|(step, n)| *step == 0 && *n > 1);
    if own.tape.is_known() || own.tape.is_moved() || buffer.is_elsewhere() || buffer.is_readonly() || shows_twice {
        return Ok(false);
    }
    let dtype = own.inner.dtype();
    let target = Array::on(buffer.clone(), part, dtype).map_err(|error| raised(py, error))?;
    let Ok(array) = value.cast::<NDArray>() else {
        let Some(number) = scalar(value, dtype) else { return Ok(false) };
        own.owner().get().wait_for_room(py, 0)?;
        let operands = [Operand::Scalar(number, dtype)];
        push_elementwise(copy_loop(dtype), &[&target], &operands, Loop::options(py, &target, "fill"))
            .map_err(|error| raised(py, error))?;
        return Ok(true);
    };
    let from = array.get();
    let shape = &target.layout().shape;
    let fits = broadcast_shapes(shape, &from.inner.layout().shape).is_some_and(|common| common == *shape);
    let together = from.owner().get().inner.is_same(&own.owner().get().inner);
    if !fits || !together || from.inner.dtype() != dtype || from.tape.is_known() || from.tape.is_moved() {
        return Ok(false);
    }
    if from.inner.buffer().is_elsewhere() {
        return Ok(false);
    }
    let target = Bound::new(py, NDArray::new(target, own.owner().clone_ref(py)))?;
    memory::copy_elements(&target, array)?;
    Ok(true)
}
