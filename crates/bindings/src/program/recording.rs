//! `weft._core.Recording`.

use super::compiled::{Compiled, raised_program};
use super::notes;
use crate::array::moves::{now, taken};
use crate::array::{NDArray, raised};
use crate::engine::Engine;
use crate::interpreter::errors;
use crate::payloads::kept::Kept;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_array::recording::{self as transcripts, Transcript};
use weft_array::{Array, Buffer, Layout, Tag};
use weft_program::{Argument, Program, Recorded, Settings, Taken};

thread_local! {
    /// The recording for which this thread records.
    static OPEN: RefCell<Option<Py<Recording>>> = const { RefCell::new(None) };
}

/// The parts of a recording, besides the calls.
#[derive(Default)]
struct Parts {
    begun: bool,
    transcript: Option<Box<Transcript>>,
    notes: Vec<notes::Note>,
    /// The outside values of programs that are called meanwhile, by name: Python's.
    names: Option<Py<PyDict>>,
    arguments: Vec<(Argument, Py<NDArray>)>,
}

/// The calls of a thread between `begin()` and `end()`, in order. None of them runs.
#[pyclass(module = "weft._core", frozen, weakref, subclass)]
pub(crate) struct Recording {
    engine: Py<Engine>,
    tag: Arc<Tag>,
    parts: Mutex<Parts>,
}

impl Recording {
    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the recording on this thread, if it is this one that is open.
    fn close(slf: &Bound<'_, Self>) -> Option<Box<Transcript>> {
        let is_own = OPEN.with_borrow(|open| open.as_ref().is_some_and(|open| open.is(slf)));
        if !is_own {
            return None;
        }
        let open = OPEN.take();
        let transcript = transcripts::end();
        drop(open);
        transcript
    }

    fn capture(&self, py: Python<'_>, what: &str) -> PyErr {
        errors::capture(py, &format!("recording '{}' {what}", self.tag.name()))
    }
}

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // Python's signatures
impl Recording {
    #[new]
    #[pyo3(signature = (engine, name, *, keeps=false))]
    fn new(engine: Py<Engine>, name: &str, keeps: bool) -> Self {
        let tag = if keeps { Tag::keeping(name) } else { Tag::new(name) };
        Self { engine, tag, parts: Mutex::default() }
    }

    /// The name it was given.
    #[getter]
    fn name(&self) -> &str {
        self.tag.name()
    }

    /// The place where programs that are called meanwhile note their outside values.
    #[getter]
    fn names(&self, py: Python<'_>) -> Option<Py<PyDict>> {
        self.parts().names.as_ref().map(|names| names.clone_ref(py))
    }

    /// Lets this thread record.
    #[pyo3(signature = (names=None))]
    fn begin(slf: &Bound<'_, Self>, names: Option<Py<PyDict>>) -> PyResult<()> {
        let (py, own) = (slf.py(), slf.get());
        if own.parts().begun {
            return Err(own.capture(py, "was begun before: make a new one"));
        }
        transcripts::begin(Arc::clone(&own.tag), &own.engine.get().inner).map_err(|error| raised(py, error))?;
        {
            let mut parts = own.parts();
            parts.begun = true;
            parts.names = Some(names.unwrap_or_else(|| PyDict::new(py).unbind()));
        }
        drop(notes::take());
        OPEN.set(Some(slf.clone().unbind()));
        Ok(())
    }

    /// Lets the pushes of this thread run again.
    fn end(slf: &Bound<'_, Self>) -> PyResult<()> {
        let own = slf.get();
        let Some(transcript) = Self::close(slf) else {
            return Err(own.capture(slf.py(), "is not open on this thread: it ends where it began, and once"));
        };
        let mut parts = own.parts();
        parts.transcript = Some(transcript);
        parts.notes = notes::take();
        let names = parts.names.take();
        drop(parts);
        drop(names); // not under the lock: this may run anything
        Ok(())
    }

    /// Ends it, if it is open on this thread, and forgets its calls.
    fn abort(slf: &Bound<'_, Self>) {
        let transcript = Self::close(slf);
        if let Some(transcript) = &transcript {
            transcript.abandon();
        }
        let parts = std::mem::take(&mut *slf.get().parts());
        slf.get().parts().begun = true;
        drop((transcript, parts));
    }

