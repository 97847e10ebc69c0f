//! Questions that a recording has no answer to, as nothing of it runs.

use crate::interpreter::errors;
use crate::interpreter::location::Location;
use pyo3::prelude::*;
use weft_array::recording as tapes;
use weft_engine::{AccessKind, Variable};

/// Refuses a question about a variable, or a wait for it, that ops change which this thread has recorded, not pushed.
#[inline]
pub(crate) fn check_pushed(py: Python<'_>, variable: &Variable) -> PyResult<()> {
    if tapes::is_open() { check_recorded(py, variable) } else { Ok(()) }
}

#[cold]
fn check_recorded(py: Python<'_>, variable: &Variable) -> PyResult<()> {
    let changes = |(changed, kind): &(Variable, AccessKind)| kind.makes_version() && changed == variable;
    let last = tapes::with(|tape| {
        let mut changing = tape.calls().iter().rev().filter(|call| call.variables.iter().any(changes));
        changing.next().map(|call| (call.name.clone(), call.place))
    });
    let Some((name, place)) = last.flatten() else { return Ok(()) };
    let refused = format!("the end of '{name}' is not to be waited for");
    let maker = format!("it is recorded, not pushed{}", line_of(py, place));
    Err(refusal(py, &refused, &maker, "Wait for it, and look at its result, outside"))
}

/// The line of a recorded call, as the end of a clause; nothing if it is not known.
pub(crate) fn line_of(py: Python<'_>, place: u64) -> String {
    Location::of_bits(place).describe(py).map(|line| format!(", at {line}")).unwrap_or_default()
}

/// The error of a question that a recording has no answer to; it ends the recording.
pub(crate) fn refusal(py: Python<'_>, refused: &str, maker: &str, remedy: &str) -> PyErr {
    let asked = Location::here(py).describe(py).map(|line| format!(" (asked at {line})")).unwrap_or_default();
    let open = tapes::with(|tape| tape.tag().name().to_owned()).unwrap_or_default();
    let message =
        format!("{refused} while '{open}' is recorded{asked}: {maker}, and nothing of a recording runs. {remedy}");
    tapes::fail(&message);
    errors::capture(py, &message)
}
