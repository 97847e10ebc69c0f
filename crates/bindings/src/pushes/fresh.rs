//! Short ways for calls that need no look-up: their inputs are arrays of the host of one engine, of the loop's dtypes; no thread records; the
//! result is new, and the tape is told of it. They answer None for any other call, which goes the long way.

use super::Loop;
use super::fast;
use super::pieces;
use crate::array::operator::{Operator, scalar};
use crate::array::{NDArray, raised};
use crate::engine::Engine;
use crate::hearing::short;
use crate::payloads::trace;
use crate::tape::attributes::Attributes;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple};
use smallvec::SmallVec;
use weft_array::{
    Array, ArrayError, DType, Layout, Operand, Scalar, Shape, Strides, Which, broadcast_shapes, multiply_here,
    push_elementwise, push_extreme, push_matmul, push_reduce, recording,
};
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

/// Whether an array is in the host's memory and at home, and nobody records what is done with it.
fn is_plain(array: &NDArray) -> bool {
    array.inner.buffer().is_host() && !array.tape.is_moved() && !recording::is_open()
}

/// Whether two arrays belong to one engine.
fn are_together(one: &NDArray, other: &NDArray) -> bool {
    one.owner().get().inner.is_same(&other.owner().get().inner)
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

/// The axis that an integer names.
fn axis_of(axis: &Bound<'_, PyAny>, count: usize) -> Option<usize> {
    let index = axis.cast_exact::<PyInt>().ok()?.extract::<isize>().ok()?;
    let at = if index < 0 { index.wrapping_add_unsigned(count) } else { index };
    usize::try_from(at).ok().filter(|at| *at < count)
}

/// A reduction of `x` over an axis, or over all, that was pushed, and over which; None where that takes more than this loop:
/// for another dtype, or other axes.
fn reduced(
    py: Python<'_>,
    of: &Loop,
    own: &NDArray,
    axis: Option<&Bound<'_, PyAny>>,
    keepdims: bool,
) -> PyResult<Option<(Array, SmallVec<[usize; 4]>)>> {
    let from = &own.inner;
    let layout = from.layout();
    let count = layout.shape.len();
    if !is_plain(own) || count == 0 || layout.size() == 0 || of.dtypes.iter().any(|dtype| *dtype != from.dtype()) {
        return Ok(None);
    }
    let mut over: SmallVec<[usize; 4]> = (0..count).collect();
    if let Some(axis) = axis {
        match axis_of(axis, count) {
            Some(at) => over = SmallVec::from_slice(&[at]),
            None => return Ok(None),
        }
    }
    let length = |at: usize| if over.contains(&at) { 1 } else { layout.shape[at] };
    let shape: Shape = (0..count).map(length).collect();
    let kept = made(py, own, &shape, from.dtype())?;
    push_reduce(of.kernel, of.identity, &kept, from, &over, Loop::options(py, &kept, of.reduction()))
        .map_err(|error| raised(py, error))?;
    if keepdims {
        return Ok(Some((kept, over)));
    }
    let strides = &kept.layout().strides;
    let rest = (0..count).filter(|at| !over.contains(at));
    let (shape, strides) = rest.map(|at| (shape[at], strides[at])).unzip();
    let view = Array::on(kept.buffer().clone(), Layout { shape, strides, offset: 0 }, from.dtype());
    Ok(Some((view.map_err(|error| raised(py, error))?, over)))
}

/// A new array, into which a reduction of `x` over an axis, or over all, was pushed; None where that takes more than this
/// loop. A mean is the sum, divided by how many elements it is of. The tape hears either as `op`.
#[pyfunction]
#[pyo3(signature = (r#loop, x, axis, keepdims, op, *, mean=false))]
pub(crate) fn fresh_reduction(
    r#loop: &Bound<'_, Loop>,
    x: &Bound<'_, NDArray>,
    axis: Option<&Bound<'_, PyAny>>,
    keepdims: bool,
    op: &Bound<'_, PyAny>,
    mean: bool,
) -> PyResult<Option<Py<NDArray>>> {
    let (py, own) = (x.py(), x.get());
    let Some((result, over)) = reduced(py, r#loop.get(), own, axis, keepdims)? else { return Ok(None) };
    let count = own.inner.layout().size() / result.layout().size();
    let result = Bound::new(py, handle(py, result, own))?;
    if mean {
        fast::in_place(&result, count.into_pyobject(py)?.as_any(), Operator::Divide)?;
    }
    short::noted_handle(op, || Ok(Attributes::Axes { axes: over, keepdims }), &[x.as_any()], &result)?;
    Ok(Some(result.unbind()))
}

/// A new array, into which the loop over `inputs`, arrays or numbers, was pushed. The tape hears it as `op`, over what was
/// `given` in place of these numbers.
#[pyfunction]
#[pyo3(signature = (r#loop, inputs, op, given=None))]
pub(crate) fn fresh_elements(
    r#loop: &Bound<'_, Loop>,
    inputs: &Bound<'_, PyTuple>,
    op: &Bound<'_, PyAny>,
    given: Option<&Bound<'_, PyTuple>>,
) -> PyResult<Option<Py<NDArray>>> {
    let (py, of) = (inputs.py(), r#loop.get());
    let mut held: SmallVec<[Result<Bound<'_, NDArray>, Scalar>; 4]> = SmallVec::new();
    let mut first: Option<Bound<'_, NDArray>> = None;
    let mut shape = Shape::new();
    if inputs.len() != of.kernel.inputs() || of.kernel.outputs() != 1 {
        return Ok(None);
    }
    for (input, dtype) in inputs.iter().zip(&of.dtypes) {
        match input.cast_into_exact::<NDArray>() {
            Ok(array) => {
                let own = array.get();
                let fits = own.inner.dtype() == *dtype && is_plain(own);
                if !fits || first.as_ref().is_some_and(|first| !are_together(first.get(), own)) {
                    return Ok(None);
                }
                let other = &own.inner.layout().shape;
                if first.is_none() {
                    shape.clone_from(other);
                    first = Some(array.clone());
                } else if shape != *other {
                    let Some(common) = broadcast_shapes(&shape, other) else { return Ok(None) };
                    shape = common;
                }
                held.push(Ok(array));
            }
            Err(error) => {
                let Some(scalar) = scalar(&error.into_inner(), *dtype) else { return Ok(None) };
                held.push(Err(scalar));
            }
        }
    }
    let Some(first) = first else { return Ok(None) };
    let output = made(py, first.get(), &shape, of.dtypes[held.len()])?;
    let operands: SmallVec<[Operand<'_>; 4]> = held
        .iter()
        .zip(&of.dtypes)
        .map(|(input, dtype)| match input {
            Ok(array) => Operand::Array(&array.get().inner),
            Err(scalar) => Operand::Scalar(*scalar, *dtype),
        })
        .collect();
    push_elementwise(of.kernel, &[&output], &operands, Loop::options(py, &output, &of.name))
        .map_err(|error| raised(py, error))?;
    let given: SmallVec<[Bound<'_, PyAny>; 4]> = given.unwrap_or(inputs).iter().collect();
    let given: SmallVec<[&Bound<'_, PyAny>; 4]> = given.iter().collect();
    short::noted(op, || Ok(Attributes::None), &given, handle(py, output, first.get())).map(Some)
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

/// The same of one array, by the loop that a list has for its dtype, at the dtype's number.
#[pyfunction]
pub(crate) fn fresh_unary(
    loops: &Bound<'_, PyList>,
    x: &Bound<'_, NDArray>,
    op: &Bound<'_, PyAny>,
) -> PyResult<Option<Py<NDArray>>> {
    let Ok(found) = loops.get_item(x.get().inner.dtype() as usize) else { return Ok(None) };
    let Ok(of) = found.cast_exact::<Loop>() else { return Ok(None) };
    unary(of.get(), x, op, Attributes::None)
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

/// A new array, into which the product of two matrices, or of one and a vector, was pushed.
#[pyfunction]
pub(crate) fn fresh_product(
    r#loop: &Bound<'_, Loop>,
    a: &Bound<'_, NDArray>,
    b: &Bound<'_, NDArray>,
) -> PyResult<Option<Py<NDArray>>> {
    let (py, of, left, right) = (a.py(), r#loop.get(), a.get(), b.get());
    let (rows, columns) = (&left.inner.layout().shape, &right.inner.layout().shape);
    let plain = is_plain(left) && is_plain(right) && are_together(left, right);
    let typed = of.dtypes.iter().all(|dtype| *dtype == left.inner.dtype() && *dtype == right.inner.dtype());
    let known = matches!((rows.len(), columns.len()), (1 | 2, 1 | 2));
    if !plain || !typed || !known || rows.contains(&0) || columns.contains(&0) {
        return Ok(None);
    }
    let item = left.inner.dtype().size().cast_signed();
    let noted = |result: Array| -> PyResult<Option<Py<NDArray>>> {
        let result = Py::new(py, handle(py, result, left))?;
        if left.tape.is_known() || right.tape.is_known() {
            short::note_operator(py, Operator::Matmul, [Some(a.as_any()), Some(b.as_any())], &result)?;
        }
        Ok(Some(result))
    };
    if columns[0] != rows[rows.len() - 1] {
        return Ok(None);
    }
    let kept = rows[..rows.len() - 1].iter().chain(&columns[1..]).copied().collect::<Shape>();
    let output = made(py, left, &kept, left.inner.dtype())?;
    let options = Loop::options(py, &output, &of.name);
    if multiply_here(of.kernel, &output, &left.inner, &right.inner, options).map_err(|error| raised(py, error))? {
        return noted(output);
    }
    // A vector is a matrix of one row, or of one column.
    let matrix = |array: &Array, at: usize| -> Result<Array, ArrayError> {
        let mut layout = array.layout().clone();
        if layout.shape.len() == 1 {
            layout.shape.insert(at, 1);
            layout.strides.insert(at, item);
        }
        Array::on(array.buffer().clone(), layout, array.dtype())
    };
    let (from_left, from_right) = (matrix(&left.inner, 0), matrix(&right.inner, 1));
    let (from_left, from_right) =
        (from_left.map_err(|error| raised(py, error))?, from_right.map_err(|error| raised(py, error))?);
    let (m, n) = (from_left.layout().shape[0], from_right.layout().shape[1]);
    let output = made(py, left, &[m, n], left.inner.dtype())?;
    let options = PushOptions { bytes: output.bytes() as u64, ..Loop::options(py, &output, &of.name) };
    push_matmul(of.kernel, &output, &from_left, &from_right, options).map_err(|error| raised(py, error))?;
    if rows.len() == 2 && columns.len() == 2 {
        return noted(output);
    }
    let axes = usize::from(rows.len() + columns.len() > 2); // of two vectors it is a number
    let layout = Layout { shape: Shape::from_elem(m * n, axes), strides: Strides::from_elem(item, axes), offset: 0 };
    noted(Array::on(output.buffer().clone(), layout, output.dtype()).map_err(|error| raised(py, error))?)
}

/// A new array, into which copies of `parts` were pushed, end to end along an axis, or each at an index of a new axis. The
/// tape hears it as `op`.
#[pyfunction]
pub(crate) fn fresh_join(
    parts: &Bound<'_, PyTuple>,
    axis: &Bound<'_, PyAny>,
    stacked: bool,
    op: &Bound<'_, PyAny>,
) -> PyResult<Option<Py<NDArray>>> {
    let py = parts.py();
    let Ok(first) = parts.get_item(0).and_then(|first| Ok(first.cast_into_exact::<NDArray>()?)) else {
        return Ok(None);
    };
    let own = first.get();
    let mut shape = own.inner.layout().shape.clone();
    let given = axis;
    let Some(axis) = axis_of(axis, shape.len() + usize::from(stacked)) else { return Ok(None) };
    let mut length = 0;
    for part in parts.iter_borrowed() {
        let Ok(part) = part.cast_exact::<NDArray>() else { return Ok(None) };
        let (part, other) = (part.get(), &part.get().inner.layout().shape);
        let alike = other.len() == shape.len()
            && other.iter().zip(&shape).enumerate().all(|(at, (n, m))| n == m || (at == axis && !stacked));
        let fits = alike && part.inner.dtype() == own.inner.dtype() && is_plain(part) && are_together(own, part);
        if !fits {
            return Ok(None);
        }
        length += if stacked { 1 } else { other[axis] };
    }
    if stacked {
        shape.insert(axis, length);
    } else {
        shape[axis] = length;
    }
    let output = made(py, own, &shape, own.inner.dtype())?;
    let result = Bound::new(py, handle(py, output, own))?;
    if !pieces::push_join(&result, parts, axis, stacked)? {
        return Ok(None);
    }
    let attributes = || {
        let made = PyDict::new(py);
        made.set_item(intern!(py, "axis"), given)?;
        made.set_item(intern!(py, "dtype"), py.None())?;
        Ok(Attributes::Known(made.into_any().unbind()))
    };
    let parts: SmallVec<[Bound<'_, PyAny>; 4]> = parts.iter().collect();
    let parts: SmallVec<[&Bound<'_, PyAny>; 4]> = parts.iter().collect();
    short::noted(op, attributes, &parts, handle(py, result.get().inner.clone(), own)).map(Some)
}

/// A new array, into which the copy of `x` was pushed whose elements move by `shift` along an axis, or in a contiguous array along
/// all of it. The tape hears it as `op`.
#[pyfunction]
pub(crate) fn fresh_roll(
    x: &Bound<'_, NDArray>,
    shift: &Bound<'_, PyAny>,
    axis: Option<&Bound<'_, PyAny>>,
    op: &Bound<'_, PyAny>,
) -> PyResult<Option<Py<NDArray>>> {
    let (py, own) = (x.py(), x.get());
    let (layout, dtype) = (own.inner.layout(), own.inner.dtype());
    let Ok(shift) = shift.extract::<isize>() else { return Ok(None) };
    if !is_plain(own) || layout.size() == 0 {
        return Ok(None);
    }
    let given = axis;
    let (axis, flat) = match axis {
        Some(axis) => (axis_of(axis, layout.shape.len()), false),
        None => (Some(0), layout.shape.len() != 1),
    };
    let Some(axis) = axis.filter(|_| !flat || own.inner.is_contiguous()) else { return Ok(None) };
    let result = handle(py, made(py, own, &layout.shape, dtype)?, own);
    let rolled = |to: &Bound<'_, NDArray>, from: &Bound<'_, NDArray>| pieces::push_roll(to, from, vec![(axis, shift)]);
    let pushed = if flat {
        let line = |array: &Array| -> PyResult<Bound<'_, NDArray>> {
            let (shape, strides) =
                (Shape::from_elem(layout.size(), 1), Strides::from_elem(dtype.size().cast_signed(), 1));
            let line = Layout { shape, strides, offset: array.layout().offset };
            let line = Array::on(array.buffer().clone(), line, dtype).map_err(|error| raised(py, error))?;
            Bound::new(py, handle(py, line, own))
        };
        rolled(&line(&result.inner)?, &line(&own.inner)?)?
    } else {
        let from = Bound::new(py, handle(py, own.inner.clone(), own))?; // of which the tape knows nothing
        rolled(&Bound::new(py, handle(py, result.inner.clone(), own))?, &from)?
    };
    if !pushed {
        return Ok(None);
    }
    let attributes = || {
        let made = PyDict::new(py);
        made.set_item(intern!(py, "shift"), (shift,))?;
        made.set_item(intern!(py, "axes"), given.map(|axis| PyTuple::new(py, [axis])).transpose()?)?;
        Ok(Attributes::Known(made.into_any().unbind()))
    };
    short::noted(op, attributes, &[x.as_any()], result).map(Some)
}

/// A new array, into which the search for the largest or the smallest elements along an axis, or in all of `x`, was pushed.
#[pyfunction]
pub(crate) fn fresh_search(
    x: &Bound<'_, NDArray>,
    axis: Option<&Bound<'_, PyAny>>,
    largest: bool,
) -> PyResult<Option<NDArray>> {
    let (py, own) = (x.py(), x.get());
    let mut shape = own.inner.layout().shape.clone();
    if !is_plain(own) || own.inner.layout().size() == 0 {
        return Ok(None);
    }
    let at = match axis {
        None => {
            shape = Shape::new();
            None
        }
        Some(axis) => {
            let Some(at) = axis_of(axis, shape.len()) else { return Ok(None) };
            shape.remove(at);
            Some(at)
        }
    };
    let output = made(py, own, &shape, DType::Int64)?;
    let (which, name) = if largest { (Which::Largest, "argmax") } else { (Which::Smallest, "argmin") };
    let note = trace::of_arrays(py, output.engine(), Kind::Compute, name);
    let pushed = push_extreme(which, &output, &own.inner, at, PushOptions { note, ..PushOptions::default() })
        .map_err(|error| raised(py, error))?;
    Ok(pushed.then(|| handle(py, output, own)))
}
