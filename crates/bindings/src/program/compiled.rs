//! `weft._core.Compiled`.

use super::notes::Note;
use crate::array::moves::elsewhere;
use crate::array::{NDArray, raised};
use crate::engine::Engine;
use crate::hearing::record;
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use crate::payloads::kept::Kept;
use crate::payloads::trace;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::RefCell;
use weft_array::{Access, Array, recording};
use weft_engine::trace::Kind;
use weft_program::{Options, Output, Program, ProgramError};

/// A program: recorded calls, for other arrays of the same layouts.
#[pyclass(module = "weft._core", frozen, weakref)]
pub(crate) struct Compiled {
    program: Program,
    engine: Py<Engine>,
    states: Py<PyTuple>,
    notes: Vec<Note>,
    /// The objects that its steps keep: the collector sees them here.
    kept: Vec<Kept>,
    /// Numbers of the arguments that it writes to.
    written: Vec<usize>,
}

/// A refusal as an exception.
pub(super) fn raised_program(py: Python<'_>, error: ProgramError) -> PyErr {
    match error {
        ProgramError::Array(error) => raised(py, error),
        ProgramError::Arguments(message) => errors::argument_value(py, &message),
        ProgramError::Memory(error) => errors::out_of_memory(py, &error.to_string()),
        error => errors::capture(py, &error.to_string()),
    }
}

fn is_moved(argument: &Bound<'_, PyAny>) -> bool {
    argument.cast::<NDArray>().is_ok_and(|array| array.get().tape.is_moved())
}

impl Compiled {
    pub(super) fn new(
        py: Python<'_>,
        program: Program,
        engine: Py<Engine>,
        notes: Vec<Note>,
        kept: Vec<Kept>,
    ) -> PyResult<Self> {
        let states = program.recorded().states();
        let states = states.map(|array| Py::new(py, NDArray::new(array.clone(), engine.clone_ref(py))));
        let states = PyTuple::new(py, states.collect::<PyResult<Vec<_>>>()?)?.unbind();
        let written = program.recorded().written().collect();
        Ok(Self { program, engine, states, notes, kept, written })
    }

    /// Calls the program. Answers its results, without waiting for them.
    pub(crate) fn call<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Bound<'py, PyAny>],
        options: Options<'_>,
    ) -> PyResult<SmallVec<[Bound<'py, PyAny>; 4]>> {
        if recording::is_open() {
            let message =
                "a program cannot be replayed while this thread records: call the function itself in the recording";
            return Err(errors::capture(py, message));
        }
        if arguments.iter().any(is_moved) {
            let now: SmallVec<[_; 8]> =
                arguments.iter().map(|argument| elsewhere(argument).unwrap_or_else(|| argument.clone())).collect();
            return self.call_on(py, &now, arguments, options);
        }
        self.call_on(py, arguments, arguments, options)
    }

    /// Calls the program on the handles that stand for the given arrays.
    fn call_on<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Bound<'py, PyAny>],
        given: &[Bound<'py, PyAny>],
        options: Options<'_>,
    ) -> PyResult<SmallVec<[Bound<'py, PyAny>; 4]>> {
        let mut arrays: SmallVec<[&Array; 16]> = SmallVec::new();
        for argument in arguments {
            let array = argument.cast::<NDArray>().map_err(|_| {
                PyTypeError::new_err(format!("a program takes weft arrays, not {}", argument.get_type()))
            })?;
            arrays.push(&array.get().inner);
        }
        let engine = self.engine.get();
        engine.wait_for_room(py, 0)?;
        let note =
            |name: &str, place: u64| trace::note(py, &engine.inner, Kind::Compute, name, Location::of_bits(place));
        let options = Options { note: Some(&note), ..options };
        let outputs = self.program.run(&arrays, &options).map_err(|error| raised_program(py, error))?;
        for &number in &self.written {
            record::wrote(py, arguments[number].cast::<NDArray>()?.get());
        }
        if self.program.is_hosted() {
            engine.hand_over(py);
        }
        let mut results: SmallVec<[Bound<'py, PyAny>; 4]> = SmallVec::new();
        for output in outputs {
            let result = match output {
                Output::Argument(number) => given[number].clone(),
                Output::State(number) => self.states.bind(py).get_item(number)?,
                Output::Same(number) => results[number].clone(),
                Output::Array(array) => Bound::new(py, NDArray::new(array, self.engine.clone_ref(py)))?.into_any(),
            };
            results.push(result);
        }
        Ok(results)
    }

    /// One instruction, for `describe`.
    fn described<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        step: &weft_program::Description,
    ) -> PyResult<Bound<'py, PyDict>> {
        let recorded = self.program.recorded();
        let told = PyDict::new(py);
        told.set_item("name", &step.name)?;
        told.set_item("location", Location::of_bits(step.place).describe(py))?;
        let (inputs, outputs, accesses) = (PyList::empty(py), PyList::empty(py), PyList::empty(py));
        for operand in &step.operands {
            let view = PyDict::new(py);
            let (kind, number) = recorded.kind_of(operand.entry);
            view.set_item("buffer", operand.entry)?;
            view.set_item("kind", kind)?;
            view.set_item("number", number)?;
            view.set_item("version", operand.version)?;
            view.set_item("shape", PyTuple::new(py, &operand.layout.shape)?)?;
            view.set_item("dtype", operand.dtype)?;
            view.set_item("strides", PyTuple::new(py, &operand.layout.strides)?)?;
            view.set_item("offset", operand.layout.offset)?;
            view.set_item("arena_offset", self.program.arena_offset(operand.entry))?;
            let access = match operand.access {
                Access::Read => "read",
                Access::Mutate => "mutate",
                Access::Overwrite => "overwrite",
            };
            accesses.append(access)?;
            if operand.access == Access::Read { inputs.append(view)? } else { outputs.append(view)? }
        }
        told.set_item("inputs", inputs)?;
        told.set_item("outputs", outputs)?;
        told.set_item("accesses", accesses)?;
        told.set_item("dependencies", &step.dependencies)?;
        told.set_item("bytes", step.bytes)?;
        let template = recorded.instructions()[at].step.operands();
        let template = template.map(|inputs| {
            inputs.into_iter().map(|input| input.map(|(bytes, dtype)| (bytes, dtype.name()))).collect::<Vec<_>>()
        });
        told.set_item("operands", template)?;
        told.set_item("numbers", recorded.instructions()[at].step.numbers())?;
        let note = self.notes.iter().find(|(number, ..)| *number == step.number);
        told.set_item("op", note.map(|(_, op, _)| op.clone_ref(py)))?;
        told.set_item("attributes", note.map(|(.., attributes)| attributes.clone_ref(py)))?;
        told.set_item("opaque", !recorded.instructions()[at].step.is_native())?;
        told.set_item("number", at)?;
        Ok(told)
    }
}

