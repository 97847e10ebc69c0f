//! `x[key]` and `x[key] = value`.
//!
//! Keys of integers, slices and None name a part: a view, or one element, which is copied. An array as the key picks
//! rows. A part is written to by a number, or by an array of the same dtype. Python reads all other keys, and writes
//! all other values.

use crate::array::moves::instead;
use crate::array::operator::scalar;
use crate::array::{NDArray, part, raised};
use crate::hearing::short::tape_hear_part;
use crate::pushes::{Loop, kinds, memory, rows};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use weft_array::{Array, Layout, Operand, broadcast_shapes, copy_loop, push_elementwise};

/// Python's part.
struct Rest {
    /// The op of `x[key]`.
    op: Py<PyAny>,
    read: Py<PyAny>,
    write: Py<PyAny>,
}

static REST: PyOnceLock<Rest> = PyOnceLock::new();

/// Sets the op of ``x[key]``, and the functions for keys and values that the core does not know: ``read(x, key)``
/// and ``write(x, key, value)``.
#[pyfunction]
pub(crate) fn set_indexing(py: Python<'_>, op: Py<PyAny>, read: Py<PyAny>, write: Py<PyAny>) -> PyResult<()> {
    let twice = |_| PyRuntimeError::new_err("indexing is set already");
    REST.set(py, Rest { op, read, write }).map_err(twice)
}

fn rest(py: Python<'_>) -> PyResult<&Rest> {
    REST.get(py).ok_or_else(|| PyRuntimeError::new_err("weft is being imported"))
}

/// `x[key]`.
pub(crate) fn get<'py>(x: &Bound<'py, NDArray>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Some(done) = instead(x, |now| get(now, key)) {
        return done;
    }
    let (py, own) = (x.py(), x.get());
    if let Some(layout) = part::named(own.inner.layout(), key)? {
        let result = if layout.shape.is_empty() {
            element(py, own, layout)?
        } else {
            NDArray::view_of(x, layout, own.inner.dtype())?
        };
        let result = Bound::new(py, result)?;
        if own.tape.is_known() {
            tape_hear_part(rest(py)?.op.bind(py), x, result.clone(), key.clone().unbind())?;
        }
        return Ok(result.into_any());
    }
    if let Ok(key) = key.cast_exact::<NDArray>()
        && let Some(picked) = rows::picked(x, key, rest(py)?.op.bind(py))?
    {
        return Ok(picked.into_any());
    }
    rest(py)?.read.bind(py).call1((x, key))
}

/// A copy of one element: later writes do not change it.
fn element(py: Python<'_>, own: &NDArray, place: Layout) -> PyResult<NDArray> {
    let buffer = own.inner.buffer();
    let from = Array::on(buffer.clone(), place, own.inner.dtype()).map_err(|error| raised(py, error))?;
    let copy = memory::fresh_beside(py, own, &[], own.inner.dtype())?;
    if !buffer.is_elsewhere() {
        memory::copy_on_host(py, own.owner().get(), &copy.inner, &from)?;
        return Ok(copy);
    }
    let to = Bound::new(py, NDArray::new(copy.inner.clone(), own.owner().clone_ref(py)))?;
    kinds::copy(py, &to, &Bound::new(py, NDArray::new(from, own.owner().clone_ref(py)))?)?;
    Ok(copy)
}

/// `x[key] = value`.
pub(crate) fn set<'py>(x: &Bound<'py, NDArray>, key: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> PyResult<()> {
    if !x.get().tape.is_moved()
        && let Some(place) = part::named(x.get().inner.layout(), key)?
        && assign(x, place, value)?
    {
        return Ok(());
    }
    let py = x.py();
    rest(py)?.write.bind(py).call1((x, key, value)).map(drop)
}

/// Pushes the write of a number, or of an array of the same dtype, to a part of `x`. False: the write needs a cast, is
/// refused, is heard by the tape or is on a device, and nothing was pushed.
fn assign(x: &Bound<'_, NDArray>, place: Layout, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (py, own) = (x.py(), x.get());
    let buffer = own.inner.buffer();
    let shows_twice =
        own.inner.layout().strides.iter().zip(&own.inner.layout().shape).any(|(step, n)| *step == 0 && *n > 1);
    if own.tape.is_known() || buffer.is_elsewhere() || buffer.is_readonly() || shows_twice {
        return Ok(false);
    }
    let dtype = own.inner.dtype();
    let target = Array::on(buffer.clone(), place, dtype).map_err(|error| raised(py, error))?;
    let Ok(array) = value.cast::<NDArray>() else {
        let Some(number) = scalar(value, dtype) else { return Ok(false) };
        own.owner().get().wait_for_room(py, 0)?;
        let operands = [Operand::Scalar(number, dtype)];
        push_elementwise(copy_loop(dtype), &[&target], &operands, Loop::options(py, &target, "fill"))
            .map_err(|error| raised(py, error))?;
        return Ok(true);
    };
    let from = array.get();
    let fits = from.inner.layout().is_shaped_like(target.layout()) || {
        let shape = &target.layout().shape;
        broadcast_shapes(shape, &from.inner.layout().shape).is_some_and(|common| common == *shape)
    };
    let together = from.owner().get().inner.is_same(&own.owner().get().inner);
    if !fits || !together || from.inner.dtype() != dtype || from.tape.is_known() || from.tape.is_moved() {
        return Ok(false);
    }
    if from.inner.buffer().is_elsewhere() {
        return Ok(false);
    }
    let same = from.inner.layout() == target.layout() && buffer.is_same(from.inner.buffer());
    if !same {
        memory::copy_on_host(py, own.owner().get(), &target, &from.inner)?; // not the end of `x[i] += 1`
    }
    Ok(true)
}
