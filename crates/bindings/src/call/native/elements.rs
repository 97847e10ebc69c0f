//! Element-wise runs over numbers as well as arrays: limits, choices, rounding.

use crate::array::operator::scalar;
use crate::array::{NDArray, raised};
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use crate::payloads::trace;
use crate::pushes::Loop;
use crate::pushes::memory::cast_apart;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use smallvec::SmallVec;
use weft_array::{
    Array, DType, Operand, Scalar, StridedLoop, cast_loop, choose_loop, copy_loop, push_elementwise, recording,
};
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

/// An operand of a run.
enum Taken<'a, 'py> {
    Array(&'a Bound<'py, NDArray>),
    Number(Scalar),
}

impl<'a, 'py> Taken<'a, 'py> {
    /// An array, or a number as an element of a dtype; None if the number does not fit.
    fn of(operand: &'a Bound<'py, PyAny>, dtype: DType) -> Option<Self> {
        match operand.cast::<NDArray>() {
            Ok(array) => Some(Self::Array(array)),
            Err(_) => scalar(operand, dtype).map(Self::Number),
        }
    }

    /// The same. A real number out of range becomes infinite. An integer out of range loses bits if it `wraps`, and is
    /// refused otherwise.
    fn converted(operand: &'a Bound<'py, PyAny>, dtype: DType, wraps: bool) -> PyResult<Option<Self>> {
        if let Some(taken) = Self::of(operand, dtype) {
            return Ok(Some(taken));
        }
        let (py, dtype_of) = (operand.py(), dtypes::to_python(operand.py(), dtype)?);
        let scalars = py.import("weft._call.scalars")?;
        let mut element = operand.clone();
        if wraps {
            element = scalars.getattr(intern!(py, "wrapped"))?.call1((element, &dtype_of))?;
        }
        element = scalars.getattr(intern!(py, "number"))?.call1((element, &dtype_of))?;
        Ok(scalar(&element, dtype).map(Self::Number))
    }

    fn operand(&self, dtype: DType) -> Operand<'_> {
        match self {
            Self::Array(array) => Operand::Array(&array.get().inner),
            Self::Number(number) => Operand::Scalar(*number, dtype),
        }
    }
}

/// An end of an interval. None for an integer beyond all elements of the dtype, which leaves the interval open.
fn end<'a, 'py>(operand: &'a Bound<'py, PyAny>, dtype: DType, is_upper: bool) -> PyResult<Option<Taken<'a, 'py>>> {
    let is_open = || {
        let past = operand.cast_exact::<PyInt>().is_ok_and(|end| end.gt(0).is_ok_and(|positive| positive == is_upper));
        past && !dtype.is_floating() && dtype != DType::Bool && scalar(operand, dtype).is_none()
    };
    if is_open() {
        return Ok(None);
    }
    match Taken::converted(operand, dtype, false)? {
        Some(taken) => Ok(Some(taken)),
        None => Err(errors::argument_type(operand.py(), "an end of an interval is a number, or an array of numbers")),
    }
}

