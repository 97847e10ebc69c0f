//! The walk itself.

use super::alike::Memory;
use super::callee::{self, Callee, Known, carrier};
use super::entry::{Asked, Given, Named, dictionary};
use super::kind::{Kind, Kinds, Taken};
use super::native::Results;
use super::plan::Plan;
use super::way::{self, Way, outlines_of};
use crate::array::operator::scalar;
use crate::array::{NDArray, raised};
use crate::hearing::short;
use crate::interpreter::errors::sifted;
use crate::program::{note_call, recorded_calls};
use crate::pushes::memory::{cast_apart, fresh_beside};
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
    let mut taken: SmallVec<[Taken<'_, '_>; 3]> = SmallVec::new();
    for operand in given {
        match Taken::of(operand) {
            Some(operand) => taken.push(operand),
            None => return Ok(None),
        }
    }
    let Some(first) = taken.iter().find_map(Taken::array) else { return Ok(None) };
    if attributes.is_empty()
        && !first.get().inner.buffer().is_elsewhere()
        && let Some(of) = op.get().alike.find(Memory::Host, first.get().inner.dtype())
        && let Some(result) = by_loop_of(op.py(), of.get(), &taken, first.get())?
    {
        told(op, &taken, &result)?;
        return Ok(Some(result.into_any()));
    }
    further(op, given, &taken, first, attributes)
}

/// The rest of a walk: the results of a call that has no loop for operands of one dtype.
fn further<'py>(
    op: &Bound<'py, Callee>,
    given: &Given<'py>,
    taken: &[Taken<'_, 'py>],
    first: &Bound<'py, NDArray>,
    attributes: &Named<'_, 'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut kinds = Kinds::new();
    for operand in taken {
        match operand.kind() {
            Some(kind) => kinds.push(kind),
            None => return Ok(None),
        }
    }
    if !taken.iter().filter_map(Taken::array).all(|other| is_beside(first.get(), other.get())) {
        return Ok(None);
    }
    let way = match op.get().known(op.py(), &kinds, taken, attributes) {
        Known::Nothing => return Ok(None),
        Known::Plan(plan) => return Ok(by_plan(op, taken, first.get(), plan.get())?.map(Bound::into_any)),
        Known::Unplanned => {
            let Some(plan) = Callee::plan(op, &kinds, None)? else { return Ok(None) };
            return Ok(by_plan(op, taken, first.get(), plan.get())?.map(Bound::into_any));
        }
        _ if first.get().inner.buffer().is_elsewhere() => return Ok(None),
        Known::Answer(answer, effort) => {
            let answered =
                answered(op.as_any(), (answer.bind(op.py()), effort), given, || dictionary(op.py(), attributes))?;
            return Ok(answered.map(Bound::into_any));
        }
        Known::Way(way) => way,
        Known::Unasked(generation) => way::make(op, given, outlines_of(&kinds, taken), attributes, generation)
            .map_err(|error| sifted(op.py(), error))?,
    };
    by_way(op, (given, taken), first.get(), &way)
}

/// The result of an operator's op that has no loop for these operands, if the walk knows the call. `first` is one of
/// the two.
pub(super) fn operated<'py>(
    op: &Bound<'py, Callee>,
    first: &Bound<'py, NDArray>,
    operands: [Taken<'_, 'py>; 2],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    further(op, &operands.each_ref().map(|operand| operand.any().clone()), &operands, first, &Named::new())
}

/// Whether an array has the engine of another one, and the same kind of memory.
#[inline]
fn is_beside(own: &NDArray, other: &NDArray) -> bool {
    (other.owner().is(own.owner()) || other.owner().get().inner.is_same(&own.owner().get().inner))
        && other.inner.buffer().is_elsewhere() == own.inner.buffer().is_elsewhere()
}

/// The result of an element-wise op over operands that all have the dtype of the array `first`, which is on the host
/// and at home. The tape is not told. None for any other call.
#[inline]
pub(super) fn by_dtype<'py, const N: usize>(
    op: &Bound<'py, Callee>,
    taken: [Taken<'_, 'py>; N],
    first: &NDArray,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    match op.get().alike.find(Memory::Host, first.inner.dtype()) {
        Some(of) => by_loop(op.py(), of.get(), taken, first),
        None => Ok(None),
    }
}

/// An operand that is still to be filled in.
const NOTHING: Operand<'_> = Operand::Scalar(Scalar::Bool(false), DType::Bool);

/// Fills in arrays of one engine on the host and numbers as operands of a loop. Answers whether all have the first
/// array's shape; None if they are not of the loop's dtypes.
#[inline(always)]
#[allow(clippy::inline_always)] // on the way of every operator
fn fill<'a, const N: usize>(
    of: &Loop,
    taken: &[Taken<'a, '_>; N],
    first: &NDArray,
    operands: &mut [Operand<'a>; N],
) -> Option<bool> {
    let dtypes = of.dtypes.as_slice();
    if dtypes.len() != N + 1 || of.kernel.inputs() != N {
        return None;
    }
    let mut alike = true;
    for ((operand, dtype), place) in taken.iter().zip(dtypes).zip(operands) {
        *place = match operand {
            Taken::Array(array) => {
                let own = array.get();
                if own.inner.dtype() != *dtype {
                    return None;
                }
                if !std::ptr::eq(own, first) {
                    if !is_beside(first, own) {
                        return None;
                    }
                    alike &= own.inner.layout().is_shaped_like(first.inner.layout());
                }
                Operand::Array(&own.inner)
            }
            Taken::Other(number) => Operand::Scalar(scalar(number, *dtype)?, *dtype),
        };
    }
    Some(alike)
}

