//! The walk itself.

use super::alike::Memory;
use super::callee::{self, Callee, Known, carrier};
use super::entry::{Asked, Given, Named, dictionary};
use super::kind::{Kind, Kinds};
use super::native::Results;
use super::plan::Plan;
use super::way::{self, Way, outlines_of};
use crate::array::operator::{Operator, scalar};
use crate::array::{NDArray, raised};
use crate::hearing::short;
use crate::program::{note_call, recorded_calls};
use crate::pushes::memory::{cast_apart, fresh_beside, room_beside};
use crate::pushes::{Loop, answered};
use crate::tape::attributes::Attributes;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use weft_array::{
    Array, DType, Operand, Scalar, Shape, broadcast_shapes, cast_loop, is_cast_apart, push_elementwise, recording,
};

/// Pushes a call's op over these operands, and returns its results.
pub(super) fn call<'py>(asked: &Asked<'_, 'py>, operands: &Given<'py>) -> PyResult<Bound<'py, PyAny>> {
    let Asked { op, attributes, out, engine, .. } = asked;
    let py = op.py();
    if out.is_none()
        && let Some(result) = walk(op, operands, attributes)?
    {
        return Ok(result);
    }
    let compose = callee::composer(operands)?;
    let operands = PyTuple::new(py, operands)?;
    if let Some(compose) = compose {
        return compose.call1((op, operands, dictionary(py, attributes)?, *out));
    }
    carrier(py)?.carry.bind(py).call1((op, operands, dictionary(py, attributes)?, *out, *engine))
}

/// The results of a call within the core's knowledge; None for any other one.
#[inline]
fn walk<'py>(
    op: &Bound<'py, Callee>,
    given: &Given<'py>,
    attributes: &Named<'_, 'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut arrays = given.iter().filter_map(|operand| operand.cast::<NDArray>().ok());
    let Some(first) = arrays.next() else { return Ok(None) };
    let mut kinds = Kinds::new();
    for operand in given {
        match Kind::of(operand) {
            Some(kind) => kinds.push(kind),
            None => return Ok(None),
        }
    }
    if attributes.is_empty()
        && let Some(of) = op.get().alike.find(Memory::Host, first.get().inner.dtype())
        && !first.get().inner.buffer().is_elsewhere()
        && let Some(result) = by_loop_of(op.py(), of.get(), given, first.get())?
    {
        told(op, given, &result)?;
        return Ok(Some(result.into_any()));
    }
    if !arrays.all(|other| is_beside(first.get(), other.get())) {
        return Ok(None);
    }
    let way = match op.get().known(op.py(), &kinds, given, attributes) {
        Known::Nothing => return Ok(None),
        Known::Plan(plan) => return Ok(by_plan(op, given, first, &kinds, plan.get())?.map(Bound::into_any)),
        Known::Unplanned => {
            let Some(plan) = Callee::plan(op, &kinds, None)? else { return Ok(None) };
            return Ok(by_plan(op, given, first, &kinds, plan.get())?.map(Bound::into_any));
        }
        _ if first.get().inner.buffer().is_elsewhere() => return Ok(None),
        Known::Answer(answer, effort) => {
            let answered =
                answered(op.as_any(), (answer.bind(op.py()), effort), given, || dictionary(op.py(), attributes))?;
            return Ok(answered.map(Bound::into_any));
        }
        Known::Way(way) => way,
        Known::Unasked(generation) => way::make(op, given, outlines_of(&kinds, given), attributes, generation)?,
    };
    by_way(op, given, first.get(), &way)
}

/// The result of an operator's op for two operands, if the walk knows the call.
pub(super) fn operated<'py>(
    operator: Operator,
    operands: [&Bound<'py, PyAny>; 2],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(op) = callee::operated(operands[0].py(), operator) else { return Ok(None) };
    walk(op, &operands.map(Bound::clone), &Named::new())
}

/// Whether an array has the engine of another one, and the same kind of memory.
#[inline]
fn is_beside(own: &NDArray, other: &NDArray) -> bool {
    other.owner().get().inner.is_same(&own.owner().get().inner)
        && other.inner.buffer().is_elsewhere() == own.inner.buffer().is_elsewhere()
}

