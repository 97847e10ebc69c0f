//! `weft._core.Part`: a part of the open recording that is to run as one op.

use super::compiled::raised_program;
use crate::array::moves::{now, taken};
use crate::array::{NDArray, raised};
use crate::engine::Engine;
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_array::recording::{self as transcripts, Transcript};
use weft_array::{Access, Array, ArrayError, Buffer, Call, Layout, Opaque, Operands, Step, record};
use weft_engine::{AccessKind, PushOptions, Variable};
use weft_program::{Body, Branch, Input, Turns};

/// The contents of a part.
#[derive(Default)]
struct Parts {
    placeholders: Vec<Array>,
    results: Vec<Array>,
    body: Option<Arc<Body>>,
}

/// The calls of a thread between `begin()` and `end()`, inside a recording: one op of it.
#[pyclass(module = "weft._core", frozen, weakref)]
pub(crate) struct Part {
    engine: Py<Engine>,
    name: String,
    parts: Mutex<Parts>,
}

/// Inputs as numbers: rows, the same array each time; else the result that they are from the second turn on.
const ROW: isize = -1;
const SAME: isize = -2;

impl Part {
    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn body(&self, py: Python<'_>) -> PyResult<Arc<Body>> {
        let body = self.parts().body.clone();
        body.ok_or_else(|| errors::capture(py, &format!("the part '{}' has no body: end it first", self.name)))
    }

    /// New arrays of the recording around it.
    fn made(&self, py: Python<'_>, shapes: impl Iterator<Item = (Vec<usize>, Array)>) -> PyResult<Vec<Array>> {
        let engine = &self.engine.get().inner;
        shapes
            .map(|(shape, like)| Array::empty(engine, &shape, like.dtype()).map_err(|error| raised(py, error)))
            .collect()
    }
}

/// Appends a step on these arrays and variables.
fn append<'py>(
    py: Python<'py>,
    engine: &Py<Engine>,
    name: &str,
    step: Arc<dyn Opaque>,
    (arrays, variables): (Operands, Vec<(Variable, AccessKind)>),
    made: Vec<Array>,
) -> PyResult<Bound<'py, PyTuple>> {
    let given: Vec<(&Array, Access)> = arrays
        .iter()
        .map(|(array, access)| (array, *access))
        .chain(made.iter().map(|array| (array, Access::Overwrite)))
        .collect();
    let variables: Vec<(&Variable, AccessKind)> = variables.iter().map(|(variable, kind)| (variable, *kind)).collect();
    transcripts::announce(name, Location::here(py).bits());
    let inner = &engine.get().inner;
    let call = Call { variables: &variables, ..Call::on(inner, &given, PushOptions::default()) };
    // SAFETY: the arrays are those that the part was made for.
    unsafe { record(Step::Opaque(step), &call) }.map_err(|error| raised(py, error))?;
    let handles = made.into_iter().map(|array| Py::new(py, NDArray::new(array, engine.clone_ref(py))));
    PyTuple::new(py, handles.collect::<PyResult<Vec<_>>>()?)
}

/// Accesses of both, each variable once.
fn merged(all: impl Iterator<Item = (Variable, AccessKind)>) -> Vec<(Variable, AccessKind)> {
    let mut found: Vec<(Variable, AccessKind)> = Vec::new();
    for (variable, kind) in all {
        match found.iter_mut().find(|(known, _)| known.number() == variable.number()) {
            None => found.push((variable, kind)),
            Some((_, known)) if *known == kind => {}
            Some((_, known)) => *known = AccessKind::Exclusive,
        }
    }
    found
}

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // Python's signatures
impl Part {
    #[new]
    fn new(engine: Py<Engine>, name: String) -> Self {
        Self { engine, name, parts: Mutex::default() }
    }

