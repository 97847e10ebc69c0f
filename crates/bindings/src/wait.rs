//! Waits: without the GIL, and with an ear for signals.

use crate::errors;
use crate::location::Location;
use crate::trace;
use pyo3::prelude::*;
use std::time::Duration;
use weft_engine::trace::{Kind, Note};
use weft_engine::{EngineError, Wait};

/// Runs `wait` detached. Every 50 ms it asks for signals, whose exception ends the wait.
pub(crate) fn detached(
    py: Python<'_>,
    engine: &weft_engine::Engine,
    timeout: Option<Duration>,
    wait: impl FnOnce(&mut Wait<'_>) -> Result<(), EngineError> + Send,
) -> PyResult<()> {
    let mut signal = None;
    let is_traced = engine.is_traced();
    let note =
        if is_traced { trace::note(py, engine, Kind::Wait, "", Location::here(py)) } else { Note::of(Kind::Wait) };
    let result = py.detach(|| {
        let mut tick = || {
            signal = Python::try_attach(|py| py.check_signals().err()).flatten();
            signal.is_none()
        };
        wait(&mut Wait { timeout, tick: Some(&mut tick), note })
    });
    match (result, signal) {
        (Ok(()), None) => Ok(()),
        // A signal that came with the answer is still to be heard.
        (_, Some(signal)) => Err(signal),
        (Err(error), None) => Err(errors::raised(py, error)),
    }
}
