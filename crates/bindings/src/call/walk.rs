//! The walk itself.

use super::callee::{self, Callee, carrier};
use super::kind::{Kind, Kinds};
use super::plan::Plan;
use super::way::{Way, find, outlines};
use crate::array::operator::{Operator, scalar};
use crate::array::{NDArray, raised};
use crate::hearing::short;
use crate::payloads::trace;
use crate::program::{note_call, recorded_calls};
use crate::pushes::memory::fresh_beside;
use crate::pushes::{Loop, answered};
use crate::tape::attributes::Attributes;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use weft_array::{
    Array, DType, Operand, Scalar, Shape, broadcast_shapes, cast_loop, is_cast_apart, push_elementwise, recording,
};
use weft_engine::PushOptions;
use weft_engine::trace::Kind as Traced;

pub(super) type Given<'py> = SmallVec<[Bound<'py, PyAny>; 4]>;

/// Pushes `op` over operands and returns its results, without waiting.
///
/// Parameters
/// ----------
/// op : Op
///     What to compute.
/// *operands : array-like
///     The operands.
/// out : NDArray or tuple of NDArray, optional
///     Where to write the results.
/// engine : Engine, optional
///     For an op without operands, the engine; by default the default one.
/// **attributes
///     The op's attributes; for one with a ufunc, ``where`` and ``dtype`` as in NumPy.
///
/// Returns
/// -------
/// NDArray or tuple of NDArray
///     The results; a tuple where the op has not exactly one.
#[pyfunction]
#[pyo3(signature = (op, *operands, out=None, engine=None, **attributes))]
pub(crate) fn call<'py>(
    op: &Bound<'py, Callee>,
    operands: &Bound<'py, PyTuple>,
    out: Option<&Bound<'py, PyAny>>,
    engine: Option<&Bound<'py, PyAny>>,
    attributes: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = op.py();
    if out.is_none() {
        let given: Given<'_> = operands.iter().collect();
        if let Some(result) = walk(op, &given, operands, attributes)? {
            return Ok(result.into_any());
        }
        if let Some(compose) = callee::composer(&given)? {
            let attributes = attributes.map_or_else(|| PyDict::new(py), Bound::clone);
            return compose.call1((op, operands, attributes));
        }
    }
    let attributes = attributes.map_or_else(|| PyDict::new(py), Bound::clone);
    carrier(py)?.carry.bind(py).call1((op, operands, attributes, out, engine))
}

/// The result of a call that takes no more than the core knows; None for any other one.
#[inline]
fn walk<'py>(
    op: &Bound<'py, Callee>,
    given: &Given<'py>,
    operands: &Bound<'py, PyTuple>,
    attributes: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let attributes = attributes.filter(|attributes| !attributes.is_empty());
    if op.get().is_element_wise() {
        return if attributes.is_none() { element_wise(op, given) } else { Ok(None) };
    }
    computed(op, given, operands, attributes)
}

/// What the op of an operator gives for two operands, if the walk knows the call.
pub(crate) fn operated<'py>(
    operator: Operator,
    operands: [&Bound<'py, PyAny>; 2],
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let py = operands[0].py();
    let Some(op) = callee::operated(py, operator) else { return Ok(None) };
    // The power of a number may be another function.
    if operator == Operator::Pow && operands[1].cast::<NDArray>().is_err() {
        return Ok(None);
    }
    let given: Given<'_> = operands.into_iter().cloned().collect();
    if op.get().is_element_wise() {
        return element_wise(op, &given);
    }
    computed(op, &given, &PyTuple::new(py, operands)?, None)
}

/// The other operand of an in-place operator, cast to the dtype in which the operator computes, if that is the target's and its
/// result's; None where there is nothing to cast, or more to be done.
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
    let Some(cast) = cast(py, array.get(), dtype)? else { return Ok(None) };
    Bound::new(py, NDArray::new(cast, array.get().owner().clone_ref(py))).map(Some)
}

