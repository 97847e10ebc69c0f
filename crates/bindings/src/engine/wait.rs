//! Waits: without the GIL, and with an ear for signals.

use crate::interpreter::errors;
use crate::interpreter::location::Location;
use crate::interpreter::stall;
use crate::payloads::trace;
use pyo3::prelude::*;
use std::time::Duration;
use weft_engine::trace::{Kind, Note};
use weft_engine::{EngineError, Wait};

/// Runs `wait` detached. Every 50 ms it asks for signals, whose exception ends the wait, and looks whether anything moves.
pub(crate) fn detached(
    py: Python<'_>,
    engine: &weft_engine::Engine,
    timeout: Option<Duration>,
    wait: impl FnOnce(&mut Wait<'_>) -> Result<(), EngineError> + Send,
) -> PyResult<()> {
    let here = Location::here(py);
    let note = if engine.is_traced() { trace::note(py, engine, Kind::Wait, "", here) } else { Note::of(Kind::Wait) };
    let mut signal = None;
    let result = py.detach(|| {
        let mut tick = || {
            let idle = engine.look_for_stall();
            let heard = |py: Python<'_>| {
                if let Some(idle) = idle {
                    stall::tell(py, engine, idle);
                }
                py.check_signals().err()
            };
            signal = Python::try_attach(heard).flatten();
            signal.is_none()
        };
        wait(&mut Wait { timeout, tick: Some(&mut tick), note, place: here.bits() })
    });
    heard(py, result, signal, errors::raised)
}

/// The same for a device, of whose waits no trace tells. It calls `watch` whenever it asks for signals.
pub(crate) fn watching<E: Send>(
    py: Python<'_>,
    timeout: Option<Duration>,
    mut watch: impl FnMut(Python<'_>) + Send,
    wait: impl FnOnce(&mut Wait<'_>) -> Result<(), E> + Send,
    raised: impl FnOnce(Python<'_>, E) -> PyErr,
) -> PyResult<()> {
    let mut signal = None;
    let result = py.detach(|| {
        let mut tick = || {
            let heard = |py: Python<'_>| {
                watch(py);
                py.check_signals().err()
            };
            signal = Python::try_attach(heard).flatten();
            signal.is_none()
        };
        wait(&mut Wait { timeout, tick: Some(&mut tick), ..Wait::default() })
    });
    heard(py, result, signal, raised)
}

fn heard<E>(
    py: Python<'_>,
    result: Result<(), E>,
    signal: Option<PyErr>,
    raised: impl FnOnce(Python<'_>, E) -> PyErr,
) -> PyResult<()> {
    match (result, signal) {
        (Ok(()), None) => Ok(()),
        // A signal that came with the answer is still to be heard.
        (_, Some(signal)) => Err(signal),
        (Err(error), None) => Err(raised(py, error)),
    }
}
