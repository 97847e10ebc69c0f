//! Python callables as payloads.

use crate::answering::{self, Answering};
use crate::call::call;
use crate::completion::Completion;
use crate::errors;
use crate::exceptions::{Exceptions, Place};
use crate::location::Location;
use pyo3::exceptions::PyBaseException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use std::fmt;
use std::mem::offset_of;
use std::sync::Arc;
use weft_engine::{Cause, OpContext, Payload};

/// An exception that a callable raised.
pub(crate) struct Raised {
    place: Option<Py<Place>>,
    text: String,
}

impl Raised {
    pub(crate) fn new(py: Python<'_>, exceptions: &Arc<Exceptions>, error: &PyErr) -> Self {
        let (value, traceback) = (error.value(py).clone().unbind(), error.traceback(py).map(Bound::unbind));
        let text = error.to_string();
        Self { place: exceptions.keep(py, value, traceback), text }
    }

    /// The original, to be raised again.
    pub(crate) fn exception(&self, py: Python<'_>) -> Option<Py<PyBaseException>> {
        self.place.as_ref()?.get().exception(py)
    }
}

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Raised {}

/// The name of an op for its notes: the given one, or what the callable is called.
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
    // What a device says of an op may have told all of it.
    let told = !place.is_empty() && error.to_string().contains(&format!("{name},{place}"));
    if !told {
        // An exception whose add_note() is broken goes without a note.
        let _ = error.value(py).call_method1("add_note", (format!("weft: {name}{place}"),));
    }
    Cause::Error(Box::new(Raised::new(py, exceptions, error)))
}

/// Refuses what a coroutine function or a generator function answers: none of its body has run, or will.
#[inline]
fn check_done(result: &Bound<'_, PyAny>) -> PyResult<()> {
    if result.is_none() { Ok(()) } else { check_answer(result) }
}

#[cold]
fn check_answer(result: &Bound<'_, PyAny>) -> PyResult<()> {
    static UNSTARTED: PyOnceLock<[Py<PyAny>; 2]> = PyOnceLock::new();
    let py = result.py();
    let [coroutine, generator] = UNSTARTED.get_or_try_init(py, || {
        let types = py.import("types")?;
        PyResult::Ok([types.getattr("CoroutineType")?.unbind(), types.getattr("GeneratorType")?.unbind()])
    })?;
    let kind = result.get_type();
    if !kind.is(coroutine) && !kind.is(generator) {
        return Ok(());
    }
    result.call_method0("close")?; // nobody is to be warned once more
    let message = format!(
        "the call only made a {}, which nobody runs: an op is a plain function; push_async() is for what goes on elsewhere",
        kind.name()?
    );
    Err(errors::argument_type(py, &message))
}

/// `exec_func()`.
pub(crate) struct Callable {
    pub(crate) function: Py<PyAny>,
    pub(crate) location: Location,
    /// Called if the engine drops it unrun.
    pub(crate) dropped: Option<Py<PyAny>>,
}

impl Callable {
    #[inline]
    pub(crate) fn new(callable: &Bound<'_, PyAny>) -> Self {
        let py = callable.py();
        let (function, dropped) = Answering::open(callable);
        Self { function, location: Location::here(py), dropped }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.dropped)
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        let dropped = self.dropped.as_ref().map(|dropped| dropped.clone_ref(py));
        Self { function: self.function.clone_ref(py), location: self.location, dropped }
    }
}

impl Payload for Callable {
    const HOSTED: bool = true;
    const PLACE: Option<usize> = Some(offset_of!(Callable, location));

    #[inline]
    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: hosted payloads run inside `Gil::enter`.
        let py = unsafe { Python::assume_attached() };
        let callable = self.function.into_bound(py);
        match call(&callable, None).and_then(|result| check_done(&result)) {
            Ok(()) => Ok(()),
            Err(error) => {
                let name = name_of(context, &callable);
                Err(cause(py, Exceptions::of(context), &error, &name, self.location))
            }
        }
    }

    fn discard(self) {
        answering::tell(self.dropped);
    }
}

/// `exec_func(done)`, which completes when `done` is used.
pub(crate) struct AsyncCallable(pub(crate) Callable);

impl Payload for AsyncCallable {
    const HOSTED: bool = true;
    const PLACE: Option<usize> = Some(offset_of!(AsyncCallable, 0.location));

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: hosted payloads run inside `Gil::enter`.
        let py = unsafe { Python::assume_attached() };
        let callable = self.0.function.into_bound(py);
        let name = name_of(context, &callable);
        let exceptions = Arc::clone(Exceptions::of(context));
        let completion = Completion::new(context.defer(), Arc::clone(&exceptions), name.clone(), self.0.location);
        let result = Py::new(py, completion).and_then(|done| call(&callable, Some(&PyTuple::new(py, [done])?)));
        match result.and_then(|result| check_done(&result)) {
            Ok(()) => Ok(()),
            Err(error) => Err(cause(py, &exceptions, &error, &name, self.0.location)),
        }
    }

    fn discard(self) {
        self.0.discard();
    }
}
