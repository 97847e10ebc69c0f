//! The walk itself.

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

/// Pushes a call's op, and returns its results.
pub(super) fn call<'py>(asked: &Asked<'py>) -> PyResult<Bound<'py, PyAny>> {
    let Asked { op, operands, attributes, out, engine } = asked;
    let py = op.py();
    if out.is_none() {
        if let Some(result) = walk(op, operands, attributes)? {
            return Ok(result);
        }
    }
    let compose = callee::composer(operands)?;
    let operands = PyTuple::new(py, operands)?;
    if let Some(compose) = compose {
        return compose.call1((op, operands, dictionary(py, attributes)?, out.as_ref()));
    }
    carrier(py)?.carry.bind(py).call1((op, operands, dictionary(py, attributes)?, out.as_ref(), engine.as_ref()))
}

/// The results of a call within the core's knowledge; None for any other one.
#[inline]
fn walk<'py>(
    op: &Bound<'py, Callee>,
    given: &Given<'py>,
    attributes: &Named<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(kinds) = given.iter().map(Kind::of).collect::<Option<Kinds>>() else { return Ok(None) };
    let Some(first) = first_of(given) else { return Ok(None) };
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
pub(crate) fn operated<'py>(
    operator: Operator,
    operands: [&Bound<'py, PyAny>; 2],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = operands[0].py();
    let Some(op) = callee::operated(py, operator) else { return Ok(None) };
    // A power with a number as its exponent may be computed by another op.
    if operator == Operator::Pow && operands[1].cast::<NDArray>().is_err() {
        return Ok(None);
    }
    let given: Given<'_> = operands.into_iter().cloned().collect();
    walk(op, &given, &Named::new())
}

/// The other operand of an in-place operator, cast to the dtype of its computation, if the target and the result have
/// that dtype, too. None if no cast is needed, or if more than a cast is.
pub(crate) fn cast_for<'py>(
    target: &Bound<'py, NDArray>,
    other: &Bound<'py, PyAny>,
    operator: Operator,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let (py, own) = (target.py(), target.get());
    let (Some(op), Ok(array)) = (callee::operated(py, operator), other.cast::<NDArray>()) else { return Ok(None) };
    let given: Given<'_> = [target.as_any(), other].into_iter().cloned().collect();
    let Some(kinds) = given.iter().map(Kind::of).collect::<Option<Kinds>>() else { return Ok(None) };
    let dtype = own.inner.dtype();
    let unseen = own.inner.buffer().is_host() && !recording::is_open() && !own.owner().get().inner.is_observed();
    if !unseen || first_of(&given).is_none() || kinds[1] == Kind::Array(dtype) {
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

/// The first array among the operands, if all arrays have one engine and one kind of memory; None otherwise.
fn first_of<'a, 'py>(given: &'a Given<'py>) -> Option<&'a Bound<'py, NDArray>> {
    let mut arrays = given.iter().filter_map(|operand| operand.cast::<NDArray>().ok());
    let first = arrays.next()?;
    let own = first.get();
    let is_beside = |other: &Bound<'_, NDArray>| {
        let other = other.get();
        other.owner().get().inner.is_same(&own.owner().get().inner)
            && other.inner.buffer().is_elsewhere() == own.inner.buffer().is_elsewhere()
    };
    arrays.all(is_beside).then_some(first)
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
    let (of, casts) = match (&plan.native, &plan.after_casts) {
        (Some(of), _) => (of.get(), false),
        (None, Some(of)) => (of.get(), true),
        (None, None) => return Ok(None),
    };
    // A cast is a step of its own. A recorded call is one step, and so is an event of a trace.
    if casts && (recording::is_open() || own.owner().get().inner.is_observed()) {
        return Ok(None);
    }
    let Some(shape) = shape_of(given) else { return Ok(None) };
    let mut ready: SmallVec<[Ready<'_, '_>; 3]> = SmallVec::new();
    for ((operand, kind), dtype) in given.iter().zip(kinds).zip(plan.of_inputs()) {
        ready.push(match (operand.cast::<NDArray>(), kind) {
            (Ok(array), Kind::Array(from)) if from == dtype => Ready::Array(array),
            (Ok(array), _) if casts && is_cast_apart(array.get().inner.layout().size()) => {
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
    noted(op, given, NDArray::new(output, own.owner().clone_ref(py)), || Ok(Attributes::None)).map(Some)
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
    let given: SmallVec<[&Bound<'_, PyAny>; 4]> = given.iter().collect();
    short::noted_handle(op.as_any(), || Ok(Attributes::None), &given, &output)?;
    Ok(Some(output))
}

/// The broadcast shape of the operands; None if there is none.
fn shape_of(given: &Given<'_>) -> Option<Shape> {
    let mut arrays = given.iter().filter_map(|operand| operand.cast::<NDArray>().ok());
    let mut shape = arrays.next()?.get().inner.layout().shape.clone();
    for array in arrays {
        let other = &array.get().inner.layout().shape;
        if shape != *other {
            shape = broadcast_shapes(&shape, other)?;
        }
    }
    Some(shape)
}

/// A handle of a new array. The tape is told of it.
#[inline]
fn noted<'py>(
    op: &Bound<'py, Callee>,
    given: &Given<'py>,
    result: NDArray,
    attributes: impl FnOnce() -> PyResult<Attributes>,
) -> PyResult<Bound<'py, NDArray>> {
    let result = Bound::new(op.py(), result)?;
    let given: SmallVec<[&Bound<'_, PyAny>; 4]> = given.iter().collect();
    short::noted_handle(op.as_any(), attributes, &given, &result)?;
    Ok(result)
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
    let references: SmallVec<[&Bound<'_, PyAny>; 4]> = given.iter().collect();
    let attributes = || Ok(Attributes::Known(way.attributes(py)?.into_any().unbind()));
    short::noted_handles(op.as_any(), attributes, &references, &results)?;
    if results.len() == 1 {
        return Ok(results.pop().map(Bound::into_any));
    }
    Ok(Some(PyTuple::new(py, results)?.into_any()))
}
