//! Calling Python from a worker, which the end of the interpreter may interrupt.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::hint::black_box;

/// Stops the thread for good when it is unwound through.
///
/// The functions of Python's that may do that are called by addresses that the compiler does not see through: it knows
/// them as functions that never unwind, and would leave this guard out.
///
/// Up to 3.13, a thread that asks for the GIL after the interpreter has ended is ended by
/// `pthread_exit`, which unwinds its stack. That must not reach Rust's `catch_unwind`, which would
/// abort the process; a thread that stands still is ended with the process a moment later.
struct StandStill;

impl Drop for StandStill {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

type CallNoArgs = unsafe extern "C-unwind" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;
type CallObject = unsafe extern "C-unwind" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
type CallNamed =
    unsafe extern "C-unwind" fn(*mut ffi::PyObject, *mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

/// `callable(*arguments)`.
#[inline]
pub(crate) fn call<'py>(
    callable: &Bound<'py, PyAny>,
    arguments: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    let stand_still = StandStill;
    // SAFETY: attached, and the objects live. The functions are declared "C" by pyo3; naming them
    // "C-unwind" adds that they may unwind and changes nothing else.
    let result = unsafe {
        let result = match arguments {
            None => {
                let call: CallNoArgs = std::mem::transmute(ffi::PyObject_CallNoArgs as unsafe extern "C" fn(_) -> _);
                black_box(call)(callable.as_ptr())
            }
            Some(arguments) => {
                let call: CallObject = std::mem::transmute(ffi::PyObject_CallObject as unsafe extern "C" fn(_, _) -> _);
                black_box(call)(callable.as_ptr(), arguments.as_ptr())
            }
        };
        Bound::from_owned_ptr_or_opt(callable.py(), result)
    };
    std::mem::forget(stand_still);
    result.ok_or_else(|| PyErr::fetch(callable.py()))
}

/// `callable(*positional, **named)`.
#[inline]
pub(crate) fn call_with<'py>(
    callable: &Bound<'py, PyAny>,
    positional: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let stand_still = StandStill;
    // SAFETY: as above; no dictionary is no names.
    let result = unsafe {
        let call: CallNamed = std::mem::transmute(ffi::PyObject_Call as unsafe extern "C" fn(_, _, _) -> _);
        let named = named.map_or(std::ptr::null_mut(), Bound::as_ptr);
        Bound::from_owned_ptr_or_opt(callable.py(), black_box(call)(callable.as_ptr(), positional.as_ptr(), named))
    };
    std::mem::forget(stand_still);
    result.ok_or_else(|| PyErr::fetch(callable.py()))
}
