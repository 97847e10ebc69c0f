//! Ops that the core computes without Python and without being element-wise.
//!
//! A [`Native`] is declared by the op's family; it makes a [`Run`] of the operands, attributes and results that are known of a
//! call. The run is made once for a way, and pushes again and again. It answers "no" where a call takes more than it knows: the op's
//! callable computes that.

use super::kind::Kind;
use super::way::Outline;
use crate::array::operator::scalar;
use crate::array::{NDArray, raised};
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use crate::payloads::trace;
use crate::pushes::{Loop, join, roll, search};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};
use smallvec::SmallVec;
use weft_array::{
    Array, DType, Layout, Operand, Scalar, Shape, StridedLoop, Strides, cast_loop, choose_loop, copy_loop,
    multiply_here, push_elementwise, push_matmul, push_reduce, recording,
};
use weft_engine::PushOptions;
use weft_engine::trace::Kind as Traced;

type Axes = SmallVec<[usize; 4]>;

/// Elements up to which a reduction casts all of them first; NumPy does so piece by piece.
const CAST: usize = 1 << 16;
/// Elements along an axis from which on NumPy's search, which compares many at a time, is worth the GIL.
const LONG: usize = 4096;

/// Powers of ten up to this one are exact in a double.
const EXACT: u32 = 22;

enum Family {
    Reduce(Py<PyAny>, Measure),
    Join { stacked: bool },
    Roll,
    Search { largest: bool },
    Choose,
    Clip,
    Round,
    Multiply,
}

/// What a reduction by sums measures.
#[derive(Clone, Copy, PartialEq)]
enum Measure {
    /// The reduction itself.
    Elements,
    Mean,
    Variance,
    /// The root of the variance.
    Deviation,
    /// The root of the sum of squares.
    Norm,
}

/// How the core computes a family of ops.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct Native(Family);

#[pymethods]
impl Native {
    /// The reduction by a binary ufunc along `axis`; of sums, a ``"mean"``, ``"variance"``, ``"deviation"`` or ``"norm"``, too.
    #[staticmethod]
    #[pyo3(signature = (ufunc, measure="elements"))]
    fn reduce(ufunc: Py<PyAny>, measure: &str) -> PyResult<Self> {
        let measure = match measure {
            "elements" => Measure::Elements,
            "mean" => Measure::Mean,
            "variance" => Measure::Variance,
            "deviation" => Measure::Deviation,
            "norm" => Measure::Norm,
            other => return Err(PyValueError::new_err(format!("no reduction measures {other}"))),
        };
        Ok(Self(Family::Reduce(ufunc, measure)))
    }

    /// All operands end to end along `axis`, or each at an index of that new axis.
    #[staticmethod]
    fn join(stacked: bool) -> Self {
        Self(Family::Join { stacked })
    }

    /// The operand's elements moved by `shift` along `axes`.
    #[staticmethod]
    fn roll() -> Self {
        Self(Family::Roll)
    }

    /// The places of the largest or smallest elements along `axis`.
    #[staticmethod]
    fn search(largest: bool) -> Self {
        Self(Family::Search { largest })
    }

    /// Elements of the second operand where the first is true, of the third elsewhere.
    #[staticmethod]
    fn choose() -> Self {
        Self(Family::Choose)
    }

    /// The first operand's elements, no smaller than the second's and no larger than the third's.
    #[staticmethod]
    fn clip() -> Self {
        Self(Family::Clip)
    }

    /// The operand's elements rounded to so many `decimals`.
    #[staticmethod]
    fn round() -> Self {
        Self(Family::Round)
    }

    /// The product of two matrices, or stacks of them, of which vectors are those with one row or column.
    #[staticmethod]
    fn multiply() -> Self {
        Self(Family::Multiply)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.0 {
            Family::Reduce(ufunc, _) => visit.call(ufunc),
            _ => Ok(()),
        }
    }
}

