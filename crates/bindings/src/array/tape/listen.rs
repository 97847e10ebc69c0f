//! Whether the tape listens.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::cell::Cell;

thread_local! {
    /// What holds for this thread, bit by bit; one byte, as the reserve for such variables is small.
    static FLAGS: Cell<u8> = const { Cell::new(0) };
}

/// Ops are not heard: another one is computed by them.
const PAUSED: u8 = 1;
/// A node is being dropped.
const DROPPING: u8 = 2;

fn set(flag: u8, value: bool) -> bool {
    let before = FLAGS.get();
    FLAGS.set(if value { before | flag } else { before & !flag });
    before & flag != 0
}

/// Answers whether this thread drops no other node now.
pub(crate) fn begin_dropping() -> bool {
    !set(DROPPING, true)
}

pub(crate) fn end_dropping() {
    set(DROPPING, false);
}

/// Reads the context variable of the mode: True, False, or None where nobody has said.
static MODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
/// Reads the context variable that says whether layers train.
static TRAINING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Names the context variables that say whether the tape listens in this task, and whether layers train.
#[pyfunction]
pub(crate) fn tape_mode(listening: &Bound<'_, PyAny>, training: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = listening.py();
    let _ = MODE.set(py, listening.getattr("get")?.unbind()); // who comes second has named the same ones
    let _ = TRAINING.set(py, training.getattr("get")?.unbind());
    Ok(())
}

/// Whether the tape listens here, and from the second bit on whether layers train: a number, for signatures.
#[pyfunction]
pub(crate) fn tape_surroundings(py: Python<'_>) -> PyResult<u8> {
    let trains = match TRAINING.get(py) {
        Some(training) => training.call0(py)?.is_truthy(py)?,
        None => false,
    };
    Ok(u8::from(listens(py)?) | u8::from(trains) << 1)
}

/// Stops this thread's ops from being heard, or lets them be; returns what was before.
#[pyfunction]
pub(crate) fn tape_pause(paused: bool) -> bool {
    set(PAUSED, paused)
}

/// Lets this thread's ops be heard.
pub(crate) fn resume() {
    set(PAUSED, false);
}

#[inline]
pub(crate) fn is_paused() -> bool {
    FLAGS.get() & PAUSED != 0
}

/// Whether ops over known arrays are to be heard.
pub(crate) fn listens(py: Python<'_>) -> PyResult<bool> {
    if is_paused() {
        return Ok(false);
    }
    match MODE.get(py) {
        Some(mode) => Ok(!mode.call0(py)?.is(&*pyo3::types::PyBool::new(py, false))),
        None => Ok(true),
    }
}