/// Pushes a loop over operands of its dtypes into a new array, of which the tape is not told.
#[inline]
fn by_loop<'py, const N: usize>(
    py: Python<'py>,
    of: &Loop,
    taken: [Taken<'_, 'py>; N],
    first: &NDArray,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let mut operands = [NOTHING; N];
    let Some(alike) = fill(of, &taken, first, &mut operands) else { return Ok(None) };
    let dtype = of.dtypes[N];
    let output = if alike {
        Array::like(&first.inner, dtype)
    } else {
        let Some(shape) = shape_of(&taken) else { return Ok(None) };
        Array::empty(first.inner.engine(), &shape, dtype)
    };
    pushed(py, of, output.map_err(|error| raised(py, error))?, &operands, first).map(Some)
}

/// Pushes a loop into a new array beside another one.
#[inline]
fn pushed<'py>(
    py: Python<'py>,
    of: &Loop,
    output: Array,
    operands: &[Operand<'_>],
    beside: &NDArray,
) -> PyResult<Bound<'py, NDArray>> {
    beside.owner().get().wait_for_room(py, output.bytes() as u64)?;
    push_elementwise(of.kernel, &[&output], operands, Loop::options(py, &output, &of.name))
        .map_err(|error| raised(py, error))?;
    Bound::new(py, NDArray::new(output, beside.owner().clone_ref(py)))
}

/// The same over as many operands as NumPy's element-wise functions have.
#[inline]
fn by_loop_of<'py>(
    py: Python<'py>,
    of: &Loop,
    taken: &[Taken<'_, 'py>],
    first: &NDArray,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    match *taken {
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
    other: Taken<'_, 'py>,
) -> PyResult<bool> {
    let (py, own) = (op.py(), target.get());
    let Some(of) = op.get().alike.find(Memory::Host, own.inner.dtype()).map(Py::get) else { return Ok(false) };
    let (taken, mut operands) = ([Taken::Array(target), other], [NOTHING; 2]);
    let Some(alike) = fill(of, &taken, own, &mut operands) else { return Ok(false) };
    let fits = || shape_of(&taken).is_some_and(|shape| shape == own.inner.layout().shape);
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
    other: Taken<'_, 'py>,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let (py, own, dtype) = (target.py(), target.get(), target.get().inner.dtype());
    let Some(array) = other.array().map(Bound::get).filter(|array| is_beside(own, array)) else { return Ok(None) };
    let unseen = own.inner.buffer().is_host() && !recording::is_open() && !own.owner().get().inner.is_observed();
    if !unseen || array.inner.dtype() == dtype {
        return Ok(None);
    }
    let kinds = [dtype, array.inner.dtype()].map(Kind::Array);
    let Some(plan) = Callee::plan(op, &kinds, None)? else { return Ok(None) };
    let plan = plan.get();
    let keeps = plan.after_casts.is_some() && plan.dtypes.iter().all(|of| *of == dtype);
    if !keeps || !is_cast_apart(array.inner.layout().size()) {
        return Ok(None);
    }
    let Some(kernel) = cast_loop(array.inner.dtype(), dtype) else { return Ok(None) };
    let cast = cast_apart(py, array, kernel, dtype)?;
    Bound::new(py, NDArray::new(cast, array.owner().clone_ref(py))).map(Some)
}

/// Pushes an element-wise op by its plan's loop.
fn by_plan<'py>(
    op: &Bound<'py, Callee>,
    taken: &[Taken<'_, 'py>],
    first: &NDArray,
    plan: &Plan,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let py = op.py();
    let [result] = plan.of_outputs() else { return Ok(None) };
    if first.inner.buffer().is_elsewhere() {
        return on_device(op, taken, first, plan, *result);
    }
    let made = match (&plan.native, taken) {
        (Some(of), _) => by_loop_of(py, of.get(), taken, first)?,
        (None, [x]) => by_casts(py, plan, *result, [*x], first)?,
        (None, [x, y]) => by_casts(py, plan, *result, [*x, *y], first)?,
        (None, [x, y, z]) => by_casts(py, plan, *result, [*x, *y, *z], first)?,
        (None, _) => None,
    };
    if let Some(made) = &made {
        told(op, taken, made)?;
    }
    Ok(made)
}