/// A ready run of an op.
pub(super) enum Run {
    Reduce(Box<Reduction>),
    Join {
        axis: usize,
        stacked: bool,
    },
    Roll {
        moves: Vec<(usize, isize)>,
        is_flat: bool,
    },
    Search {
        axis: Option<usize>,
        largest: bool,
    },
    Choose {
        dtype: DType,
    },
    Clip {
        lower: Py<Loop>,
        upper: Py<Loop>,
    },
    /// The loops of the steps, and the power of ten for the first and the last one.
    Round {
        steps: SmallVec<[Py<Loop>; 3]>,
        power: f64,
    },
    Multiply {
        of: Py<Loop>,
    },
}

/// A reduction, and the steps before and after it.
pub(super) struct Reduction {
    of: Py<Loop>,
    over: Axes,
    casts: Option<StridedLoop>,
    before: Before,
    /// The number by which the result is divided.
    divide: Option<(Py<Loop>, f64)>,
    root: Option<Py<Loop>>,
}

/// What a reduction is of.
enum Before {
    Elements,
    /// Squares, by this loop.
    Squares(Py<Loop>),
    /// Squares of the distances from the mean, by the loops that divide by the count, subtract and multiply.
    Distances {
        divide: Py<Loop>,
        count: f64,
        subtract: Py<Loop>,
        multiply: Py<Loop>,
    },
}

/// The loop of a ufunc all of whose operands and results are of a dtype.
fn loop_of(py: Python<'_>, ufunc: &Bound<'_, PyAny>, dtype: DType, operands: usize) -> PyResult<Option<Py<Loop>>> {
    let dtype = dtypes::to_python(py, dtype)?.into_bound(py);
    let all = PyTuple::new(py, vec![dtype; operands])?;
    Loop::of(ufunc, &all)?.map(|found| Py::new(py, found)).transpose()
}

fn ufunc<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "numpy"))?.getattr(name)
}

/// An axis counted from the front.
fn axis_of(axis: &Bound<'_, PyAny>, count: usize) -> Option<usize> {
    let index = axis.extract::<isize>().ok()?;
    let at = if index < 0 { index.wrapping_add_unsigned(count) } else { index };
    usize::try_from(at).ok().filter(|at| *at < count)
}

fn axes_of(given: &Bound<'_, PyAny>, count: usize) -> Option<Axes> {
    if given.is_none() {
        return Some((0..count).collect());
    }
    match given.cast::<PyTuple>() {
        Ok(several) => several.iter().map(|each| axis_of(&each, count)).collect(),
        Err(_) => axis_of(given, count).map(|at| SmallVec::from_slice(&[at])),
    }
}

/// The dtype of an operand that is an array.
fn dtype_of(operand: &Outline) -> Option<DType> {
    match operand.0 {
        Kind::Array(dtype) => Some(dtype),
        _ => None,
    }
}

