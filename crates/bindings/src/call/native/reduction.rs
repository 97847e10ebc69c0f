//! Reductions along axes, and the steps before and after them: sums, means, variances, norms.

use super::{Axes, axes_of, dtype_of, loop_of, ufunc};
use crate::array::{NDArray, raised};
use crate::call::way::Outline;
use crate::pushes::Loop;
use crate::pushes::memory::{cast_apart, room_beside};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::OnceLock;
use weft_array::{
    Array, DType, Layout, Operand, RowReduction, Scalar, Shape, StridedLoop, cast_loop, push_elementwise, push_reduce,
    recording,
};

/// Elements up to which a reduction casts all of them first; NumPy does so piece by piece.
const CAST: usize = 1 << 16;
/// The figure that a reduction by sums computes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Measure {
    /// The reduction itself.
    Elements,
    Mean,
    Variance,
    /// The root of the variance.
    Deviation,
    /// The root of the sum of squares.
    Norm,
}

impl Measure {
    /// The measure of this name.
    pub(super) fn named(name: &str) -> PyResult<Self> {
        Ok(match name {
            "elements" => Self::Elements,
            "mean" => Self::Mean,
            "variance" => Self::Variance,
            "deviation" => Self::Deviation,
            "norm" => Self::Norm,
            other => return Err(PyValueError::new_err(format!("no reduction measures {other}"))),
        })
    }
}

/// A reduction, and the steps before and after it.
pub(in crate::call) struct Reduction {
    of: Py<Loop>,
    over: Axes,
    /// The reduction of arrays that lie row after row.
    of_rows: OnceLock<RowReduction>,
    casts: Option<StridedLoop>,
    before: Before,
    /// The divisor of the result.
    divide: Option<(Py<Loop>, f64)>,
    root: Option<Py<Loop>>,
}

/// The elements that a reduction takes.
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

impl Reduction {
    pub(super) fn bind(
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
        // Half-precision numbers are summed in single precision.
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
            // Sums of floating-point numbers depend on the ends of NumPy's pieces.
            casts = cast_loop(from, dtype).filter(|_| !dtype.is_floating() && size <= CAST);
            if casts.is_none() {
                return Ok(None);
            }
        }
        let named = |name: &str| loop_of(py, &ufunc(py, name)?, dtype, 3);
        let Some(of) = loop_of(py, of, dtype, 3)? else { return Ok(None) };
        #[allow(clippy::cast_precision_loss)] // NumPy divides by it, too
        let count = over.iter().map(|at| shape[*at]).product::<usize>() as f64;
        let mut made =
            Self { of, over, of_rows: OnceLock::new(), casts, before: Before::Elements, divide: None, root: None };
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
                if count <= correction {
                    return Ok(None); // nothing is left to divide by: the op itself makes the NaN
                }
                made.before = Before::Distances { divide, count, subtract, multiply };
                made.divide = Some((last, count - correction));
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

    /// Pushes all steps. False: nothing was pushed.
    pub(super) fn push(&self, py: Python<'_>, result: &Bound<'_, NDArray>, x: &NDArray) -> PyResult<bool> {
        let (to, from) = (&result.get().inner, &x.inner);
        // A recorded cast would be a call of its own. Squares are added in the order in which NumPy stores them.
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
            (Before::Elements, Some(kernel)) => Some(cast_apart(py, x, kernel, dtype)?),
            (Before::Squares(multiply), _) => {
                let squares = room_beside(py, x, &from.layout().shape, dtype)?;
                elements(multiply.get(), &squares, &[Operand::Array(from), Operand::Array(from)])?;
                Some(squares)
            }
            (Before::Distances { divide, count, subtract, multiply }, _) => {
                let shape = &from.layout().shape;
                let kept: Shape =
                    (0..shape.len()).map(|at| if self.over.contains(&at) { 1 } else { shape[at] }).collect();
                let (middle, off) = (room_beside(py, x, &kept, dtype)?, room_beside(py, x, shape, dtype)?);
                self.reduce(py, &middle, from)?;
                elements(divide.get(), &middle, &[Operand::Array(&middle), number(*count)])?;
                elements(subtract.get(), &off, &[Operand::Array(from), Operand::Array(&middle)])?;
                elements(multiply.get(), &off, &[Operand::Array(&off), Operand::Array(&off)])?;
                Some(off)
            }
        };
        result.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
        self.reduce(py, to, before.as_ref().unwrap_or(from))?;
        if let Some((divide, count)) = &self.divide {
            elements(divide.get(), to, &[Operand::Array(to), number(*count)])?;
        }
        if let Some(root) = &self.root {
            elements(root.get(), to, &[Operand::Array(to)])?;
        }
        Ok(true)
    }

    /// Pushes the reduction itself, over axes that the result may lack.
    fn reduce(&self, py: Python<'_>, to: &Array, from: &Array) -> PyResult<()> {
        let of = self.of.get();
        let options = Loop::options(py, to, of.reduction());
        if let Some(rows) = self.of_rows.get()
            && rows.takes(to, from)
            && !recording::is_open()
        {
            return rows.push(to, from, options).map_err(|error| raised(py, error));
        }
        let layout = to.layout();
        let kept;
        let target = if layout.shape.len() == from.layout().shape.len() {
            to
        } else {
            let item = to.dtype().size().cast_signed();
            let mut rest = layout.shape.iter().copied().zip(layout.strides.iter().copied());
            let each = (0..from.layout().shape.len())
                .map(|at| if self.over.contains(&at) { (1, item) } else { rest.next().unwrap_or((1, item)) });
            let (shape, strides) = each.unzip();
            let layout = Layout { shape, strides, offset: layout.offset };
            kept = Array::on(to.buffer().clone(), layout, to.dtype()).map_err(|error| raised(py, error))?;
            &kept
        };
        if from.is_contiguous() && target.is_contiguous() {
            let rows = RowReduction::new(of.kernel, of.identity, target, from, &self.over);
            let _ = self.of_rows.set(rows.map_err(|error| raised(py, error))?); // a second one is the same
        }
        push_reduce(of.kernel, of.identity, target, from, &self.over, options).map_err(|error| raised(py, error))
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
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