/// Pushes a plan's loop behind casts of operands, of which the tape is not told. None if more is needed.
fn by_casts<'py, const N: usize>(
    py: Python<'py>,
    plan: &Plan,
    result: DType,
    taken: [Taken<'_, 'py>; N],
    first: &NDArray,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    // A cast is a step of its own. A recorded call is one step, and so is an event of a trace.
    let Some(of) = plan.after_casts.as_ref().map(Py::get) else { return Ok(None) };
    let Some(dtype) = plan.of_inputs().first().copied().filter(|_| plan.of_inputs().len() == N) else {
        return Ok(None);
    };
    if recording::is_open() || first.owner().get().inner.is_observed() {
        return Ok(None);
    }
    let (mut operands, mut kernels, mut alike) = ([NOTHING; N], [const { None }; N], true);
    for (at, operand) in taken.iter().enumerate() {
        let array = match operand {
            Taken::Array(array) => &array.get().inner,
            Taken::Other(number) => {
                let Some(number) = scalar(number, dtype) else { return Ok(None) };
                operands[at] = Operand::Scalar(number, dtype);
                continue;
            }
        };
        alike &= array.layout().is_shaped_like(first.inner.layout());
        if array.dtype() != dtype {
            kernels[at] = cast_loop(array.dtype(), dtype);
            if kernels[at].is_none() || !is_cast_apart(array.layout().size()) {
                return Ok(None);
            }
        }
    }
    let shape = if alike { None } else { shape_of(&taken) };
    if !alike && shape.is_none() {
        return Ok(None);
    }
    let mut casts = [const { None }; N];
    for ((operand, kernel), cast) in taken.iter().zip(kernels).zip(&mut casts) {
        if let (Taken::Array(array), Some(kernel)) = (operand, kernel) {
            *cast = Some(cast_apart(py, array.get(), kernel, dtype)?);
        }
    }
    let mut like = &first.inner;
    for ((operand, cast), place) in taken.iter().zip(&casts).zip(&mut operands) {
        if let Taken::Array(array) = operand {
            like = cast.as_ref().unwrap_or(&array.get().inner);
            *place = Operand::Array(like);
        }
    }
    let output = match shape {
        None => Array::like(like, result),
        Some(shape) => Array::empty(like.engine(), &shape, result),
    };
    pushed(py, of, output.map_err(|error| raised(py, error))?, &operands, first).map(Some)
}

/// Pushes a device's kernel for a loop.
fn on_device<'py>(
    op: &Bound<'py, Callee>,
    taken: &[Taken<'_, 'py>],
    first: &NDArray,
    plan: &Plan,
    result: DType,
) -> PyResult<Option<Bound<'py, NDArray>>> {
    let py = op.py();
    let (Some(of), Some(shape)) = (plan.everywhere(), shape_of(taken)) else { return Ok(None) };
    let fits = |(operand, dtype): (&Taken<'_, '_>, &DType)| match operand {
        Taken::Array(_) => true,
        Taken::Other(number) => scalar(number, *dtype).is_some(),
    };
    if !taken.iter().zip(plan.of_inputs()).all(fits) {
        return Ok(None);
    }
    let output = Bound::new(py, fresh_beside(py, first, &shape, result)?)?;
    let given: SmallVec<[&Bound<'_, PyAny>; 4]> = taken.iter().map(Taken::any).collect();
    of.get().push(&PyTuple::new(py, [&output])?, &PyTuple::new(py, given)?)?;
    told(op, taken, &output)?;
    Ok(Some(output))
}

/// The broadcast shape of the operands; None if there is none.
fn shape_of(taken: &[Taken<'_, '_>]) -> Option<Shape> {
    let mut arrays = taken.iter().filter_map(Taken::array);
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
fn told<'py>(op: &Bound<'py, Callee>, taken: &[Taken<'_, 'py>], result: &Bound<'py, NDArray>) -> PyResult<()> {
    if !taken.iter().any(Taken::is_known) {
        return Ok(());
    }
    let given: SmallVec<[&Bound<'_, PyAny>; 4]> = taken.iter().map(Taken::any).collect();
    short::noted_handle(op.as_any(), || Ok(Attributes::None), &given, result)
}

/// Pushes an op without a ufunc by the core's run, or has NumPy answer it.
fn by_way<'py>(
    op: &Bound<'py, Callee>,
    (given, taken): (&Given<'py>, &[Taken<'_, 'py>]),
    first: &NDArray,
    way: &Py<Way>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(result) = by_run(op, (given, taken), first, way)? {
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
    (given, taken): (&Given<'py>, &[Taken<'_, 'py>]),
    first: &NDArray,
    way: &Py<Way>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (py, way) = (op.py(), way.get());
    let Some(run) = &way.run else { return Ok(None) };
    let before = recorded_calls();
    if before.is_some() && !taken.iter().all(|operand| operand.array().is_some()) {
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
    if taken.iter().any(Taken::is_known) {
        let references: SmallVec<[&Bound<'_, PyAny>; 4]> = taken.iter().map(Taken::any).collect();
        let attributes = || Ok(Attributes::Known(way.attributes(py)?.into_any().unbind()));
        short::noted_handles(op.as_any(), attributes, &references, &results)?;
    }
    if results.len() == 1 {
        return Ok(results.pop().map(Bound::into_any));
    }
    Ok(Some(PyTuple::new(py, results)?.into_any()))
}
