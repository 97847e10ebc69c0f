//! Questions that a recording has no answer to, as nothing of it runs.

use crate::interpreter::errors;
use crate::interpreter::location::Location;
use pyo3::prelude::*;
use weft_array::recording as transcripts;
use weft_engine::{AccessKind, Engine, Variable};

/// Refuses a question about a variable, or a wait for it, that ops change which this thread has recorded, not pushed.
#[inline]
pub(crate) fn check_pushed(py: Python<'_>, variable: &Variable) -> PyResult<()> {
    if transcripts::is_open() { check_recorded(py, variable) } else { Ok(()) }
}

#[cold]
fn check_recorded(py: Python<'_>, variable: &Variable) -> PyResult<()> {
    let changes = |(changed, kind): &(Variable, AccessKind)| kind.makes_version() && changed == variable;
    let last = transcripts::with(|transcript| {
        let mut changing = transcript.calls().iter().rev().filter(|call| call.variables.iter().any(changes));
        changing.next().map(|call| (call.name.clone(), call.place))
    });
    let Some((name, place)) = last.flatten() else { return Ok(()) };
    let refused = format!("the end of '{name}' is not to be waited for");
    let maker = format!("it is recorded, not pushed{}", line_of(py, place));
    Err(refusal(py, &refused, &maker, "Wait for it, and look at its result, outside"))
}

/// Refuses a wait for all ops of an engine, if this thread has recorded one whose effects nothing else would miss: arrays refuse
/// to be looked at themselves.
#[inline]
pub(crate) fn check_all_pushed(py: Python<'_>, engine: &Engine) -> PyResult<()> {
    if transcripts::is_open() { check_all_recorded(py, engine) } else { Ok(()) }
}

#[cold]
fn check_all_recorded(py: Python<'_>, engine: &Engine) -> PyResult<()> {
    let last = transcripts::with(|transcript| {
        let changes = |call: &transcripts::Recorded| call.variables.iter().any(|(_, kind)| kind.makes_version());
        let mut missed = transcript.calls().iter().rev().filter(|call| changes(call) || call.arrays.is_empty());
        missed.next().filter(|_| transcript.engine().is_same(engine)).map(|call| (call.name.clone(), call.place))
    });
    let Some((name, place)) = last.flatten() else { return Ok(()) };
    let maker = format!("'{name}' is recorded, not pushed{}", line_of(py, place));
    Err(refusal(py, "the end of all ops is not to be waited for", &maker, "Wait for them outside"))
}

/// The line of a recorded call, as the end of a clause; nothing if it is not known.
pub(crate) fn line_of(py: Python<'_>, place: u64) -> String {
    Location::of_bits(place).describe(py).map(|line| format!(", at {line}")).unwrap_or_default()
}

/// The error of a question that a recording has no answer to; it ends the recording.
pub(crate) fn refusal(py: Python<'_>, refused: &str, maker: &str, remedy: &str) -> PyErr {
    let asked = Location::here(py).describe(py).map(|line| format!(" (asked at {line})")).unwrap_or_default();
    let open = transcripts::with(|transcript| transcript.tag().name().to_owned()).unwrap_or_default();
    let message =
        format!("{refused} while '{open}' is recorded{asked}: {maker}, and nothing of a recording runs. {remedy}");
    transcripts::fail(&message);
    errors::capture(py, &message)
}
