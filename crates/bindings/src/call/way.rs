//! How an op without a ufunc runs for operands of some shapes and kinds, with some attributes.

use super::callee::{Callee, carrier};
use super::entry::{Named, dictionary};
use super::kind::{Kind, Taken};
use super::native::Run;
use super::table::Table;
use super::value::{Values, are, values};
use crate::array::NDArray;
use crate::array::moves::elsewhere;
use crate::interpreter::arguments::Lengths;
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;
use weft_array::{DType, Shape};

/// Ways that an op remembers at most.
const WAYS: usize = 256;

/// An operand's kind and shape.
pub(super) type Outline = (Kind, Shape);
pub(super) type Outlines = SmallVec<[Outline; 3]>;

/// The answer of an op's rule to a call, and the core's run for it, if there is one.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct Way {
    operands: Outlines,
    /// The attributes as given; None for a way that cannot be remembered.
    given: Option<Values>,
    /// The attributes in the form that rules know.
    attributes: Py<PyDict>,
    avals: Py<PyTuple>,
    pub(super) results: SmallVec<[(Shape, DType); 1]>,
    pub(super) run: Option<Run>,
    /// NumPy's function that answers during the call, for arrays of at most this many bytes.
    pub(super) answer: Option<(Py<PyAny>, usize)>,
}

#[pymethods]
impl Way {
    /// The attributes in the form that rules know, as a new dict.
    #[getter]
    pub(super) fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.attributes.bind(py).copy()
    }

    /// The results' avals.
    #[getter]
    fn avals(&self, py: Python<'_>) -> Py<PyTuple> {
        self.avals.clone_ref(py)
    }

    /// Pushes the op without Python, into `results`. False: nothing was pushed.
    fn push(&self, results: &Bound<'_, PyTuple>, operands: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let Some(run) = &self.run else { return Ok(false) };
        let mut targets: SmallVec<[Bound<'_, NDArray>; 1]> = SmallVec::new();
        for result in results.iter() {
            targets.push(crate::array::moves::taken(result)?);
        }
        let operands: SmallVec<[Bound<'_, PyAny>; 4]> =
            operands.iter().map(|each| elsewhere(&each).unwrap_or(each)).collect();
        let is_away = |array: &Bound<'_, NDArray>| array.get().inner.buffer().is_elsewhere();
        if targets.iter().any(is_away) || operands.iter().filter_map(|each| each.cast().ok()).any(is_away) {
            return Ok(false);
        }
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
        visit.call(self.answer.as_ref().map(|(answer, _)| answer))?;
        self.run.as_ref().map_or(Ok(()), |run| run.traverse(&visit))
    }
}

impl Way {
    /// The attributes in the form that rules know: the way's own dict.
    pub(super) fn own_attributes(&self) -> &Py<PyDict> {
        &self.attributes
    }
}

/// The ways of an op, by their operands.
#[derive(Default)]
pub(super) struct Ways {
    by_operands: Table<Vec<Py<Way>>>,
    count: usize,
    /// The way that was found last: a call is mostly like the one before.
    last: Option<Py<Way>>,
}

impl Ways {
    /// The way of a call over operands of these kinds and shapes.
    #[inline]
    #[allow(clippy::needless_pass_by_value)] // an iterator
    pub(super) fn find<'a>(
        &mut self,
        py: Python<'_>,
        operands: impl Iterator<Item = (Kind, &'a [usize])> + Clone,
        attributes: &Named<'_, '_>,
    ) -> Option<Py<Way>> {
        let is = |way: &&Py<Way>| {
            let mut known = way.get().operands.iter();
            // Axes are few, and compared one by one.
            operands
                .clone()
                .all(|(kind, shape)| known.next().is_some_and(|own| own.0 == kind && own.1.iter().eq(shape)))
                && known.next().is_none()
                && way.get().given.as_ref().is_some_and(|given| are(attributes, given))
        };
        if let Some(last) = self.last.as_ref().filter(is) {
            return Some(last.clone_ref(py));
        }
        let found = self.by_operands.get(&hash(operands.clone()))?.iter().find(is)?;
        self.last = Some(found.clone_ref(py)); // the one before is in the table: nothing is dropped
        Some(found.clone_ref(py))
    }

    /// Remembers a way. Answers those that are forgotten for it: to drop them may run Python.
    #[must_use]
    pub(super) fn insert(&mut self, way: Py<Way>) -> Self {
        let gone = if self.count >= WAYS { std::mem::take(self) } else { Self::default() };
        self.count += 1;
        self.by_operands.entry(hash(shown(&way.get().operands))).or_default().push(way);
        gone
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.last)?;
        self.by_operands.values().flatten().try_for_each(|way| visit.call(way))
    }
}