#[pymethods]
impl Compiled {
    /// Calls the program. Answers its results, without waiting for them.
    #[pyo3(signature = (arguments, *, priority=0, sequential=None))]
    fn run<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        priority: i32,
        sequential: Option<bool>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = arguments.py();
        let arguments: SmallVec<[_; 8]> = arguments.iter().collect();
        let options = Options { priority, sequential, note: None };
        PyTuple::new(py, self.call(py, &arguments, options)?)
    }

    /// The engine of its ops.
    #[getter]
    fn engine(&self, py: Python<'_>) -> Py<Engine> {
        self.engine.clone_ref(py)
    }

    /// The numbers of the arguments that the function refers to itself, too.
    #[getter]
    fn closed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.program.recorded().closed())
    }

    /// How many ops a call runs.
    #[getter]
    fn ops(&self) -> usize {
        self.program.ops()
    }

    /// Bytes of the arena for the intermediate values of a call.
    #[getter]
    fn nbytes(&self) -> usize {
        self.program.figures().arena
    }

    /// Sum of the bytes of all that the recorded ops make.
    #[getter]
    fn eager_nbytes(&self) -> usize {
        self.program.figures().eager
    }

    /// The most bytes that are alive at one moment, in recorded order.
    #[getter]
    fn eager_peak_nbytes(&self) -> usize {
        self.program.figures().eager_peak
    }

    /// The most bytes of the arena that are alive at one moment, in the program's own order.
    #[getter]
    fn peak_live_nbytes(&self) -> usize {
        self.program.figures().peak_live
    }

    /// The names of the steps of a call that is pushed, as traces show them.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.program.names().collect::<Vec<_>>())
    }

    /// Arrays from outside that it touches, in the order of their first use.
    #[getter]
    fn states(&self, py: Python<'_>) -> Py<PyTuple> {
        self.states.clone_ref(py)
    }

    /// The buffers of the results, by their numbers in `describe`.
    #[getter]
    fn result_buffers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.program.recorded().result_entries())
    }

    /// The versions now of the outside arrays whose values the recording depends on.
    fn states_version<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.program.recorded().looked_at().iter().map(Array::version))
    }

    /// The outside arrays whose values the recording depends on.
    #[getter]
    fn looked_at<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let arrays = self.program.recorded().looked_at().iter();
        let arrays = arrays.map(|array| Py::new(py, NDArray::new(array.clone(), self.engine.clone_ref(py))));
        PyTuple::new(py, arrays.collect::<PyResult<Vec<_>>>()?)
    }

    /// Whether nobody notices that it runs once more on arrays that are as they were, if `is_pure` says so of the functions that it calls.
    fn repeats(&self, is_pure: &Bound<'_, PyAny>) -> PyResult<bool> {
        let raised = RefCell::new(None);
        let knows = |kept: &dyn Any| {
            let Some(function) = kept.downcast_ref::<Kept>() else { return false };
            let asked = is_pure.call1((function.object(),)).and_then(|answer| answer.extract::<bool>());
            asked.unwrap_or_else(|error| {
                raised.replace(Some(error));
                false
            })
        };
        let repeats = self.program.recorded().repeats(&knows);
        raised.into_inner().map_or(Ok(repeats), Err)
    }

    /// Its ops, one by one.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let steps = self.program.recorded().describe();
        let told = steps.iter().enumerate().map(|(at, step)| self.described(py, at, step));
        PyList::new(py, told.collect::<PyResult<Vec<_>>>()?)
    }

    fn __repr__(&self) -> String {
        let recorded = self.program.recorded();
        format!("<weft._core.Compiled '{}', {} ops, {} bytes>", recorded.name(), self.ops(), self.nbytes())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.engine)?;
        visit.call(&self.states)?;
        for (_, op, attributes) in &self.notes {
            visit.call(op)?;
            visit.call(attributes)?;
        }
        // A call that is pending uses them, too.
        if self.program.is_idle() {
            for kept in &self.kept {
                kept.traverse(&visit)?;
            }
        }
        Ok(())
    }
}
