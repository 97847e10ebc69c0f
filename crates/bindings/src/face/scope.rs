//! `weft._core.Scope`: switches that hold for a block.
//!
//! Beginning a block is one call of the interpreter's, and so is ending it. Interrupts come between the instructions of
//! Python's code, never inside a call of this one: so either all switches are set and the block will set them back, or
//! none is. A generator with `try` and `finally` cannot promise that.

use crate::signature::Eager;
use crate::tape::listen::tape_pause;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_array::recording::set_in_order;

/// A context variable, and its value in the block.
type Pair = (Py<PyAny>, Py<PyAny>);

/// The state that a block sets back.
struct Before {
    /// Variables with the tokens of their values before.
    tokens: Vec<Pair>,
    paused: Option<bool>,
    in_order: Option<bool>,
    _eager: Option<Eager>,
}

/// Context variables and switches of this thread and process, as they are in a block.
///
/// A subclass has a method `_changes()`, which gives further pairs of variables and values at the beginning of each block;
/// the block's value then is the object itself.
#[pyclass(module = "weft._core", frozen, subclass)]
pub(crate) struct Scope {
    changes: Vec<Pair>,
    eager: bool,
    paused: Option<bool>,
    in_order: Option<bool>,
    /// Of the blocks that have begun and not ended, the innermost last.
    open: Mutex<Vec<Before>>,
}

impl Scope {
    fn open(&self) -> MutexGuard<'_, Vec<Before>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets variables back, the last one first. Answers the first error.
fn reset(py: Python<'_>, tokens: Vec<Pair>) -> PyResult<()> {
    let reset = |(variable, token): Pair| variable.call_method1(py, "reset", (token,)).map(drop);
    tokens.into_iter().rev().map(reset).fold(Ok(()), PyResult::and)
}

#[pymethods]
impl Scope {
    #[new]
    #[pyo3(signature = (*changes, eager=false, paused=None, in_order=None))]
    fn new(
        changes: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        eager: bool,
        paused: Option<bool>,
        in_order: Option<bool>,
    ) -> Self {
        let changes = changes.into_iter().map(|(variable, value)| (variable.unbind(), value.unbind())).collect();
        Self { changes, eager, paused, in_order, open: Mutex::default() }
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, Self>>> {
        let (py, own) = (slf.py(), slf.get());
        let is_own = slf.get_type().is(py.get_type::<Self>());
        // The steps that run Python come first.
        let further: Vec<Pair> = if is_own { Vec::new() } else { slf.call_method0("_changes")?.extract()? };
        let mut tokens = Vec::with_capacity(own.changes.len() + further.len());
        for (variable, value) in own.changes.iter().chain(&further) {
            match variable.call_method1(py, "set", (value,)) {
                Ok(token) => tokens.push((variable.clone_ref(py), token)),
                Err(error) => {
                    let _ = reset(py, tokens); // the error that came first is told
                    return Err(error);
                }
            }
        }
        let before = Before {
            tokens,
            paused: own.paused.map(tape_pause),
            in_order: own.in_order.map(set_in_order),
            _eager: own.eager.then(Eager::begin),
        };
        own.open().push(before);
        Ok((!is_own).then(|| slf.clone()))
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        let Some(before) = self.open().pop() else { return Ok(()) };
        before.in_order.map(set_in_order);
        before.paused.map(tape_pause);
        reset(py, before.tokens)
    }

    /// Makes of a function one whose calls are blocks.
    fn __call__<'py>(slf: &Bound<'py, Self>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let decorator = slf.py().import("contextlib")?.getattr("ContextDecorator")?;
        decorator.call_method1("__call__", (slf, function))
    }

    /// One for the next call of such a function, which may be inside another one or on another thread.
    fn _recreate_cm(&self, py: Python<'_>) -> Self {
        let copy = |(variable, value): &Pair| (variable.clone_ref(py), value.clone_ref(py));
        let changes = self.changes.iter().map(copy).collect();
        let Self { eager, paused, in_order, .. } = *self;
        Self { changes, eager, paused, in_order, open: Mutex::default() }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let open = self.open.try_lock();
        let tokens = open.iter().flat_map(|open| open.iter()).flat_map(|before| &before.tokens);
        for (variable, value) in self.changes.iter().chain(tokens) {
            visit.call(variable)?;
            visit.call(value)?;
        }
        Ok(())
    }
}