/// Mixes kinds and lengths by the function of Firefox's hash.
fn hash<'a>(operands: impl Iterator<Item = (Kind, &'a [usize])>) -> u64 {
    let mix = |hash: u64, part: u64| (hash.rotate_left(5) ^ part).wrapping_mul(0x517c_c1b7_2722_0a95);
    operands.fold(0, |hash, (kind, shape)| {
        shape.iter().fold(mix(hash, kind.number() | 1 << 32), |hash, length| mix(hash, *length as u64))
    })
}

fn shown(operands: &[Outline]) -> impl Iterator<Item = (Kind, &[usize])> + Clone {
    operands.iter().map(|(kind, shape)| (*kind, shape.as_slice()))
}

/// Kinds and shapes of operands on any device; None if an operand must become an array first.
fn outlines(operands: &[Bound<'_, PyAny>]) -> Option<Outlines> {
    let each = |operand: &Bound<'_, PyAny>| match operand.cast::<NDArray>() {
        Ok(array) => {
            Some(array.get().at(operand.py(), |own| (Kind::Array(own.inner.dtype()), own.inner.layout().shape.clone())))
        }
        Err(_) => Some((Kind::of_number(operand)?, Shape::new())),
    };
    operands.iter().map(each).collect()
}

/// The same of operands at which a walk has looked.
pub(super) fn outlines_of(kinds: &[Kind], operands: &[Taken<'_, '_>]) -> Outlines {
    let each = |(kind, operand): (&Kind, &Taken<'_, '_>)| (*kind, Shape::from_slice(operand.shape()));
    kinds.iter().zip(operands).map(each).collect()
}

/// The way of a call, by the op's rule. It is remembered, unless the op's facts have changed since `generation`.
pub(super) fn make<'py>(
    op: &Bound<'py, Callee>,
    operands: &[Bound<'py, PyAny>],
    outlines: Outlines,
    attributes: &Named<'_, 'py>,
    generation: u64,
) -> PyResult<Py<Way>> {
    let py = op.py();
    let given = dictionary(py, attributes)?;
    let asked = carrier(py)?.ask.bind(py).call1((op, PyTuple::new(py, operands)?, given))?;
    let (normal, avals) = asked.extract::<(Bound<'_, PyDict>, Bound<'_, PyTuple>)>()?;
    let mut results = SmallVec::new();
    for aval in avals.iter() {
        let shape: SmallVec<_> = aval.getattr(intern!(py, "shape"))?.extract::<Lengths>()?.0.into();
        results.push((shape, dtypes::from_python(&aval.getattr(intern!(py, "dtype"))?)?));
    }
    let (native, answer) = {
        let facts = op.get().facts();
        let answer = facts.answer.as_ref().map(|answer| (answer.clone_ref(py), facts.answer_effort));
        (facts.native.as_ref().map(|native| native.clone_ref(py)), answer)
    };
    let run = match native {
        Some(native) => native.get().bind(py, &outlines, &normal, (&avals, &results))?,
        None => None,
    };
    let (given, attributes, avals) = (values(attributes), normal.unbind(), avals.unbind());
    let is_kept = given.is_some();
    let way = Py::new(py, Way { operands: outlines, given, attributes, avals, results, run, answer })?;
    if is_kept {
        op.get().remember(way.clone_ref(py), generation);
    }
    Ok(way)
}

/// An attribute's name and value.
type Pair<'py> = (Bound<'py, PyString>, Bound<'py, PyAny>);

/// The way of a call over arrays and Python numbers.
#[pyfunction]
pub(crate) fn way_of<'py>(
    op: &Bound<'py, Callee>,
    operands: &Bound<'py, PyTuple>,
    attributes: &Bound<'py, PyDict>,
) -> PyResult<Py<Way>> {
    let operands: SmallVec<[Bound<'_, PyAny>; 4]> = operands.iter().collect();
    let pairs: Option<SmallVec<[Pair<'py>; 5]>> =
        attributes.iter().map(|(name, value)| Some((name.cast_into::<PyString>().ok()?, value))).collect();
    let (Some(outlines), Some(pairs)) = (outlines(&operands), pairs) else {
        return Err(errors::argument_type(op.py(), "an op is called over arrays and numbers"));
    };
    let attributes = pairs.iter().map(|(name, value)| (name.as_borrowed(), value.as_borrowed())).collect();
    let generation = {
        let mut facts = op.get().facts();
        if let Some(way) = facts.ways.find(op.py(), shown(&outlines), &attributes) {
            return Ok(way);
        }
        facts.generation
    };
    make(op, &operands, outlines, &attributes, generation)
}