impl Native {
    /// The run of a call; None where the op's callable is to compute it.
    pub(super) fn bind(
        &self,
        py: Python<'_>,
        operands: &[Outline],
        attributes: &Bound<'_, PyDict>,
        results: &[(Shape, DType)],
    ) -> PyResult<Option<Run>> {
        let ([(_, dtype)], Some((_, first))) = (results, operands.first()) else { return Ok(None) };
        let dtype = *dtype;
        let attribute = |name: &str| attributes.get_item(name).map(|found| found.filter(|found| !found.is_none()));
        let nothing = py.None().into_bound(py);
        let along = attribute("axis")?.unwrap_or_else(|| nothing.clone());
        match &self.0 {
            Family::Reduce(of, measure) => {
                let reduction = Reduction::bind(py, (of.bind(py), *measure), operands, attributes, &results[0])?;
                Ok(reduction.map(|reduction| Run::Reduce(Box::new(reduction))))
            }
            Family::Join { stacked } => {
                Ok(axis_of(&along, results[0].0.len()).map(|axis| Run::Join { axis, stacked: *stacked }))
            }
            Family::Roll => {
                let Some(shift) = attribute("shift")? else { return Ok(None) };
                let Ok(shifts) = shift.extract::<Vec<isize>>() else { return Ok(None) };
                let Some(over) = attribute("axes")? else {
                    let all = shifts.iter().try_fold(0_isize, |all, shift| all.checked_add(*shift));
                    return Ok(all.map(|shift| Run::Roll { moves: vec![(0, shift)], is_flat: true }));
                };
                let Some(over) = axes_of(&over, first.len()) else { return Ok(None) };
                let moves: Vec<_> = match (shifts.as_slice(), over.as_slice()) {
                    ([shift], all) => all.iter().map(|at| (*at, *shift)).collect(),
                    (all, [at]) => all.iter().map(|shift| (*at, *shift)).collect(),
                    (by, all) => all.iter().copied().zip(by.iter().copied()).collect(),
                };
                Ok(Some(Run::Roll { moves, is_flat: false }))
            }
            Family::Search { largest } => {
                let keeps = attribute("keepdims")?.is_some_and(|keeps| keeps.is_truthy().unwrap_or(true));
                let size: usize = first.iter().product();
                let at = if along.is_none() { None } else { axis_of(&along, first.len()) };
                let length = at.map_or(size, |at| first[at]);
                let known = !keeps && size > 0 && length <= LONG && (along.is_none() || at.is_some());
                Ok(known.then_some(Run::Search { axis: at, largest: *largest }))
            }
            Family::Choose => {
                let is_mask = operands.len() == 3 && dtype_of(&operands[0]) == Some(DType::Bool);
                let casts = |operand: &Outline| {
                    dtype_of(operand).is_none_or(|of| of == dtype || cast_loop(of, dtype).is_some())
                };
                Ok((is_mask && operands[1..].iter().all(casts)).then_some(Run::Choose { dtype }))
            }
            Family::Clip => {
                let typed = operands.len() == 3 && operands.iter().filter_map(dtype_of).all(|of| of == dtype);
                if !typed {
                    return Ok(None);
                }
                let lower = loop_of(py, &ufunc(py, "maximum")?, dtype, 3)?;
                let upper = loop_of(py, &ufunc(py, "minimum")?, dtype, 3)?;
                Ok(lower.zip(upper).map(|(lower, upper)| Run::Clip { lower, upper }))
            }
            Family::Round => {
                let decimals = attribute("decimals")?.map_or(Ok(0), |decimals| decimals.extract::<i32>());
                let [operand] = operands else { return Ok(None) };
                let typed = dtype_of(operand) == Some(dtype) && matches!(dtype, DType::Float32 | DType::Float64);
                let Some(decimals) = decimals.ok().filter(|decimals| typed && decimals.unsigned_abs() <= EXACT) else {
                    return Ok(None);
                };
                let steps: &[(&str, usize)] = match decimals {
                    0 => &[("rint", 2)],
                    1.. => &[("multiply", 3), ("rint", 2), ("divide", 3)],
                    _ => &[("divide", 3), ("rint", 2), ("multiply", 3)],
                };
                let loops = steps.iter().map(|(name, operands)| loop_of(py, &ufunc(py, name)?, dtype, *operands));
                let loops = loops.collect::<PyResult<Option<SmallVec<_>>>>()?;
                Ok(loops.map(|steps| Run::Round { steps, power: 10.0_f64.powi(decimals.abs()) }))
            }
            Family::Multiply => {
                let [left, right] = operands else { return Ok(None) };
                let full = !left.1.contains(&0) && !right.1.contains(&0);
                if !full || dtype_of(left) != Some(dtype) || dtype_of(right) != Some(dtype) {
                    return Ok(None);
                }
                Ok(loop_of(py, &ufunc(py, "matmul")?, dtype, 3)?.map(|of| Run::Multiply { of }))
            }
        }
    }
}

