//! How an op without a ufunc runs for operands of some shapes and kinds, with some attributes.

use super::callee::{Callee, carrier};
use super::kind::Kind;
use super::native::Run;
use super::table::Table;
use super::value::{Values, are, values};
use crate::array::NDArray;
use crate::array::moves::elsewhere;
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use weft_array::{DType, Shape};

/// Ways that an op remembers at most.
const WAYS: usize = 256;

/// An operand's kind and shape.
pub(super) type Outline = (Kind, Shape);
pub(super) type Outlines = SmallVec<[Outline; 3]>;

/// What an op's rule has said of a call, and the core's run for it, if there is one.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct Way {
    operands: Outlines,
    /// As they were given; None for a way that cannot be remembered.
    given: Option<Values>,
    /// In the form that rules know.
    attributes: Py<PyDict>,
    avals: Py<PyTuple>,
    pub(super) results: SmallVec<[(Shape, DType); 1]>,
    pub(super) run: Option<Run>,
}

#[pymethods]
impl Way {
    /// The attributes in the form that rules know: a dict of one's own.
    #[getter]
    pub(super) fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.attributes.bind(py).copy()
    }

    /// The results' avals.
    #[getter]
    fn avals(&self, py: Python<'_>) -> Py<PyTuple> {
        self.avals.clone_ref(py)
    }

    /// Pushes the op without Python, into `results`. Answers whether it has.
    fn push(&self, results: &Bound<'_, PyTuple>, operands: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let Some(run) = &self.run else { return Ok(false) };
        let mut targets: SmallVec<[Bound<'_, NDArray>; 1]> = SmallVec::new();
        for result in results.iter() {
            targets.push(crate::array::moves::taken(result)?);
        }
        let operands: SmallVec<[Bound<'_, PyAny>; 4]> =
            operands.iter().map(|each| elsewhere(&each).unwrap_or(each)).collect();
        let pushed = run.push(results.py(), &targets, &operands)?;
        if pushed {
            for target in &targets {
                crate::hearing::record::wrote(results.py(), target.get());
            }
        }
        Ok(pushed)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.attributes)?;
        visit.call(&self.avals)?;
        self.run.as_ref().map_or(Ok(()), |run| run.traverse(&visit))
    }
}

impl Way {
    pub(super) fn own_attributes(&self) -> &Py<PyDict> {
        &self.attributes
    }
}

/// The ways of an op, by their operands.
#[derive(Default)]
pub(super) struct Ways {
    by_operands: Table<Vec<Py<Way>>>,
    count: usize,
}

impl Ways {
    #[inline]
    fn find(&self, py: Python<'_>, operands: &[Outline], attributes: Option<&Bound<'_, PyDict>>) -> Option<Py<Way>> {
        let alike = self.by_operands.get(&hash(operands))?;
        let is = |way: &&Py<Way>| {
            let way = way.get();
            way.operands.as_slice() == operands && way.given.as_ref().is_some_and(|given| are(attributes, given))
        };
        alike.iter().find(is).map(|way| way.clone_ref(py))
    }

    pub(super) fn insert(&mut self, way: Py<Way>, _py: Python<'_>) {
        if self.count >= WAYS {
            *self = Self::default();
        }
        self.count += 1;
        self.by_operands.entry(hash(&way.get().operands)).or_default().push(way);
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.by_operands.values().flatten().try_for_each(|way| visit.call(way))
    }
}

/// Mixes kinds and lengths, as Firefox's hash does.
fn hash(operands: &[Outline]) -> u64 {
    let mix = |hash: u64, part: u64| (hash.rotate_left(5) ^ part).wrapping_mul(0x517c_c1b7_2722_0a95);
    operands.iter().fold(0, |hash, (kind, shape)| {
        shape.iter().fold(mix(hash, kind.number() | 1 << 32), |hash, length| mix(hash, *length as u64))
    })
}

/// Kinds and shapes of operands; None for what has to become an array first.
#[inline]
pub(super) fn outlines(operands: &[Bound<'_, PyAny>]) -> Option<Outlines> {
    let each = |operand: &Bound<'_, PyAny>| {
        let kind = Kind::of(operand)?;
        let shape = operand.cast::<NDArray>().map(|array| array.get().inner.layout().shape.clone());
        Some((kind, shape.unwrap_or_default()))
    };
    operands.iter().map(each).collect()
}

/// The same of arrays wherever they are.
fn outlines_anywhere(operands: &[Bound<'_, PyAny>]) -> Option<Outlines> {
    let each = |operand: &Bound<'_, PyAny>| match operand.cast::<NDArray>() {
        Ok(array) => {
            Some(array.get().at(operand.py(), |own| (Kind::Array(own.inner.dtype()), own.inner.layout().shape.clone())))
        }
        Err(_) => Some((Kind::of(operand)?, Shape::new())),
    };
    operands.iter().map(each).collect()
}

/// The way of a call: remembered, or by the op's rule.
pub(super) fn find(
    op: &Bound<'_, Callee>,
    operands: &[Bound<'_, PyAny>],
    outlines: Outlines,
    attributes: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<Way>> {
    let py = op.py();
    let generation = {
        let facts = op.get().facts();
        if let Some(way) = facts.ways.find(py, &outlines, attributes) {
            return Ok(way);
        }
        facts.generation
    };
    let given = attributes.map_or_else(|| PyDict::new(py), Bound::clone);
    let asked = carrier(py)?.ask.bind(py).call1((op, PyTuple::new(py, operands)?, given))?;
    let (normal, avals) = asked.extract::<(Bound<'_, PyDict>, Bound<'_, PyTuple>)>()?;
    let mut results = SmallVec::new();
    for aval in avals.iter() {
        let shape: SmallVec<_> = aval.getattr(intern!(py, "shape"))?.extract::<Vec<usize>>()?.into();
        results.push((shape, dtypes::from_python(&aval.getattr(intern!(py, "dtype"))?)?));
    }
    let native = op.get().facts().native.as_ref().map(|native| native.clone_ref(py));
    let run = match native {
        Some(native) => native.get().bind(py, &outlines, &normal, &results)?,
        None => None,
    };
    let (given, attributes, avals) = (values(attributes), normal.unbind(), avals.unbind());
    let is_kept = given.is_some();
    let way = Py::new(py, Way { operands: outlines, given, attributes, avals, results, run })?;
    if is_kept {
        op.get().remember(&way, py, generation);
    }
    Ok(way)
}

/// The way of a call over arrays and numbers of Python's.
#[pyfunction]
pub(crate) fn way_of(
    op: &Bound<'_, Callee>,
    operands: &Bound<'_, PyTuple>,
    attributes: &Bound<'_, PyDict>,
) -> PyResult<Py<Way>> {
    let operands: SmallVec<[Bound<'_, PyAny>; 4]> = operands.iter().collect();
    let Some(outlines) = outlines_anywhere(&operands) else {
        return Err(errors::argument_type(op.py(), "an op is called over arrays and numbers"));
    };
    find(op, &operands, outlines, Some(attributes))
}
