//! Engine errors as Python exceptions: one class of `weft.errors` for each variant.

use super::devices;
use super::failures::{CommunicatorFailure, NativeFailure, Raised, Thrown};
use super::location::Location;
use super::loose::Loose;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyBaseException, PyException, PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;
use std::sync::Arc;
use weft_engine::{Cause, EngineError, Failure};
use weft_graph::GraphError;
use weft_mpi::MpiError;
use weft_plan::PlanError;

/// `weft.errors`, held because nothing can be imported any more when the interpreter ends.
static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// Makes the classes known; called when the extension is imported.
pub(crate) fn load(py: Python<'_>) -> PyResult<()> {
    CLASSES.get_or_try_init(py, || py.import("weft.errors").map(Bound::unbind)).map(drop)
}

/// The folder of the package, from which ops are pushed on behalf of others.
pub(crate) fn package_folder(py: Python<'_>) -> Option<String> {
    let file: String = CLASSES.get(py)?.bind(py).getattr("__file__").ok()?.extract().ok()?;
    Some(file.strip_suffix("errors.py")?.to_owned())
}

/// An exception of the class of this name in `weft.errors`.
pub(crate) fn of_class<'py>(py: Python<'py>, class: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let made = load(py).and_then(|()| match CLASSES.get(py) {
        Some(classes) => classes.bind(py).getattr(class)?.call1(arguments),
        None => unreachable!("load() has succeeded"),
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

pub(crate) fn completion(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "CompletionError", (message,))
}

pub(crate) fn argument_type(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "ArgumentTypeError", (message,))
}

pub(crate) fn argument_value(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "ArgumentValueError", (message,))
}

pub(crate) fn argument_index(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "ArgumentIndexError", (message,))
}

pub(crate) fn capture(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "CaptureError", (message,))
}

pub(crate) fn gradient(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "GradientError", (message,))
}

pub(crate) fn variable_deleted(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "VariableDeletedError", (message,))
}

pub(crate) fn nested_push(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "NestedPushError", (message,))
}

/// Says why something cannot be recovered, for the exception that spoilt it.
pub(crate) fn recovery(py: Python<'_>, what: &str, why: &str, op: &str, cause: PyErr) -> PyErr {
    let message = format!("{what} cannot be recovered: {why} ({op}); overwrite it, or load what was saved");
    let error = of_class(py, "RecoveryError", (message,));
    error.set_cause(py, Some(cause));
    error
}

/// Adds a note to an exception that does not have it yet. One that takes none stays as it is.
pub(crate) fn add_note_once(py: Python<'_>, error: &PyErr, note: &str) {
    let value = error.value(py);
    let notes: Vec<String> = value.getattr("__notes__").and_then(|notes| notes.extract()).unwrap_or_default();
    if !notes.iter().any(|known| known == note) {
        let _ = value.call_method1("add_note", (note,));
    }
}

/// The exception of a function on arrays, as an error of weft where NumPy or Python has refused its arguments.
#[cold]
pub(crate) fn sifted(py: Python<'_>, error: PyErr) -> PyErr {
    let value = error.value(py);
    let sift = || {
        value.setattr("__traceback__", error.traceback(py))?; // which of code is looked at
        py.import("weft._registry.sieve")?.getattr("sifted")?.call1((value,))
    };
    match sift() {
        Ok(found) if !found.is(value) => PyErr::from_value(found),
        // Where nothing can be imported or allocated any more, too, the error stays the same.
        _ => error,
    }
}

pub(crate) fn out_of_memory(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "OutOfMemoryError", (message,))
}

/// The exception that a failed version raises: the original one where there is one. One that is made here for a native op has
/// the note that those of callables have.
pub(crate) fn of_failure(py: Python<'_>, failure: &Failure) -> PyErr {
    let exception = exception_of(py, failure);
    if failure.place() != 0
        && let Some(place) = Location::of_bits(failure.place()).describe(py)
        && !is_noted(&exception, py)
    {
        add_note_once(py, &exception, &format!("weft: {} pushed at {place}", failure.op()));
    }
    exception
}

/// Whether an exception says which op it is of, in its message or in a note.
fn is_noted(exception: &PyErr, py: Python<'_>) -> bool {
    if exception.value(py).str().is_ok_and(|message| message.to_string_lossy().contains(", pushed at ")) {
        return true;
    }
    let notes: Vec<String> =
        exception.value(py).getattr("__notes__").and_then(|notes| notes.extract()).unwrap_or_default();
    notes.iter().any(|note| note.starts_with("weft: "))
}

fn exception_of(py: Python<'_>, failure: &Failure) -> PyErr {
    let message = failure.to_string();
    match failure.cause() {
        Cause::Error(error) => match error.downcast_ref::<Raised>() {
            Some(raised) => match raised.exception(py) {
                Some(exception) => PyErr::from_value(exception.into_bound(py).into_any()),
                None => of_class(py, "WeftError", (&message,)),
            },
            None => match error.downcast_ref::<NativeFailure>() {
                Some(native) => of_native(py, native),
                None if error.is::<weft_array::OutOfMemory>() => out_of_memory(py, &message),
                None if error.is::<weft_kernels::OutOfRange>() => argument_index(py, &message),
                None if error.is::<CommunicatorFailure>() => of_communicator(py, failure, error.downcast_ref()),
                None => devices::all()
                    .find_map(|kind| kind.exception(py, failure, &**error))
                    .unwrap_or_else(|| of_class(py, "WeftError", (&message,))),
            },
        },
        Cause::Native(code) => of_class(py, "NativeOpError", (message, *code)),
        Cause::Cancelled => of_class(py, "OpCancelledError", (&message,)),
        Cause::TokenDropped => of_class(py, "CompletionError", (&message,)),
        Cause::Forked => of_class(py, "ForkedError", (&message,)),
        _ => of_class(py, "WeftError", (&message,)),
    }
}