impl Reduction {
    fn bind(
        py: Python<'_>,
        (of, measure): (&Bound<'_, PyAny>, Measure),
        operands: &[Outline],
        attributes: &Bound<'_, PyDict>,
        result: &(Shape, DType),
    ) -> PyResult<Option<Self>> {
        let attribute = |name: &str| attributes.get_item(name).map(|found| found.filter(|found| !found.is_none()));
        let ([operand], None, dtype) = (operands, attribute("initial")?, result.1) else { return Ok(None) };
        let (shape, axis) = (&operand.1, attribute("axis")?);
        let over = axis.map_or_else(|| Some((0..shape.len()).collect()), |axis| axes_of(&axis, shape.len()));
        let Some(over) = over.filter(|over: &Axes| !over.is_empty()) else { return Ok(None) };
        let Some(from) = dtype_of(operand) else { return Ok(None) };
        let size: usize = shape.iter().product();
        // Sums of half-precision numbers are of single ones.
        let takes = match measure {
            Measure::Elements => true,
            Measure::Mean => dtype.is_floating() && dtype != DType::Float16,
            _ => from == dtype && matches!(dtype, DType::Float32 | DType::Float64),
        };
        if size == 0 || !takes {
            return Ok(None);
        }
        let mut casts = None;
        if from != dtype {
            // Sums of floating-point numbers depend on where the pieces end.
            casts = cast_loop(from, dtype).filter(|_| !dtype.is_floating() && size <= CAST);
            if casts.is_none() {
                return Ok(None);
            }
        }
        let named = |name: &str| loop_of(py, &ufunc(py, name)?, dtype, 3);
        let Some(of) = loop_of(py, of, dtype, 3)? else { return Ok(None) };
        #[allow(clippy::cast_precision_loss)] // as NumPy divides by it
        let count = over.iter().map(|at| shape[*at]).product::<usize>() as f64;
        let mut made = Self { of, over, casts, before: Before::Elements, divide: None, root: None };
        match measure {
            Measure::Elements => {}
            Measure::Mean => made.divide = named("true_divide")?.map(|divide| (divide, count)),
            Measure::Norm => {
                let is_usual = attribute("ord")?.is_none_or(|order| order.eq(2).unwrap_or(false));
                let known = is_usual && (made.over.len() == 1 || made.over.len() == shape.len());
                let Some(multiply) = named("multiply")?.filter(|_| known) else { return Ok(None) };
                made.before = Before::Squares(multiply);
            }
            Measure::Variance | Measure::Deviation => {
                let correction = attribute("correction")?.map_or(Ok(0.0), |correction| correction.extract::<f64>());
                let loops = (named("true_divide")?, named("subtract")?, named("multiply")?, named("true_divide")?);
                let ((Some(divide), Some(subtract), Some(multiply), Some(last)), Ok(correction)) = (loops, correction)
                else {
                    return Ok(None);
                };
                made.before = Before::Distances { divide, count, subtract, multiply };
                // Where nothing is left after the correction the standard asks for NaN; NumPy gives inf there.
                made.divide = Some((last, if count > correction { count - correction } else { f64::NAN }));
            }
        }
        if measure == Measure::Mean && made.divide.is_none() {
            return Ok(None);
        }
        if matches!(measure, Measure::Norm | Measure::Deviation) {
            made.root = loop_of(py, &ufunc(py, "sqrt")?, dtype, 2)?;
            if made.root.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(made))
    }

    /// Pushes all steps. Answers whether it has.
    fn push(&self, py: Python<'_>, result: &Bound<'_, NDArray>, x: &NDArray) -> PyResult<bool> {
        let (to, from) = (&result.get().inner, &x.inner);
        // A recorded cast would be a call of its own. Squares are added up in the order in which NumPy's would lie.
        let in_order = matches!(self.before, Before::Elements) || from.is_contiguous();
        if !in_order || self.casts.is_some() && recording::is_open() {
            return Ok(false);
        }
        let dtype = to.dtype();
        let elements = |of: &Loop, to: &Array, operands: &[Operand<'_>]| {
            push_elementwise(of.kernel, &[to], operands, Loop::options(py, to, &of.name))
                .map_err(|error| raised(py, error))
        };
        let number = |value: f64| Operand::Scalar(Scalar::Float(value), dtype);
        let before = match (&self.before, self.casts) {
            (Before::Elements, None) => None,
            (Before::Elements, Some(kernel)) => Some(cast(py, x, kernel, dtype)?),
            (Before::Squares(multiply), _) => {
                let squares = between(py, x, &from.layout().shape, dtype)?;
                elements(multiply.get(), &squares, &[Operand::Array(from), Operand::Array(from)])?;
                Some(squares)
            }
            (Before::Distances { divide, count, subtract, multiply }, _) => {
                let shape = &from.layout().shape;
                let kept: Shape =
                    (0..shape.len()).map(|at| if self.over.contains(&at) { 1 } else { shape[at] }).collect();
                let (middle, off) = (between(py, x, &kept, dtype)?, between(py, x, shape, dtype)?);
                reduce(py, self.of.get(), &middle, from, &self.over)?;
                elements(divide.get(), &middle, &[Operand::Array(&middle), number(*count)])?;
                elements(subtract.get(), &off, &[Operand::Array(from), Operand::Array(&middle)])?;
                elements(multiply.get(), &off, &[Operand::Array(&off), Operand::Array(&off)])?;
                Some(off)
            }
        };
        result.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
        reduce(py, self.of.get(), to, before.as_ref().unwrap_or(from), &self.over)?;
        if let Some((divide, count)) = &self.divide {
            elements(divide.get(), to, &[Operand::Array(to), number(*count)])?;
        }
        if let Some(root) = &self.root {
            elements(root.get(), to, &[Operand::Array(to)])?;
        }
        Ok(true)
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.of)?;
        match &self.before {
            Before::Elements => {}
            Before::Squares(multiply) => visit.call(multiply)?,
            Before::Distances { divide, subtract, multiply, .. } => {
                visit.call(divide)?;
                visit.call(subtract)?;
                visit.call(multiply)?;
            }
        }
        visit.call(self.divide.as_ref().map(|(divide, _)| divide))?;
        visit.call(&self.root)
    }
}