/// The result of an element-wise op over operands that all have the dtype of the array `first`, which is on the host
/// and at home. The tape is not told. None for any other call.
#[inline]
pub(super) fn by_dtype<'py, const N: usize>(
    op: &Bound<'py, Callee>,
    given: [&Bound<'py, PyAny>; N],
    first: &NDArray,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    match op.get().alike.find(Memory::Host, first.inner.dtype()) {
        Some(of) => by_loop(op.py(), of.get(), given, first),
        None => Ok(None),
    }
}

/// Arrays of one engine on the host and numbers as operands of a loop, and whether all have the first array's shape.
/// None if they are not of the loop's dtypes.
#[inline]
fn taken<'a, const N: usize>(
    of: &Loop,
    given: [&'a Bound<'_, PyAny>; N],
    first: &NDArray,
) -> Option<([Operand<'a>; N], bool)> {
    if of.dtypes.len() != N + 1 || of.kernel.inputs() != N {
        return None;
    }
    let (mut operands, mut alike) = ([Operand::Scalar(Scalar::Bool(false), DType::Bool); N], true);
    for ((operand, dtype), place) in given.into_iter().zip(&of.dtypes).zip(&mut operands) {
        let Ok(array) = operand.cast::<NDArray>() else {
            *place = Operand::Scalar(scalar(operand, *dtype)?, *dtype);
            continue;
        };
        let own = array.get();
        if !std::ptr::eq(own, first) {
            if own.tape.is_moved() || !is_beside(first, own) {
                return None;
            }
            alike &= own.inner.layout().is_shaped_like(first.inner.layout());
        }
        if own.inner.dtype() != *dtype {
            return None;
        }
        *place = Operand::Array(&own.inner);
    }
    Some((operands, alike))
}

/// Pushes a loop over operands of its dtypes into a new array, of which the tape is not told.
#[inline]
fn by_loop<'py, const N: usize>(
    py: Python<'py>,
    of: &Loop,
    given: [&Bound<'py, PyAny>; N],
    first: &NDArray,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let Some((operands, alike)) = taken(of, given, first) else { return Ok(None) };
    let dtype = of.dtypes[N];
    let output = if alike {
        Array::like(&first.inner, dtype)
    } else {
        let Some(shape) = shape_of(given) else { return Ok(None) };
        Array::empty(first.inner.engine(), &shape, dtype)
    };
    let output = output.map_err(|error| raised(py, error))?;
    first.owner().get().wait_for_room(py, output.bytes() as u64)?;
    push_elementwise(of.kernel, &[&output], &operands, Loop::options(py, &output, &of.name))
        .map_err(|error| raised(py, error))?;
    Bound::new(py, NDArray::new(output, first.owner().clone_ref(py))).map(Some)
}

/// The same over as many operands as NumPy's element-wise functions have.
#[inline]
fn by_loop_of<'py>(
    py: Python<'py>,
    of: &Loop,
    given: &Given<'py>,
    first: &NDArray,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    match given {
        [x] => by_loop(py, of, [x], first),
        [x, y] => by_loop(py, of, [x, y], first),
        [x, y, z] => by_loop(py, of, [x, y, z], first),
        _ => Ok(None),
    }
}

/// Pushes an operator's loop over an array on the host and another operand into the array itself. False: it has
/// another dtype or shape than the result, and nothing was pushed.
#[inline]
pub(super) fn into_itself<'py>(
    op: &Bound<'py, Callee>,
    target: &Bound<'py, NDArray>,
    other: &Bound<'py, PyAny>,
) -> PyResult<bool> {
    let (py, own) = (op.py(), target.get());
    let Some(of) = op.get().alike.find(Memory::Host, own.inner.dtype()).map(Py::get) else { return Ok(false) };
    let given = [target.as_any(), other];
    let Some((operands, alike)) = taken(of, given, own) else { return Ok(false) };
    let fits = || shape_of(given).is_some_and(|shape| shape == own.inner.layout().shape);
    if of.dtypes[2] != own.inner.dtype() || !(alike || fits()) {
        return Ok(false);
    }
    own.owner().get().wait_for_room(py, own.inner.bytes() as u64)?;
    push_elementwise(of.kernel, &[&own.inner], &operands, Loop::options(py, &own.inner, &of.name))
        .map_err(|error| raised(py, error))?;
    Ok(true)
}

