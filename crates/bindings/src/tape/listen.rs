//! Whether the tape listens.

use crate::interpreter::location::python_symbol;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBool;
use std::cell::Cell;
use std::ffi::c_int;
use std::ptr;
use std::sync::OnceLock;

thread_local! {
    /// The state of this thread, bit by bit; one byte, as the reserve for such variables is small.
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

/// The context variable of the mode: True, False, or None by default.
static MODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
/// The context variable that says whether layers train.
static TRAINING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

type Get = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject, *mut *mut ffi::PyObject) -> c_int;

/// `PyContextVar_Get`: part of Python since 3.7 but not of its stable ABI, so its address is asked for. It looks where the
/// variable was found last, and a call of the method `get` takes a tenth of what noting an op does.
static GET: OnceLock<Option<Get>> = OnceLock::new();

/// The value here of a context variable with a default.
fn value_of<'py>(variable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = variable.py();
    let Some(&Some(get)) = GET.get() else { return variable.call_method0("get") };
    let mut found = ptr::null_mut();
    // SAFETY: attached; `tape_mode` has made sure that it is such a variable. The value is a new reference.
    unsafe {
        if get(variable.as_ptr(), ptr::null_mut(), &raw mut found) < 0 {
            return Err(PyErr::fetch(py));
        }
        Bound::from_owned_ptr_or_err(py, found)
    }
}

/// Names the context variables that say whether the tape listens in this task, and whether layers train.
#[pyfunction]
pub(crate) fn tape_mode(listening: &Bound<'_, PyAny>, training: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = listening.py();
    let kind = py.import("contextvars")?.getattr("ContextVar")?;
    if !listening.get_type().is(&kind) || !training.get_type().is(&kind) {
        return Err(PyTypeError::new_err("the modes of the tape are context variables"));
    }
    // SAFETY: the symbol of this name has had this type ever since it exists.
    let get = python_symbol(py, "PyContextVar_Get").map(|found| unsafe { std::mem::transmute::<usize, Get>(found) });
    let _ = GET.set(get);
    let _ = MODE.set(py, listening.clone().unbind()); // a second call names the same ones
    let _ = TRAINING.set(py, training.clone().unbind());
    Ok(())
}

/// Whether the tape listens here, and from the second bit on whether layers train: a number, for signatures.
#[pyfunction]
pub(crate) fn tape_surroundings(py: Python<'_>) -> PyResult<u8> {
    let trains = match TRAINING.get(py) {
        Some(training) => value_of(training.bind(py))?.is_truthy()?,
        None => false,
    };
    Ok(u8::from(listens(py)?) | u8::from(trains) << 1)
}

/// Stops this thread's ops from being heard, or lets them be; returns the state before.
#[pyfunction]
pub(crate) fn tape_pause(paused: bool) -> bool {
    set(PAUSED, paused)
}

/// Whether this thread's ops are not heard.
#[pyfunction]
pub(crate) fn tape_paused() -> bool {
    is_paused()
}

/// Stops this thread's ops from being heard.
pub(crate) fn pause() {
    set(PAUSED, true);
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
        Some(mode) => Ok(!value_of(mode.bind(py))?.is(&*PyBool::new(py, false))),
        None => Ok(true),
    }
}