/// The elements of a small array in a new one of a dtype; None where no loop casts them.
fn cast(py: Python<'_>, x: &NDArray, dtype: DType) -> PyResult<Option<Array>> {
    let Some(kernel) = cast_loop(x.inner.dtype(), dtype) else { return Ok(None) };
    let made = made(py, x, &x.inner.layout().shape, dtype)?;
    let note = trace::of_arrays(py, made.engine(), Traced::Compute, "astype");
    let options = PushOptions { note, ..PushOptions::default() };
    push_elementwise(kernel, &[&made], &[Operand::Array(&x.inner)], options).map_err(|error| raised(py, error))?;
    Ok(Some(made))
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

/// The arrays among operands, all of one engine and one kind of memory; None otherwise, and where there is no array.
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

/// Pushes an element-wise op by the loop that its plan has.
pub(super) fn element_wise<'py>(op: &Bound<'py, Callee>, given: &Given<'py>) -> PyResult<Option<Bound<'py, NDArray>>> {
    let Some(kinds) = given.iter().map(Kind::of).collect::<Option<Kinds>>() else { return Ok(None) };
    let Some(first) = first_of(given) else { return Ok(None) };
    let Some(plan) = Callee::plan(op, &kinds, None)? else { return Ok(None) };
    by_plan(op, given, first, &kinds, plan.get())
}

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
    // A cast is a step of its own: a recorded call is one step, and so is an event of a trace.
    if casts && (recording::is_open() || own.owner().get().inner.is_observed()) {
        return Ok(None);
    }
    let Some(shape) = shape_of(given) else { return Ok(None) };
    let mut ready: SmallVec<[Ready<'_, '_>; 3]> = SmallVec::new();
    for ((operand, kind), dtype) in given.iter().zip(kinds).zip(plan.of_inputs()) {
        ready.push(match (operand.cast::<NDArray>(), kind) {
            (Ok(array), Kind::Array(from)) if from == dtype => Ready::Array(array),
            (Ok(array), _) if casts && is_cast_apart(array.get().inner.layout().size()) => {
                let Some(cast) = cast(py, array.get(), *dtype)? else { return Ok(None) };
                Ready::Cast(cast)
            }
            (Ok(_), _) => return Ok(None),
            _ => match scalar(operand, *dtype) {
                Some(number) => Ready::Number(number),
                None => return Ok(None),
            },
        });
    }
    let output = made(py, own, &shape, *result)?;
    let operands: SmallVec<[Operand<'_>; 3]> =
        ready.iter().zip(plan.of_inputs()).map(|(operand, dtype)| operand.operand(*dtype)).collect();
    push_elementwise(of.kernel, &[&output], &operands, Loop::options(py, &output, &of.name))
        .map_err(|error| raised(py, error))?;
    noted(op, given, NDArray::new(output, own.owner().clone_ref(py)), || Ok(Attributes::None)).map(Some)
}

/// Pushes the kernel that a device has for a loop.
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

/// The shape to which operands broadcast; None where they do not.
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

/// A new array beside another one, once there is room for it.
fn made(py: Python<'_>, beside: &NDArray, shape: &[usize], dtype: DType) -> PyResult<Array> {
    let engine = beside.owner().get();
    let array = Array::empty(&engine.inner, shape, dtype).map_err(|error| raised(py, error))?;
    engine.wait_for_room(py, array.bytes() as u64)?;
    Ok(array)
}

/// A new array's handle, of which the tape is told.
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

/// Pushes an op without a ufunc by the core's run, or lets NumPy answer it.
fn computed<'py>(
    op: &Bound<'py, Callee>,
    given: &Given<'py>,
    operands: &Bound<'py, PyTuple>,
    attributes: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let (answer, prepares, runs) = {
        let facts = op.get().facts();
        let answer = facts.answer.as_ref().map(|answer| (answer.clone_ref(op.py()), facts.answer_limit));
        (answer, facts.prepare.is_some(), facts.native.is_some())
    };
    if answer.is_none() && !runs {
        return Ok(None);
    }
    let Some(outlines) = outlines(given) else { return Ok(None) };
    let Some(first) = first_of(given).filter(|first| !first.get().inner.buffer().is_elsewhere()) else {
        return Ok(None);
    };
    if !runs && !prepares {
        let Some((answer, limit)) = answer else { return Ok(None) };
        return answered(op.as_any(), (answer.bind(op.py()), limit), operands, attributes, given);
    }
    let way = find(op, given, outlines, attributes)?;
    if let Some(result) = by_run(op, given, first.get(), &way)? {
        return Ok(Some(result));
    }
    match answer {
        Some((answer, limit)) => {
            let attributes = way.get().own_attributes().bind(op.py());
            answered(op.as_any(), (answer.bind(op.py()), limit), operands, Some(attributes), given)
        }
        None => Ok(None),
    }
}

fn by_run<'py>(
    op: &Bound<'py, Callee>,
    given: &Given<'py>,
    first: &NDArray,
    way: &Py<Way>,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let (py, way) = (op.py(), way.get());
    let (Some(run), [(shape, dtype)]) = (&way.run, way.results.as_slice()) else { return Ok(None) };
    let before = recorded_calls();
    if before.is_some() && !given.iter().all(|operand| operand.cast::<NDArray>().is_ok()) {
        return Ok(None); // the note on a recorded call names its numbers
    }
    let output = Array::empty(&first.owner().get().inner, shape, *dtype).map_err(|error| raised(py, error))?;
    let result = Bound::new(py, NDArray::new(output, first.owner().clone_ref(py)))?;
    if !run.push(py, std::slice::from_ref(&result), given)? {
        return Ok(None);
    }
    if let Some(before) = before {
        note_call(op.as_any(), way.attributes(py)?.as_any(), before);
    }
    let references: SmallVec<[&Bound<'_, PyAny>; 4]> = given.iter().collect();
    let attributes = || Ok(Attributes::Known(way.attributes(py)?.into_any().unbind()));
    short::noted_handle(op.as_any(), attributes, &references, &result)?;
    Ok(Some(result))
}
