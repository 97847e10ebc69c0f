//! Recovery: the last good versions of variables and arrays become their values again.

use crate::array::{NDArray, check_look};
use crate::engine::variable::Variable;
use crate::engine::wait;
use crate::interpreter::arguments::{self, Timeout};
use crate::interpreter::errors;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_array::{Array, Tuple};
use weft_engine::{Engine, EngineError, Failure, Recoverable};

/// What is to be recovered.
enum Item {
    Array(Array),
    Variable(Engine, weft_engine::Variable),
}

impl Item {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if let Ok(array) = object.cast::<NDArray>() {
            let array = array.get().at(py, |own| own.inner.clone());
            check_look(py, &array)?;
            return Ok(Self::Array(array));
        }
        let variable = Variable::argument(object)?.get();
        Ok(Self::Variable(variable.engine(py).get().inner.clone(), variable.inner.clone()))
    }

    fn label(&self) -> String {
        match self {
            Self::Array(array) => {
                format!("the array of shape {} and dtype {}", Tuple(&array.layout().shape), array.dtype().name())
            }
            Self::Variable(_, variable) => variable.label(),
        }
    }

    /// Waits for what is pending, and says what is left.
    fn left(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Recoverable> {
        let engine = match self {
            Self::Array(array) => array.engine(),
            Self::Variable(engine, _) => engine,
        };
        let mut left = None;
        wait::detached(py, engine, timeout, |wait| {
            left = Some(match self {
                Self::Array(array) => array.recoverable(wait)?,
                Self::Variable(engine, variable) => loop {
                    match engine.wait_for_var_with(variable, wait) {
                        Ok(()) | Err(EngineError::Failed(_)) => {}
                        Err(error) => return Err(error),
                    }
                    match engine.recoverable(variable)? {
                        Recoverable::Pending => {}
                        // It stood for something before any op.
                        Recoverable::Kept { failure, .. } => break Recoverable::Kept { failure, made: true },
                        left => break left,
                    }
                },
            });
            Ok(())
        })?;
        Ok(left.unwrap_or(Recoverable::Pending))
    }

    fn recover(&self) -> Result<(), EngineError> {
        match self {
            Self::Array(array) => array.recover(),
            Self::Variable(engine, variable) => engine.recover(&[variable]),
        }
    }
}

/// Waits for what is pending on variables and arrays, and makes the last good version of each the value again: of all or,
/// where one is gone, of none. Answers the exceptions that they had failed with, each once.
#[pyfunction]
#[pyo3(signature = (objs, timeout=None))]
pub(crate) fn _recover(
    py: Python<'_>,
    objs: Vec<Bound<'_, PyAny>>,
    timeout: Option<Timeout>,
) -> PyResult<Vec<Py<PyBaseException>>> {
    let timeout = arguments::timeout(py, timeout)?;
    let start = Instant::now();
    let items = objs.into_iter().map(|object| Item::of(&object)).collect::<PyResult<Vec<_>>>()?;
    let mut kept: Vec<(&Item, Arc<Failure>)> = Vec::new();
    for item in &items {
        let remaining = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        let gone = match item.left(py, remaining)? {
            Recoverable::Kept { failure, made: true } => {
                kept.push((item, failure));
                continue;
            }
            Recoverable::Kept { failure, .. } => (failure, "nothing was ever written to it"),
            Recoverable::Spoilt(failure) => (failure, "an op that failed had begun to change it"),
            _ => continue,
        };
        let (failure, why) = gone;
        let cause = errors::of_failure(py, &failure);
        return Err(errors::recovery(py, &item.label(), why, failure.op(), cause));
    }
    let failed = py.detach(|| kept.iter().try_for_each(|(item, _)| item.recover()));
    failed.map_err(|error| errors::raised(py, error))?;
    let mut told: Vec<Arc<Failure>> = Vec::new();
    for (_, failure) in kept {
        failure.report();
        if !told.iter().any(|known| Arc::ptr_eq(known, &failure)) {
            told.push(failure);
        }
    }
    Ok(told.iter().map(|failure| errors::of_failure(py, failure).into_value(py)).collect())
}

/// Says on the exception of a wait that failed that what it waited for can be recovered, or what it was to be made of, if so.
#[cold]
pub(crate) fn hint(py: Python<'_>, error: PyErr, of: &Array) -> PyErr {
    match py.detach(|| of.is_ready().then(|| of.remains())) {
        Some(Ok(Recoverable::Kept { made: true, .. })) => errors::add_note_once(py, &error, HINT),
        Some(Ok(Recoverable::Kept { .. })) => errors::add_note_once(py, &error, HINT_OF_INPUTS),
        _ => {}
    }
    error
}

/// The same of a variable.
#[cold]
pub(crate) fn hint_of(py: Python<'_>, error: PyErr, engine: &Engine, of: &weft_engine::Variable) -> PyErr {
    let kept = py.detach(|| of.is_ready() && matches!(engine.recoverable(of), Ok(Recoverable::Kept { .. })));
    if kept {
        errors::add_note_once(py, &error, HINT);
    }
    error
}

/// The note that leads to `recover`.
const HINT: &str = "weft: the op that was to change this value was skipped, and the value from before is still there: \
                    recover() makes it the value again (weft.recover(x), x.recover(), and model.recover() for a model)";

/// The same, where there is nothing to recover but what the op was to read: of a loss, after a bad batch.
const HINT_OF_INPUTS: &str = "weft: the op that was to make this value was skipped, for an error before it. An input that still has its value from \
                              before, as a model's parameters have, comes back by recover() (weft.recover(x), model.recover()): then call again";
