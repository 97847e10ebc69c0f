//! Python callables as payloads.

use super::answering::{self, Answering};
use super::completion::Completion;
use crate::interpreter::call::call;
use crate::interpreter::errors;
use crate::interpreter::exceptions::Exceptions;
use crate::interpreter::failures::Raised;
use crate::interpreter::forks::Here;
use crate::interpreter::location::Location;
use crate::interpreter::loose::Loose;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use std::mem::offset_of;
use std::sync::Arc;
use weft_engine::{Cause, OpContext, Payload, PlaceOffset};

/// The name of an op for its notes: the given one, or that of the callable.
pub(crate) fn name_of(context: &OpContext<'_>, callable: &Bound<'_, PyAny>) -> String {
    let label = context.label();
    if label.starts_with("op '") {
        return label;
    }
    let name = callable.getattr("__qualname__").and_then(|name| name.extract::<String>());
    name.map_or(label, |name| format!("op '{name}'"))
}

/// Notes on the exception which op it comes from and where that was pushed.
#[cold]
pub(crate) fn cause(
    py: Python<'_>,
    exceptions: &Arc<Exceptions>,
    error: &PyErr,
    name: &str,
    location: Location,
) -> Cause {
    let place = location.describe(py).map(|place| format!(" pushed at {place}")).unwrap_or_default();
    // The error of a device may have named the op.
    let told = !place.is_empty() && error.to_string().contains(&format!("{name},{place}"));
    if !told {
        let note = format!("weft: {name}{place}");
        let noted =
            error.value(py).call_method1("add_note", (&note,)).or_else(|_| note_past_its_class(py, error, &note));
        // An exception whose notes are no list goes without one.
        drop(noted);
    }
    Cause::Error(Box::new(Raised::new(py, exceptions, error)))
}

/// Notes on an exception whose class refuses new attributes, as frozen dataclasses do.
#[cold]
fn note_past_its_class<'py>(py: Python<'py>, error: &PyErr, note: &str) -> PyResult<Bound<'py, PyAny>> {
    let (value, notes) = (error.value(py), "__notes__");
    match value.getattr_opt(notes)? {
        Some(notes) => notes.call_method1("append", (note,)),
        None => py.get_type::<PyAny>().call_method1("__setattr__", (value, notes, [note])),
    }
}

/// The objection to the answer of a coroutine function or a generator function: none of its body has run, or will.
#[inline]
fn objection(answer: &Bound<'_, PyAny>) -> Option<PyErr> {
    if answer.is_none() { None } else { objection_to(answer).unwrap_or_else(Some) }
}

#[cold]
fn objection_to(answer: &Bound<'_, PyAny>) -> PyResult<Option<PyErr>> {
    const KINDS: [(&str, &str); 3] = [
        ("CoroutineType", "a coroutine"),
        ("GeneratorType", "a generator"),
        ("AsyncGeneratorType", "an async generator"),
    ];
    static TYPES: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
    let py = answer.py();
    let types = TYPES.get_or_try_init(py, || {
        let types = py.import("types")?;
        KINDS.iter().map(|(name, _)| types.getattr(*name).map(Bound::unbind)).collect::<PyResult<Vec<_>>>()
    })?;
    let found = answer.get_type();
    let Some((_, (_, made))) = types.iter().zip(KINDS).find(|(kind, _)| found.is(*kind)) else { return Ok(None) };
    let message = format!(
        "the call only made {made}, which never runs: an op is a plain function; push_async() is for work that goes on elsewhere"
    );
    Ok(Some(errors::argument_type(py, &message)))
}

/// Ends a coroutine that was never started: Python would warn of it once more.
#[cold]
fn end(unstarted: &Bound<'_, PyAny>) {
    // An async generator has no such method, and Python does not warn of it.
    if unstarted.hasattr("close").unwrap_or(false)
        && let Err(error) = unstarted.call_method0("close")
    {
        error.write_unraisable(unstarted.py(), Some(unstarted));
    }
}

/// `exec_func()`.
pub(crate) struct Callable {
    pub(crate) function: Loose<PyAny>,
    pub(crate) location: Location,
    /// Called if the engine drops it unrun.
    pub(crate) dropped: Option<Loose<PyAny>>,
}

impl Callable {
    #[inline]
    pub(crate) fn new(callable: &Bound<'_, PyAny>) -> Self {
        let py = callable.py();
        let (function, dropped) = Answering::open(callable);
        Self { function: function.into(), location: Location::here(py), dropped: dropped.map(Loose::from) }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&*self.function)?;
        visit.call(self.dropped.as_deref())
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        let dropped = self.dropped.as_ref().map(|dropped| dropped.clone_ref(py).into());
        Self { function: self.function.clone_ref(py).into(), location: self.location, dropped }
    }
}

impl Payload for Callable {
    const HOSTED: bool = true;
    // SAFETY: a `Location` is eight bytes without padding.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(offset_of!(Callable, location)) });

    #[inline]
    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: hosted payloads run inside `Gil::enter`.
        let py = unsafe { Python::assume_attached() };
        let callable = self.function.into_inner().into_bound(py);
        let here = Here::now();
        let answer = call(&callable, None);
        here.leave(py, &answer);
        let error = match answer {
            Ok(answer) => match objection(&answer) {
                None => return Ok(()),
                Some(error) => {
                    end(&answer);
                    error
                }
            },
            Err(error) => error,
        };
        let name = name_of(context, &callable);
        Err(cause(py, Exceptions::of(context), &error, &name, self.location))
    }

    fn discard(self) {
        answering::tell(self.dropped);
    }
}

/// `exec_func(done)`, which completes when `done` is used.
pub(crate) struct AsyncCallable(pub(crate) Callable);

impl Payload for AsyncCallable {
    const HOSTED: bool = true;
    // SAFETY: a `Location` is eight bytes without padding.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(offset_of!(AsyncCallable, 0.location)) });

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: hosted payloads run inside `Gil::enter`.
        let py = unsafe { Python::assume_attached() };
        let callable = self.0.function.into_inner().into_bound(py);
        let name = name_of(context, &callable);
        let exceptions = Arc::clone(Exceptions::of(context));
        let completion = Completion::new(context.defer(), Arc::clone(&exceptions), name.clone(), self.0.location);
        let failed = |error: &PyErr| cause(py, &exceptions, error, &name, self.0.location);
        let done = Py::new(py, completion).map_err(|error| failed(&error))?;
        let here = Here::now();
        let answer = PyTuple::new(py, [&done]).and_then(|arguments| call(&callable, Some(&arguments)));
        here.leave(py, &answer);
        let (error, unstarted) = match answer {
            Ok(answer) => match objection(&answer) {
                None => return Ok(()),
                Some(error) => (error, Some(answer)),
            },
            Err(error) => (error, None),
        };
        // Before the token goes, which would be the reason then.
        let told = done.get().fail_with(failed(&error));
        if let Some(answer) = unstarted {
            end(&answer);
        }
        // Its use has ended the op, but for this.
        if told { Ok(()) } else { Err(Cause::Error(Box::new(Raised::new(py, &exceptions, &error)))) }
    }

    fn discard(self) {
        self.0.discard();
    }
}