/// An operand of a run.
enum Taken<'a, 'py> {
    Array(&'a Bound<'py, NDArray>),
    Number(Scalar),
}

impl<'a, 'py> Taken<'a, 'py> {
    /// An array, or a number as an element of a dtype; None if it does not fit.
    fn of(operand: &'a Bound<'py, PyAny>, dtype: DType) -> Option<Self> {
        match operand.cast::<NDArray>() {
            Ok(array) => Some(Self::Array(array)),
            Err(_) => scalar(operand, dtype).map(Self::Number),
        }
    }

    /// The same; a real number out of range becomes infinite, and an integer that is loses bits if it `wraps`, or is refused.
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

/// An end of an interval; None for an integer past all elements of the dtype, which leaves the interval open.
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

/// A new array for what lies between two steps.
fn between(py: Python<'_>, beside: &NDArray, shape: &[usize], dtype: DType) -> PyResult<Array> {
    let engine = beside.owner().get();
    let array = Array::empty(&engine.inner, shape, dtype).map_err(|error| raised(py, error))?;
    engine.wait_for_room(py, array.bytes() as u64)?;
    Ok(array)
}

/// An array's elements in a new array of a dtype.
fn cast(py: Python<'_>, x: &NDArray, kernel: StridedLoop, dtype: DType) -> PyResult<Array> {
    let made = between(py, x, &x.inner.layout().shape, dtype)?;
    let note = trace::of_arrays(py, made.engine(), Traced::Compute, "astype");
    let options = PushOptions { note, ..PushOptions::default() };
    push_elementwise(kernel, &[&made], &[Operand::Array(&x.inner)], options).map_err(|error| raised(py, error))?;
    Ok(made)
}

impl Run {
    /// Pushes the op into a result that has its shape and dtype. Answers whether it has.
    pub(super) fn push(
        &self,
        py: Python<'_>,
        results: &[Bound<'_, NDArray>],
        operands: &[Bound<'_, PyAny>],
    ) -> PyResult<bool> {
        let [result] = results else { return Ok(false) };
        let to = &result.get().inner;
        let is_elsewhere = |operand: &Bound<'_, PyAny>| {
            operand.cast::<NDArray>().is_ok_and(|array| array.get().inner.buffer().is_elsewhere())
        };
        if to.buffer().is_elsewhere() || operands.iter().any(is_elsewhere) {
            return Ok(false);
        }
        match self {
            Self::Reduce(reduction) => match operands[0].cast::<NDArray>() {
                Ok(x) => reduction.push(py, result, x.get()),
                Err(_) => Ok(false),
            },
            Self::Join { axis, stacked } => join(result, operands, *axis, *stacked),
            Self::Roll { moves, is_flat } => {
                let Ok(x) = operands[0].cast::<NDArray>() else { return Ok(false) };
                // A recorded call is one step.
                if recording::is_open() || *is_flat && !(to.is_contiguous() && x.get().inner.is_contiguous()) {
                    return Ok(false);
                }
                if !is_flat {
                    return roll(result, &x.get().inner, to, moves);
                }
                let line = |array: &Array| {
                    let item = array.dtype().size().cast_signed();
                    let (shape, strides) = (Shape::from_elem(array.layout().size(), 1), Strides::from_elem(item, 1));
                    let layout = Layout { shape, strides, offset: array.layout().offset };
                    Array::on(array.buffer().clone(), layout, array.dtype()).map_err(|error| raised(py, error))
                };
                roll(result, &line(&x.get().inner)?, &line(to)?, moves)
            }
            Self::Search { axis, largest } => match operands[0].cast::<NDArray>() {
                Ok(x) => search(result, x.get(), *axis, *largest),
                Err(_) => Ok(false),
            },
            Self::Choose { dtype } => choose(py, *dtype, result, operands),
            Self::Clip { lower, upper } => {
                let dtype = to.dtype();
                let [x, low, high] = operands else { return Ok(false) };
                let Some(x) = Taken::converted(x, dtype, false)? else { return Ok(false) };
                let limits = [(lower, end(low, dtype, false)?), (upper, end(high, dtype, true)?)];
                result.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
                let mut from = x.operand(dtype);
                for (of, limit) in &limits {
                    let Some(limit) = limit else { continue };
                    let operands = [from, limit.operand(dtype)];
                    push_elementwise(of.get().kernel, &[to], &operands, Loop::options(py, to, &of.get().name))
                        .map_err(|error| raised(py, error))?;
                    from = Operand::Array(to);
                }
                if limits.iter().all(|(_, limit)| limit.is_none()) {
                    push_elementwise(copy_loop(dtype), &[to], &[from], Loop::options(py, to, "copy"))
                        .map_err(|error| raised(py, error))?;
                }
                Ok(true)
            }
            Self::Round { steps, power } => {
                let Ok(x) = operands[0].cast::<NDArray>() else { return Ok(false) };
                result.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
                let mut from = &x.get().inner;
                for of in steps {
                    let of = of.get();
                    let operands = [Operand::Array(from), Operand::Scalar(Scalar::Float(*power), to.dtype())];
                    let operands = &operands[..of.kernel.inputs()];
                    push_elementwise(of.kernel, &[to], operands, Loop::options(py, to, &of.name))
                        .map_err(|error| raised(py, error))?;
                    from = to;
                }
                Ok(true)
            }
            Self::Multiply { of } => multiply(py, of.get(), result, operands),
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Reduce(reduction) => reduction.traverse(visit),
            Self::Clip { lower, upper } => visit.call(lower).and_then(|()| visit.call(upper)),
            Self::Round { steps, .. } => steps.iter().try_for_each(|of| visit.call(of)),
            Self::Multiply { of } => visit.call(of),
            _ => Ok(()),
        }
    }
}

/// Pushes a reduction over axes that the result may lack.
fn reduce(py: Python<'_>, of: &Loop, to: &Array, from: &Array, over: &Axes) -> PyResult<()> {
    let layout = to.layout();
    let kept;
    let target = if layout.shape.len() == from.layout().shape.len() {
        to
    } else {
        let item = to.dtype().size().cast_signed();
        let mut rest = layout.shape.iter().copied().zip(layout.strides.iter().copied());
        let each = (0..from.layout().shape.len())
            .map(|at| if over.contains(&at) { (1, item) } else { rest.next().unwrap_or((1, item)) });
        let (shape, strides) = each.unzip();
        let layout = Layout { shape, strides, offset: layout.offset };
        kept = Array::on(to.buffer().clone(), layout, to.dtype()).map_err(|error| raised(py, error))?;
        &kept
    };
    push_reduce(of.kernel, of.identity, target, from, over, Loop::options(py, target, of.reduction()))
        .map_err(|error| raised(py, error))
}

/// Pushes the loop that chooses, over elements that are cast first where need be.
fn choose(py: Python<'_>, dtype: DType, result: &Bound<'_, NDArray>, operands: &[Bound<'_, PyAny>]) -> PyResult<bool> {
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
            (Some(kernel), Taken::Array(array)) => cast(py, array.get(), kernel, dtype).map(Some),
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

/// Pushes a product; one of small matrices that are there is computed at this moment.
fn multiply(py: Python<'_>, of: &Loop, result: &Bound<'_, NDArray>, operands: &[Bound<'_, PyAny>]) -> PyResult<bool> {
    let to = &result.get().inner;
    let [left, right] = operands else { return Ok(false) };
    let (Ok(left), Ok(right)) = (left.cast::<NDArray>(), right.cast::<NDArray>()) else { return Ok(false) };
    let (left, right) = (&left.get().inner, &right.get().inner);
    result.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
    let ranks = [left, right].map(|array| array.layout().shape.len());
    if ranks.iter().all(|rank| *rank <= 2)
        && multiply_here(of.kernel, to, left, right, Loop::options(py, to, &of.name))
            .map_err(|error| raised(py, error))?
    {
        return Ok(true);
    }
    let matrix = |array: &Array, at: &[usize]| {
        let (mut layout, item) = (array.layout().clone(), array.dtype().size().cast_signed());
        for at in at {
            layout.shape.insert(*at, 1);
            layout.strides.insert(*at, item);
        }
        Array::on(array.buffer().clone(), layout, array.dtype()).map_err(|error| raised(py, error))
    };
    // A vector on the left is a row, one on the right a column; of what is missing in the product, the column is last.
    let (row, column): (&[usize], &[usize]) = (&[0][..usize::from(ranks[0] == 1)], &[1][..usize::from(ranks[1] == 1)]);
    let last = to.layout().shape.len();
    let mut missing: SmallVec<[usize; 2]> = SmallVec::new();
    if !column.is_empty() {
        missing.push(last);
    }
    if !row.is_empty() {
        missing.push((last + column.len()).saturating_sub(1));
    }
    let (left, right, target) = (matrix(left, row)?, matrix(right, column)?, matrix(to, &missing)?);
    let options = PushOptions { bytes: to.bytes() as u64, ..Loop::options(py, to, &of.name) };
    push_matmul(of.kernel, &target, &left, &right, options).map_err(|error| raised(py, error))?;
    Ok(true)
}