/// The other operand of an in-place operator, cast to the dtype of its computation, if the target and the result have
/// that dtype, too. None if no cast is needed, or if more than a cast is.
pub(super) fn cast_for<'py>(
    op: &Bound<'py, Callee>,
    target: &Bound<'py, NDArray>,
    other: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let (py, own) = (target.py(), target.get());
    let Ok(array) = other.cast::<NDArray>() else { return Ok(None) };
    let kinds = [Kind::of(target.as_any()), Kind::of(other)].into_iter().collect::<Option<Kinds>>();
    let Some(kinds) = kinds.filter(|_| is_beside(own, array.get())) else { return Ok(None) };
    let dtype = own.inner.dtype();
    let unseen = own.inner.buffer().is_host() && !recording::is_open() && !own.owner().get().inner.is_observed();
    if !unseen || kinds[1] == Kind::Array(dtype) {
        return Ok(None);
    }
    let Some(plan) = Callee::plan(op, &kinds, None)? else { return Ok(None) };
    let plan = plan.get();
    let keeps = plan.after_casts.is_some() && plan.dtypes.iter().all(|of| *of == dtype);
    if !keeps || !is_cast_apart(array.get().inner.layout().size()) {
        return Ok(None);
    }
    let Some(kernel) = cast_loop(array.get().inner.dtype(), dtype) else { return Ok(None) };
    let cast = cast_apart(py, array.get(), kernel, dtype)?;
    Bound::new(py, NDArray::new(cast, array.get().owner().clone_ref(py))).map(Some)
}

/// An operand of a loop.
enum Ready<'a, 'py> {
    Array(&'a Bound<'py, NDArray>),
    Cast(Array),
    Number(Scalar),
}

impl Ready<'_, '_> {
    fn operand(&self, dtype: DType) -> Operand<'_> {
        match self {
            Self::Array(array) => Operand::Array(&array.get().inner),
            Self::Cast(array) => Operand::Array(array),
            Self::Number(number) => Operand::Scalar(*number, dtype),
        }
    }
}

/// Pushes an element-wise op by its plan's loop.
fn by_plan<'py>(
    op: &Bound<'py, Callee>,
    given: &Given<'py>,
    first: &Bound<'py, NDArray>,
    kinds: &Kinds,
    plan: &Plan,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let py = op.py();
    let own = first.get();
    let ([result], is_elsewhere) = (plan.of_outputs(), own.inner.buffer().is_elsewhere()) else { return Ok(None) };
    if is_elsewhere {
        return on_device(op, given, own, plan, *result);
    }
    if let Some(of) = &plan.native {
        let result = by_loop_of(py, of.get(), given, own)?;
        if let Some(result) = &result {
            told(op, given, result)?;
        }
        return Ok(result);
    }
    // A cast is a step of its own. A recorded call is one step, and so is an event of a trace.
    let Some(of) = plan.after_casts.as_ref().map(Py::get) else { return Ok(None) };
    if recording::is_open() || own.owner().get().inner.is_observed() {
        return Ok(None);
    }
    let Some(shape) = shape_of(given) else { return Ok(None) };
    let mut ready: SmallVec<[Ready<'_, '_>; 3]> = SmallVec::new();
    for ((operand, kind), dtype) in given.iter().zip(kinds).zip(plan.of_inputs()) {
        ready.push(match (operand.cast::<NDArray>(), kind) {
            (Ok(array), Kind::Array(from)) if from == dtype => Ready::Array(array),
            (Ok(array), _) if is_cast_apart(array.get().inner.layout().size()) => {
                let Some(kernel) = cast_loop(array.get().inner.dtype(), *dtype) else { return Ok(None) };
                Ready::Cast(cast_apart(py, array.get(), kernel, *dtype)?)
            }
            (Ok(_), _) => return Ok(None),
            _ => match scalar(operand, *dtype) {
                Some(number) => Ready::Number(number),
                None => return Ok(None),
            },
        });
    }
    let output = room_beside(py, own, &shape, *result)?;
    let operands: SmallVec<[Operand<'_>; 3]> =
        ready.iter().zip(plan.of_inputs()).map(|(operand, dtype)| operand.operand(*dtype)).collect();
    push_elementwise(of.kernel, &[&output], &operands, Loop::options(py, &output, &of.name))
        .map_err(|error| raised(py, error))?;
    let result = Bound::new(py, NDArray::new(output, own.owner().clone_ref(py)))?;
    told(op, given, &result)?;
    Ok(Some(result))
}

