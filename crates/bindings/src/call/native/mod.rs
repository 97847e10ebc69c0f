//! Ops that the core computes without Python, besides the element-wise ones.
//!
//! An op's family declares a [`Native`]. It makes a [`Run`] from the known operands, attributes and results of a call,
//! once for a way; the run is pushed again and again. It answers "no" to a call that is beyond it, and the op's
//! callable computes that call.

mod elements;
mod product;
mod reduction;

use super::kind::Kind;
use super::way::Outline;
use crate::array::{NDArray, raised};
use crate::interpreter::dtypes;
use crate::pushes::{Kernel, Loop, join, roll, search};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use reduction::{Measure, Reduction};
use smallvec::SmallVec;
use weft_array::{Array, DType, Layout, Shape, StridedLoop, Strides, cast_loop, copy_loop, recording};

type Axes = SmallVec<[usize; 4]>;

/// Elements along an axis from which on NumPy's search is worth the GIL, because it compares many at a time.
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
    Cast,
    Make(Py<PyAny>),
}

/// The core's computation of a family of ops.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct Native(Family);

#[pymethods]
impl Native {
    /// The reduction by a binary ufunc along `axis`; for sums also a ``"mean"``, ``"variance"``, ``"deviation"`` or
    /// ``"norm"``.
    #[staticmethod]
    #[pyo3(signature = (ufunc, measure="elements"))]
    fn reduce(ufunc: Py<PyAny>, measure: &str) -> PyResult<Self> {
        Ok(Self(Family::Reduce(ufunc, Measure::named(measure)?)))
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

    /// The product of two matrices or of stacks of them; a vector is a matrix with one row or column.
    #[staticmethod]
    fn multiply() -> Self {
        Self(Family::Multiply)
    }

    /// The operand's elements, cast to the result's dtype.
    #[staticmethod]
    fn cast() -> Self {
        Self(Family::Cast)
    }

    /// The kernel that ``make(results, operands, **attributes)`` returns: over the first operands, a loop, a loop with
    /// a tuple of the numbers after its operands, or None. It is given the avals of the results and of the operands,
    /// None for a number.
    #[staticmethod]
    fn by(make: Py<PyAny>) -> Self {
        Self(Family::Make(make))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.0 {
            Family::Reduce(ufunc, _) => visit.call(ufunc),
            Family::Make(make) => visit.call(make),
            _ => Ok(()),
        }
    }
}

/// A run of an op, ready to be pushed.
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
    Cast {
        kernel: StridedLoop,
        is_copy: bool,
    },
    Kernel(Py<Kernel>),
    Each {
        of: Py<Loop>,
        numbers: SmallVec<[f64; 2]>,
    },
}

/// New arrays, or the targets that a call names.
pub(super) type Results<'py> = SmallVec<[Bound<'py, NDArray>; 2]>;

/// The loop of a ufunc with one dtype for all operands and results.
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
    /// The run of a call; None if the op's callable has to compute it.
    pub(super) fn bind(
        &self,
        py: Python<'_>,
        operands: &[Outline],
        attributes: &Bound<'_, PyDict>,
        (avals, results): (&Bound<'_, PyTuple>, &[(Shape, DType)]),
    ) -> PyResult<Option<Run>> {
        if let Family::Make(make) = &self.0 {
            return made(make.bind(py), operands, attributes, (avals, results));
        }
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
            Family::Cast => {
                let [operand] = operands else { return Ok(None) };
                let from = dtype_of(operand);
                let is_copy = from == Some(dtype);
                let kernel =
                    if is_copy { Some(copy_loop(dtype)) } else { from.and_then(|from| cast_loop(from, dtype)) };
                Ok(kernel.map(|kernel| Run::Cast { kernel, is_copy }))
            }
            Family::Make(_) => Ok(None), // handled above
        }
    }
}

/// The run in an answer of the op's family.
fn made(
    make: &Bound<'_, PyAny>,
    operands: &[Outline],
    attributes: &Bound<'_, PyDict>,
    (avals, results): (&Bound<'_, PyTuple>, &[(Shape, DType)]),
) -> PyResult<Option<Run>> {
    let py = make.py();
    let class = py.import(intern!(py, "weft._registry.avals"))?.getattr(intern!(py, "Aval"))?;
    let aval = |(kind, shape): &Outline| match kind {
        Kind::Array(dtype) => class.call1((PyTuple::new(py, shape)?, dtypes::to_python(py, *dtype)?)),
        _ => Ok(py.None().into_bound(py)),
    };
    let given = PyTuple::new(py, operands.iter().map(aval).collect::<PyResult<Vec<_>>>()?)?;
    let answer = make.call((avals, given), Some(attributes))?;
    let known: Option<SmallVec<[(DType, usize); 6]>> = operands
        .iter()
        .map(|operand| Some((dtype_of(operand)?, operand.1.iter().product())))
        .chain(results.iter().map(|(shape, dtype)| Some((*dtype, shape.iter().product()))))
        .collect();
    if let Ok(kernel) = answer.cast::<Kernel>() {
        let fits = known.is_some_and(|known| kernel.get().takes(&known[..operands.len()], &known[operands.len()..]));
        return Ok(fits.then(|| Run::Kernel(kernel.clone().unbind())));
    }
    let (of, numbers) = match answer.cast::<PyTuple>() {
        Ok(both) => (both.get_item(0)?, both.get_item(1)?.extract::<Vec<f64>>()?.into()),
        Err(_) => (answer, SmallVec::new()),
    };
    let Ok(of) = of.cast_into::<Loop>() else { return Ok(None) };
    let dtypes = &of.get().dtypes;
    let fits = known.is_some_and(|known| {
        let inputs = operands.len() + numbers.len();
        dtypes.len() == inputs + results.len()
            && dtypes[..operands.len()].iter().chain(&dtypes[inputs..]).zip(&known).all(|(of, known)| *of == known.0)
    });
    Ok(fits.then(|| Run::Each { of: of.unbind(), numbers }))
}

impl Run {
    /// Pushes the op over operands on the host into a result of its shape and dtype there. False: nothing was pushed.
    pub(super) fn push(
        &self,
        py: Python<'_>,
        results: &[Bound<'_, NDArray>],
        operands: &[Bound<'_, PyAny>],
    ) -> PyResult<bool> {
        if let Self::Kernel(kernel) = self {
            return kernel.get().push_over(py, results, operands);
        }
        let [result] = results else { return Ok(false) };
        let to = &result.get().inner;
        match self {
            Self::Kernel(_) => Ok(false), // handled above
            Self::Cast { kernel, is_copy } => elements::cast(py, *kernel, *is_copy, result, operands),
            Self::Each { of, numbers } => elements::each(py, of.get(), numbers, result, operands),
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
            Self::Choose { dtype } => elements::choose(py, *dtype, result, operands),
            Self::Clip { lower, upper } => elements::clip(py, [lower.get(), upper.get()], result, operands),
            Self::Round { steps, power } => elements::round(py, steps, *power, result, operands),
            Self::Multiply { of } => product::multiply(py, of.get(), result, operands),
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Reduce(reduction) => reduction.traverse(visit),
            Self::Clip { lower, upper } => visit.call(lower).and_then(|()| visit.call(upper)),
            Self::Round { steps, .. } => steps.iter().try_for_each(|of| visit.call(of)),
            Self::Multiply { of } | Self::Each { of, .. } => visit.call(of),
            Self::Kernel(kernel) => visit.call(kernel),
            _ => Ok(()),
        }
    }
}