/// The failure of a collective. The message names the op whose own failure it is, and none that it has taken along.
fn of_communicator(py: Python<'_>, failure: &Failure, failed: Option<&CommunicatorFailure>) -> PyErr {
    let Some(failed) = failed else { return of_class(py, "CommunicatorError", (failure.to_string(),)) };
    let exception = of_class(py, "CommunicatorError", (failed.error.to_string(),));
    let place = failed.location.describe(py).map(|place| format!(" pushed at {place}")).unwrap_or_default();
    // The exception was made here and takes a note.
    let _ = exception.value(py).call_method1("add_note", (format!("weft: {}{place}", failure.op()),));
    exception
}

/// A communicator's refusal as the exception to raise.
pub(crate) fn mpi(py: Python<'_>, error: &MpiError) -> PyErr {
    of_class(py, "CommunicatorError", (error.to_string(),))
}

fn of_native(py: Python<'_>, native: &NativeFailure) -> PyErr {
    let make = || {
        let exception = of_class(py, "NativeOpError", (native.to_string(), native.code)).into_value(py);
        let place = native.location.describe(py).map(|place| format!(" pushed at {place}")).unwrap_or_default();
        // The exception was made here and takes a note.
        let _ = exception.bind(py).call_method1("add_note", (format!("weft: {}{place}", native.op),));
        exception
    };
    let place = native.place.get_or_init(py, || native.exceptions.keep(py, make(), None).map(Loose::from));
    let exception = place.as_ref().and_then(|place| place.get().exception(py)).unwrap_or_else(make);
    PyErr::from_value(exception.into_bound(py).into_any())
}

/// The error of a graph as the exception to raise: with the line of its node.
pub(crate) fn graph(py: Python<'_>, error: GraphError) -> PyErr {
    let place =
        Location::of_bits(error.place()).describe(py).map(|place| format!(" (made at {place})")).unwrap_or_default();
    match error {
        GraphError::Rule { context, source, of_shapes, .. } => {
            let class = if of_shapes { "ShapeError" } else { "GraphError" };
            match source.downcast::<Thrown>() {
                Ok(thrown) => of_rule(py, class, &context, &place, thrown.0),
                Err(source) => of_class(py, class, (format!("{context}: {source}{place}"),)),
            }
        }
        GraphError::Plan(error) => plan(py, &error),
        error => {
            let class = match &error {
                GraphError::Shape { .. } => "ShapeError",
                GraphError::Gradient { .. } => "GradientError",
                _ => "GraphError",
            };
            of_class(py, class, (format!("{error}{place}"),))
        }
    }
}

/// The exception of a rule in Python: a refusal becomes an error of the graph, any other goes on with a note.
fn of_rule(py: Python<'_>, class: &str, context: &str, place: &str, thrown: PyErr) -> PyErr {
    if thrown.is_instance_of::<PyValueError>(py) || thrown.is_instance_of::<PyTypeError>(py) {
        let made = of_class(py, class, (format!("{context}: {}{place}", thrown.value(py)),));
        made.set_cause(py, Some(thrown));
        return made;
    }
    let thrown = sifted(py, thrown);
    if thrown.is_instance_of::<PyException>(py) {
        // An exception takes a note.
        let _ = thrown.value(py).call_method1("add_note", (format!("weft: {context}{place}"),));
    }
    thrown
}

/// A plan that was refused, or cannot be, as the exception to raise.
pub(crate) fn plan(py: Python<'_>, error: &PlanError) -> PyErr {
    let class = match error {
        PlanError::Interrupted => return PyKeyboardInterrupt::new_err(()),
        PlanError::Lengths { .. }
        | PlanError::Reversed { .. }
        | PlanError::Alignment(_)
        | PlanError::TooLarge { .. }
        | PlanError::Seconds(_) => "ArgumentValueError",
        _ => "PlanError",
    };
    of_class(py, class, (error.to_string(),))
}

/// Several failures as one exception group.
fn group(py: Python<'_>, message: &str, failures: &[Arc<Failure>]) -> PyErr {
    let exceptions = failures.iter().map(|failure| of_failure(py, failure).into_value(py));
    let made = PyList::new(py, exceptions.collect::<Vec<Py<PyBaseException>>>())
        .and_then(|exceptions| py.import("builtins")?.getattr("BaseExceptionGroup")?.call1((message, exceptions)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// An engine's error as the exception to raise.
#[allow(clippy::needless_pass_by_value)] // map_err() hands it over
pub(crate) fn raised(py: Python<'_>, error: EngineError) -> PyErr {
    let message = error.to_string();
    let class = match &error {
        EngineError::Failed(failure) => return of_failure(py, failure),
        EngineError::ManyFailed(failures) => {
            let count: u64 = failures.iter().map(|failure| failure.ops()).sum();
            return group(py, &format!("{count} ops failed"), failures);
        }
        EngineError::Interrupted => return PyKeyboardInterrupt::new_err(()),
        EngineError::VariableDeleted { .. } => "VariableDeletedError",
        EngineError::WrongEngine { .. } => "WrongEngineError",
        EngineError::Deadlock { .. } | EngineError::TooManyWaits { .. } => "DeadlockError",
        EngineError::Closed { .. } => "EngineClosedError",
        EngineError::PendingLimit { .. } => "PendingLimitError",
        EngineError::Timeout { .. } => "WaitTimeoutError",
        EngineError::TokenUsed { .. } => "CompletionError",
        EngineError::Traced { .. } | EngineError::NotTraced { .. } => "TraceError",
        EngineError::InvalidArgument(_) => "ArgumentValueError",
        _ => "WeftError",
    };
    of_class(py, class, (&message,))
}