    /// Begins it for a block: answers what a subclass's `_entered()` does. Here and not in Python, which an interrupt may end
    /// between any two lines: it would leave the recording open.
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::begin(slf, None)?;
        slf.call_method0("_entered").inspect_err(|_| Self::abort(slf))
    }

    /// Ends it, or aborts it after an exception, and then calls `_left(whether there was none)`.
    #[pyo3(signature = (kind, error, traceback))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (error, traceback);
        if kind.is_none() {
            Self::end(slf)?;
        } else {
            Self::abort(slf);
        }
        slf.call_method1("_left", (kind.is_none(),)).map(drop)
    }

    /// An array that stands for `array` in the recording. Those that share memory have placeholders that do.
    #[pyo3(signature = (array, readonly=false))]
    fn argument(&self, array: &Bound<'_, NDArray>, readonly: bool) -> PyResult<NDArray> {
        let array = &now(array);
        let (py, given) = (array.py(), &array.get().inner);
        if !given.buffer().is_elsewhere() {
            given.buffer().storage().map_err(|error| raised(py, error))?;
        }
        if !self.engine.get().inner.is_same(given.engine()) {
            return Err(self.capture(py, "belongs to another engine than its argument"));
        }
        let known = self.parts().arguments.iter().find_map(|(known, _)| {
            let same = Arc::ptr_eq(known.array.buffer(), given.buffer());
            same.then(|| Arc::clone(known.placeholder.buffer()))
        });
        let readonly = readonly || given.buffer().is_readonly();
        let buffer = match known {
            Some(known) if known.is_readonly() == readonly => known,
            Some(_) => {
                return Err(self.capture(py, "has two arguments on one memory, and only one of them is read-only"));
            }
            None => given.buffer().standing_in(readonly, Arc::clone(&self.tag)),
        };
        let placeholder =
            Array::on(buffer, given.layout().clone(), given.dtype()).map_err(|error| raised(py, error))?;
        if given.device() > 0 && !given.buffer().is_elsewhere() {
            placeholder.set_device(given.device());
        }
        let argument = Argument { placeholder: placeholder.clone(), array: given.clone() };
        self.parts().arguments.push((argument, array.clone().unbind()));
        Ok(NDArray::new(placeholder, array.get().owner().clone_ref(py)))
    }

    /// Says that `array` holds values that are known: a replay that changes them or hands them out has a copy of its own.
    fn constant(&self, array: &Bound<'_, NDArray>) -> PyResult<()> {
        if !transcripts::is_open() {
            return Err(self.capture(array.py(), "is not open on this thread"));
        }
        transcripts::note_constant(now(array).get().inner.buffer());
        Ok(())
    }

    /// Arrays from outside that were touched so far, in the order of their first use.
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut found: Vec<Array> = Vec::new();
        let parts = self.parts();
        let mut look = |transcript: &Transcript| {
            for (array, _) in transcript.calls().iter().flat_map(|call| &call.arrays) {
                let same = |other: &Array| Arc::ptr_eq(other.buffer(), array.buffer());
                let outside = array.buffer().recording().is_none()
                    && !transcript.constants().iter().any(|constant| Arc::ptr_eq(constant, array.buffer()))
                    && !parts.arguments.iter().any(|(argument, _)| same(&argument.array));
                if outside && !found.iter().any(same) {
                    found.push(array.clone());
                }
            }
        };
        match &parts.transcript {
            Some(transcript) => look(transcript),
            None => drop(transcripts::with(&mut look)),
        }
        drop(parts);
        let arrays = found.into_iter().map(|array| Py::new(py, NDArray::new(array, self.engine.clone_ref(py))));
        PyTuple::new(py, arrays.collect::<PyResult<Vec<_>>>()?)
    }

    /// Makes a program of the recorded calls.
    #[pyo3(signature = (results, *, sequential=false, memory="balanced", passes=None, donate=Vec::new()))]
    fn finish(
        &self,
        results: &Bound<'_, PyTuple>,
        sequential: bool,
        memory: &str,
        passes: Option<Vec<String>>,
        donate: Vec<usize>,
    ) -> PyResult<Compiled> {
        let py = results.py();
        let shown = results.iter().map(|item| Ok(taken(item)?.get().inner.clone()));
        let shown = shown.collect::<PyResult<Vec<Array>>>()?;
        let settings =
            Settings::new(sequential, memory, passes.as_deref()).map_err(|error| raised_program(py, error))?;
        let settings = settings.donating(donate);
        let mut parts = self.parts();
        let Some(transcript) = parts.transcript.take() else {
            drop(parts);
            return Err(self.capture(py, "has not ended, or is finished"));
        };
        let (arguments, notes) = (std::mem::take(&mut parts.arguments), std::mem::take(&mut parts.notes));
        drop(parts);
        let arguments = arguments.into_iter().map(|(argument, _)| argument).collect();
        let failed = |error| raised_program(py, error);
        let recorded = Recorded::new(*transcript, arguments, &shown).map_err(failed)?;
        let kept = Kept::claim(&recorded);
        let program = Program::new(recorded, settings).map_err(failed)?;
        Compiled::new(py, program, self.engine.clone_ref(py), notes, kept)
    }

    /// An array, of zeros say, that stands for an argument of a program of a later part of the recording.
    fn seed(slf: &Bound<'_, Self>, like: &Bound<'_, NDArray>) -> PyResult<NDArray> {
        let like = &now(like);
        let (py, own, given) = (slf.py(), slf.get(), &like.get().inner);
        let layout =
            Layout::contiguous(&given.layout().shape, given.dtype().size()).map_err(|error| raised(py, error))?;
        let bytes = layout.size() * given.dtype().size();
        let buffer = Buffer::recorded(given.engine(), bytes, true, Arc::clone(&own.tag));
        let placeholder = Array::on(buffer, layout, given.dtype()).map_err(|error| raised(py, error))?;
        let made = NDArray::new(placeholder.clone(), like.get().owner().clone_ref(py));
        let argument = Argument { placeholder: placeholder.clone(), array: placeholder };
        own.parts().arguments.push((argument, like.clone().unbind()));
        Ok(made)
    }

    /// Makes two programs: of the first `at` calls, with `results`, and of the others, with `further`, which alone are given
    /// the last `seeds` arguments. Without `both` the first one is not made. None if they cannot be parted.
    ///
    /// Answers them; where each argument of the second comes from, as ("argument" | "result" | "kept" | "seed", number);
    /// numbers of the buffers that the first one returns besides its results; numbers of arguments that it writes to; whether
    /// it does nothing else; and a number that is the same where the first parts are.
    #[pyo3(signature = (at, results, further, seeds, *, both=true, sequential=false, memory="balanced", passes=None))]
    #[allow(clippy::too_many_arguments, clippy::type_complexity)] // one caller, which takes it apart
    fn finish_parted<'py>(
        &self,
        at: usize,
        results: &Bound<'py, PyTuple>,
        further: &Bound<'py, PyTuple>,
        seeds: usize,
        both: bool,
        sequential: bool,
        memory: &str,
        passes: Option<Vec<String>>,
    ) -> PyResult<Option<(Option<Compiled>, Compiled, Vec<(&'static str, usize)>, Vec<usize>, Vec<usize>, bool, u64)>>
    {
        let py = results.py();
        let arrays = |arrays: &Bound<'py, PyTuple>| -> PyResult<Vec<Array>> {
            arrays.iter().map(|item| Ok(taken(item)?.get().inner.clone())).collect()
        };
        let (results, further) = (arrays(results)?, arrays(further)?);
        let settings =
            Settings::new(sequential, memory, passes.as_deref()).map_err(|error| raised_program(py, error))?;
        let mut parts = self.parts();
        let Some(transcript) = parts.transcript.take() else {
            drop(parts);
            return Err(self.capture(py, "has not ended, or is finished"));
        };
        let (arguments, notes) = (std::mem::take(&mut parts.arguments), std::mem::take(&mut parts.notes));
        drop(parts);
        let arguments = arguments.into_iter().map(|(argument, _)| argument).collect();
        let parted = Recorded::parted(*transcript, at, arguments, seeds, &results, &further);
        let Some(parted) = parted.map_err(|error| raised_program(py, error))? else { return Ok(None) };
        let made = |recorded, notes| {
            let kept = Kept::claim(&recorded);
            let program = Program::new(recorded, settings.clone()).map_err(|error| raised_program(py, error))?;
            Compiled::new(py, program, self.engine.clone_ref(py), notes, kept)
        };
        let (before, after): (Vec<_>, Vec<_>) = notes.into_iter().partition(|(number, ..)| *number < at);
        let after = after.into_iter().map(|(number, op, attributes)| (number - at, op, attributes)).collect();
        let first = if both { Some(made(parted.first, before)?) } else { None };
        let taken = parted.taken.iter().map(|taken| match *taken {
            Taken::Argument(number) => ("argument", number),
            Taken::Result(number) => ("result", number),
            Taken::Kept(number) => ("kept", number),
            Taken::Seed(number) => ("seed", number),
        });
        let taken = taken.collect();
        let second = made(parted.second, after)?;
        Ok(Some((first, second, taken, parted.kept, parted.written, parted.plain, parted.digest)))
    }

    fn __repr__(&self) -> String {
        format!("<weft._core.Recording '{}'>", self.tag.name())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.engine)?;
        // The holder of the lock may have started the collector; an object that is not shown stays.
        let Ok(parts) = self.parts.try_lock() else { return Ok(()) };
        visit.call(&parts.names)?;
        for (_, op, attributes) in &parts.notes {
            visit.call(op)?;
            visit.call(attributes)?;
        }
        parts.arguments.iter().try_for_each(|(_, array)| visit.call(array))
    }

    fn __clear__(&self) {
        let parts = std::mem::take(&mut *self.parts());
        self.parts().begun = true;
        drop(parts);
    }
}

/// The recording for which this thread records, if there is one.
#[pyfunction]
#[pyo3(name = "recording")]
pub(crate) fn open_recording(py: Python<'_>) -> Option<Py<Recording>> {
    OPEN.with_borrow(|open| open.as_ref().map(|open| open.clone_ref(py)))
}

/// Returns the result of `make()`, though this thread may record: its calls run, and are no part of a recording.
#[pyfunction]
pub(crate) fn unrecorded<'py>(make: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    /// Goes on with the recording in any case.
    struct Later(Option<(transcripts::Suspended, Option<Py<Recording>>, Vec<notes::Note>)>);
    impl Drop for Later {
        fn drop(&mut self) {
            if let Some((suspended, open, noted)) = self.0.take() {
                OPEN.set(open);
                transcripts::resume(suspended);
                notes::put_back(noted);
            }
        }
    }
    let open = OPEN.take();
    if open.is_none() {
        return make.call0();
    }
    let _later = Later(Some((transcripts::suspend(), open, notes::take())));
    make.call0()
}