/// Pushes the loop that chooses, with casts before it where needed.
pub(super) fn choose(
    py: Python<'_>,
    dtype: DType,
    result: &Bound<'_, NDArray>,
    operands: &[Bound<'_, PyAny>],
) -> PyResult<bool> {
    let to = &result.get().inner;
    let [mask, one, other] = operands else { return Ok(false) };
    let Ok(mask) = mask.cast::<NDArray>() else { return Ok(false) };
    let (one, other) = (Taken::converted(one, dtype, true)?, Taken::converted(other, dtype, true)?);
    let (Some(one), Some(other)) = (one, other) else { return Ok(false) };
    let kernel_of = |taken: &Taken<'_, '_>| match taken {
        Taken::Array(array) => {
            cast_loop(array.get().inner.dtype(), dtype).filter(|_| array.get().inner.dtype() != dtype)
        }
        Taken::Number(_) => None,
    };
    if recording::is_open() && (kernel_of(&one).is_some() || kernel_of(&other).is_some()) {
        return Ok(false); // a recorded call is one step
    }
    result.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
    let apart = |taken: &Taken<'_, '_>| -> PyResult<Option<Array>> {
        match (kernel_of(taken), taken) {
            (Some(kernel), Taken::Array(array)) => cast_apart(py, array.get(), kernel, dtype).map(Some),
            _ => Ok(None),
        }
    };
    let casts = [apart(&one)?, apart(&other)?];
    let first = casts[0].as_ref().map_or_else(|| one.operand(dtype), Operand::Array);
    let second = casts[1].as_ref().map_or_else(|| other.operand(dtype), Operand::Array);
    let operands = [Operand::Array(&mask.get().inner), first, second];
    push_elementwise(choose_loop(dtype), &[to], &operands, Loop::options(py, to, "where"))
        .map_err(|error| raised(py, error))?;
    Ok(true)
}

/// Pushes the loops that hold elements between two limits.
pub(super) fn clip(
    py: Python<'_>,
    [lower, upper]: [&Loop; 2],
    result: &Bound<'_, NDArray>,
    operands: &[Bound<'_, PyAny>],
) -> PyResult<bool> {
    let to = &result.get().inner;
    let dtype = to.dtype();
    let [x, low, high] = operands else { return Ok(false) };
    let Some(x) = Taken::converted(x, dtype, false)? else { return Ok(false) };
    let limits = [(lower, end(low, dtype, false)?), (upper, end(high, dtype, true)?)];
    result.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
    let mut from = x.operand(dtype);
    for (of, limit) in &limits {
        let Some(limit) = limit else { continue };
        let operands = [from, limit.operand(dtype)];
        push_elementwise(of.kernel, &[to], &operands, Loop::options(py, to, &of.name))
            .map_err(|error| raised(py, error))?;
        from = Operand::Array(to);
    }
    if limits.iter().all(|(_, limit)| limit.is_none()) {
        push_elementwise(copy_loop(dtype), &[to], &[from], Loop::options(py, to, "copy"))
            .map_err(|error| raised(py, error))?;
    }
    Ok(true)
}

/// Pushes the steps that round elements: `power` is the number that the first and the last of three take.
pub(super) fn round(
    py: Python<'_>,
    steps: &[Py<Loop>],
    power: f64,
    result: &Bound<'_, NDArray>,
    operands: &[Bound<'_, PyAny>],
) -> PyResult<bool> {
    let to = &result.get().inner;
    let Ok(x) = operands[0].cast::<NDArray>() else { return Ok(false) };
    result.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
    let mut from = &x.get().inner;
    for of in steps {
        let of = of.get();
        let operands = [Operand::Array(from), Operand::Scalar(Scalar::Float(power), to.dtype())];
        let operands = &operands[..of.kernel.inputs()];
        push_elementwise(of.kernel, &[to], operands, Loop::options(py, to, &of.name))
            .map_err(|error| raised(py, error))?;
        from = to;
    }
    Ok(true)
}

/// Pushes a loop over arrays of its dtypes and the numbers behind them.
pub(super) fn each(
    py: Python<'_>,
    of: &Loop,
    numbers: &[f64],
    result: &Bound<'_, NDArray>,
    operands: &[Bound<'_, PyAny>],
) -> PyResult<bool> {
    let to = &result.get().inner;
    let mut given: SmallVec<[Operand<'_>; 4]> = SmallVec::new();
    for operand in operands {
        let Ok(array) = operand.cast::<NDArray>() else { return Ok(false) };
        given.push(Operand::Array(&array.get().inner));
    }
    given.extend(numbers.iter().map(|number| Operand::Scalar(Scalar::Float(*number), to.dtype())));
    result.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
    push_elementwise(of.kernel, &[to], &given, Loop::options(py, to, &of.name)).map_err(|error| raised(py, error))?;
    Ok(true)
}

/// Pushes the loop that casts an operand's elements, or only copies them.
pub(super) fn cast(
    py: Python<'_>,
    kernel: StridedLoop,
    is_copy: bool,
    result: &Bound<'_, NDArray>,
    operands: &[Bound<'_, PyAny>],
) -> PyResult<bool> {
    let to = &result.get().inner;
    let Ok(x) = operands[0].cast::<NDArray>() else { return Ok(false) };
    result.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
    let (kind, name) = if is_copy { (Kind::Copy, "copy") } else { (Kind::Compute, "astype") };
    let note = trace::of_arrays(py, to.engine(), kind, name);
    let options = PushOptions { note, ..Loop::options(py, to, name) };
    push_elementwise(kernel, &[to], &[Operand::Array(&x.get().inner)], options).map_err(|error| raised(py, error))?;
    Ok(true)
}