/// Pushes a device's kernel for a loop.
fn on_device<'py>(
    op: &Bound<'py, Callee>,
    given: &Given<'py>,
    first: &NDArray,
    plan: &Plan,
    result: DType,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let py = op.py();
    let (Some(of), Some(shape)) = (plan.everywhere(), shape_of(given)) else { return Ok(None) };
    let numbers = given
        .iter()
        .zip(plan.of_inputs())
        .all(|(operand, dtype)| operand.cast::<NDArray>().is_ok() || scalar(operand, *dtype).is_some());
    if !numbers {
        return Ok(None);
    }
    let output = Bound::new(py, fresh_beside(py, first, &shape, result)?)?;
    of.get().push(&PyTuple::new(py, [&output])?, &PyTuple::new(py, given)?)?;
    told(op, given, &output)?;
    Ok(Some(output))
}

/// The broadcast shape of the operands; None if there is none.
fn shape_of<'a, 'py: 'a>(given: impl IntoIterator<Item = &'a Bound<'py, PyAny>>) -> Option<Shape> {
    let mut arrays = given.into_iter().filter_map(|operand| operand.cast::<NDArray>().ok());
    let mut shape = arrays.next()?.get().inner.layout().shape.clone();
    for array in arrays {
        let other = &array.get().inner.layout().shape;
        if shape != *other {
            shape = broadcast_shapes(&shape, other)?;
        }
    }
    Some(shape)
}

/// Tells the tape of the result of an element-wise op.
#[inline]
fn told<'py>(op: &Bound<'py, Callee>, given: &Given<'py>, result: &Bound<'py, NDArray>) -> PyResult<()> {
    if !given.iter().any(short::is_known) {
        return Ok(());
    }
    let given: SmallVec<[&Bound<'_, PyAny>; 4]> = given.iter().collect();
    short::noted_handle(op.as_any(), || Ok(Attributes::None), &given, result)
}

/// Pushes an op without a ufunc by the core's run, or has NumPy answer it.
fn by_way<'py>(
    op: &Bound<'py, Callee>,
    given: &Given<'py>,
    first: &NDArray,
    way: &Py<Way>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(result) = by_run(op, given, first, way)? {
        return Ok(Some(result));
    }
    let (py, way) = (op.py(), way.get());
    let Some((answer, effort)) = &way.answer else { return Ok(None) };
    let answered =
        answered(op.as_any(), (answer.bind(py), *effort), given, || Ok(way.own_attributes().bind(py).clone()))?;
    Ok(answered.map(Bound::into_any))
}

fn by_run<'py>(
    op: &Bound<'py, Callee>,
    given: &Given<'py>,
    first: &NDArray,
    way: &Py<Way>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (py, way) = (op.py(), way.get());
    let Some(run) = &way.run else { return Ok(None) };
    let before = recorded_calls();
    if before.is_some() && !given.iter().all(|operand| operand.cast::<NDArray>().is_ok()) {
        return Ok(None); // the note on a recorded call would have to name its numbers
    }
    let mut results: Results<'_> = SmallVec::new();
    for (shape, dtype) in &way.results {
        let output = Array::empty(&first.owner().get().inner, shape, *dtype).map_err(|error| raised(py, error))?;
        results.push(Bound::new(py, NDArray::new(output, first.owner().clone_ref(py)))?);
    }
    if !run.push(py, &results, given)? {
        return Ok(None);
    }
    if let Some(before) = before {
        note_call(op.as_any(), way.attributes(py)?.as_any(), before);
    }
    if given.iter().any(short::is_known) {
        let references: SmallVec<[&Bound<'_, PyAny>; 4]> = given.iter().collect();
        let attributes = || Ok(Attributes::Known(way.attributes(py)?.into_any().unbind()));
        short::noted_handles(op.as_any(), attributes, &references, &results)?;
    }
    if results.len() == 1 {
        return Ok(results.pop().map(Bound::into_any));
    }
    Ok(Some(PyTuple::new(py, results)?.into_any()))
}