    /// Lets this thread record the part.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        transcripts::begin_part(&self.name).map_err(|error| raised(py, error))
    }

    /// An array that stands for `array`, or for a row of it.
    #[pyo3(signature = (array, row=false))]
    fn input(&self, array: &Bound<'_, NDArray>, row: bool) -> PyResult<NDArray> {
        let array = &now(array);
        let (py, given) = (array.py(), &array.get().inner);
        let layout = given.layout();
        let from = usize::from(row && !layout.shape.is_empty());
        let (shape, strides) = (&layout.shape[from..], &layout.strides[from..]);
        let mut placed = Layout { shape: shape.into(), strides: strides.into(), offset: 0 };
        let below = |(&stride, &length): (&isize, &usize)| {
            if stride < 0 { stride.unsigned_abs() * length.saturating_sub(1) } else { 0 }
        };
        if placed.size() > 0 {
            placed.offset = strides.iter().zip(shape).map(below).sum();
        }
        let bytes = placed.range(given.dtype().size()).end;
        let tag = transcripts::with(|transcript| Arc::clone(transcript.tag()));
        let Some(tag) = tag else {
            return Err(raised(py, ArrayError::Capture("no recording is open on this thread".to_owned())));
        };
        let buffer = Buffer::recorded(given.engine(), bytes, given.buffer().is_readonly(), tag);
        let placeholder = Array::on(buffer, placed, given.dtype()).map_err(|error| raised(py, error))?;
        self.parts().placeholders.push(placeholder.clone());
        Ok(NDArray::new(placeholder, array.get().owner().clone_ref(py)))
    }

    /// Whether the part that is open makes the array's memory; for `whole`, whether the array is all of that, too.
    #[pyo3(signature = (array, whole=true))]
    fn makes(&self, array: &Bound<'_, NDArray>, whole: bool) -> bool {
        let array = now(array);
        let array = &array.get().inner;
        let own =
            |transcript: &Transcript| array.buffer().recording().is_some_and(|tag| Arc::ptr_eq(tag, transcript.tag()));
        (array.is_flat() || !whole)
            && transcripts::with(own).unwrap_or(false)
            && !self.parts().placeholders.iter().any(|other| Arc::ptr_eq(other.buffer(), array.buffer()))
    }

    /// The number of the input whose placeholder this array is.
    fn place_of(&self, array: &Bound<'_, NDArray>) -> Option<usize> {
        let array = now(array);
        let array = &array.get().inner;
        let is_it = |other: &Array| {
            Arc::ptr_eq(other.buffer(), array.buffer())
                && other.layout() == array.layout()
                && other.dtype() == array.dtype()
        };
        self.parts().placeholders.iter().position(is_it)
    }

    /// The first op of the part that is open that changes an array which was there before; in words.
    #[getter]
    #[allow(clippy::unused_self)] // likewise
    fn changes(&self, py: Python<'_>) -> Option<String> {
        let (name, place) =
            transcripts::with(|transcript| transcript.changing().map(|call| (call.name.clone(), call.place)))??;
        let line = Location::of_bits(place).describe(py).map(|line| format!(" at {line}")).unwrap_or_default();
        Some(format!("op '{name}'{line}"))
    }

    /// Ends the part: each result is made by it, and named once. Answers why it cannot run as one op, if that is so.
    fn end(&self, py: Python<'_>, results: &Bound<'_, PyTuple>) -> PyResult<Option<String>> {
        let results = results.iter().map(|item| Ok(taken(item)?.get().inner.clone()));
        let results = results.collect::<PyResult<Vec<Array>>>()?;
        let Some(transcript) = transcripts::end_part() else {
            return Err(errors::capture(py, &format!("the part '{}' is not open on this thread", self.name)));
        };
        if let Some(failure) = transcript.failure() {
            return Err(errors::capture(py, failure));
        }
        let mut parts = self.parts();
        match Body::new(*transcript, &parts.placeholders, &results) {
            Ok(body) => {
                (parts.body, parts.results) = (Some(Arc::new(body)), results);
                Ok(None)
            }
            Err(weft_program::ProgramError::Recording(why)) => Ok(Some(why)),
            Err(error) => {
                drop(parts);
                Err(raised_program(py, error))
            }
        }
    }

    /// Forgets the part that is open.
    #[allow(clippy::unused_self)] // likewise
    fn abort(&self) {
        drop(transcripts::end_part());
    }

    /// The arrays from around it that it touches.
    #[getter]
    fn outside<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let body = self.body(py)?;
        let handles = body.outside().iter().map(|(array, _)| NDArray::new(array.clone(), self.engine.clone_ref(py)));
        PyTuple::new(py, handles.map(|array| Py::new(py, array)).collect::<PyResult<Vec<_>>>()?)
    }

    /// The names of its ops, in order.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let body = self.body(py)?;
        PyTuple::new(py, body.instructions().iter().map(|instruction| &instruction.name))
    }

    /// Appends an op that runs the part once for each turn. `given` has an array for each input; `kinds` says what it is:
    /// -1 rows, -2 the same in each turn, else what it is from the second turn on: the result of that number. Answers for
    /// each result the last one that was handed on, or all rows.
    #[pyo3(signature = (given, kinds, turns, *, reverse=false))]
    fn turns<'py>(
        &self,
        given: &Bound<'py, PyTuple>,
        kinds: Vec<isize>,
        turns: usize,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = given.py();
        let body = self.body(py)?;
        let given = given.iter().map(|item| Ok(taken(item)?.get().inner.clone()));
        let given = given.collect::<PyResult<Vec<Array>>>()?;
        let (placeholders, results) = {
            let parts = self.parts();
            (parts.placeholders.clone(), parts.results.clone())
        };
        if given.len() != placeholders.len() || kinds.len() != placeholders.len() {
            return Err(errors::argument_value(py, "a part takes one array for each of its inputs"));
        }
        let inputs = kinds.iter().map(|kind| match *kind {
            ROW => Input::Row,
            SAME => Input::Same,
            number => Input::Carried(number.unsigned_abs()),
        });
        let inputs: Vec<Input> = inputs.collect();
        let made = self.made(
            py,
            results.iter().enumerate().map(|(number, result)| {
                let carried = inputs.contains(&Input::Carried(number));
                let rows: SmallVec<[usize; 1]> = if carried { SmallVec::new() } else { SmallVec::from_elem(turns, 1) };
                (rows.iter().chain(&result.layout().shape).copied().collect(), result.clone())
            }),
        )?;
        let mut arrays: Operands = given.into_iter().map(|array| (array, Access::Read)).collect();
        arrays.extend(body.outside().iter().cloned());
        let variables = body.variables().to_vec();
        let step = Turns::new(Arc::clone(&body), inputs, &placeholders, results.len(), (turns, reverse));
        append(py, &self.engine, &self.name, Arc::new(step), (arrays, variables), made)
    }

    /// Appends an op that runs this part, or the other one where `choice`, an array of one boolean, is false. Both have no
    /// inputs, and results of the same shapes and dtypes.
    fn or_else<'py>(&self, choice: &Bound<'py, NDArray>, other: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = choice.py();
        let (ours, theirs) = (self.body(py)?, other.get().body(py)?);
        let results = self.parts().results.clone();
        let made = self.made(py, results.iter().map(|result| (result.layout().shape.to_vec(), result.clone())))?;
        let mut arrays = vec![(now(choice).get().inner.clone(), Access::Read)];
        arrays.extend(ours.outside().iter().chain(theirs.outside()).cloned());
        let variables = merged(ours.variables().iter().chain(theirs.variables()).cloned());
        let step = Branch::new(ours, theirs);
        append(py, &self.engine, &self.name, Arc::new(step), (arrays, variables), made)
    }

    fn __repr__(&self) -> String {
        format!("<weft._core.Part '{}'>", self.name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.engine)
    }
}
