//! How deep a walk over Python's values may go: values may contain themselves, and the stack of a thread ends the process.

use pyo3::exceptions::PyRecursionError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::marker::PhantomData;

/// Levels of one thread at most. Python's own limit may be far higher, and a worker's stack is smaller than that of the main
/// thread.
const MOST: u32 = 1000;
/// Levels that any stack has room for: most values are no deeper, and Python is not asked about them.
const FREE: u32 = 16;

thread_local! {
    static LEVELS: Cell<u32> = const { Cell::new(0) };
}

/// One level of a walk, left when it is dropped. Each walk by recursion enters one before it looks into a container.
#[must_use]
pub(crate) struct Level<'py> {
    /// Whether Python counts it, too.
    is_told: bool,
    py: PhantomData<Python<'py>>,
}

impl<'py> Level<'py> {
    /// One level further down; `RecursionError` if that is too deep.
    #[inline]
    pub(crate) fn enter(py: Python<'py>) -> PyResult<Self> {
        LEVELS.with(|levels| {
            let above = levels.get();
            let is_told = above >= FREE;
            if is_told {
                tell(py, above)?;
            }
            levels.set(above + 1);
            Ok(Self { is_told, py: PhantomData })
        })
    }
}

/// Counts a level, with so many above it, among Python's own.
#[cold]
fn tell(py: Python<'_>, above: u32) -> PyResult<()> {
    if above >= MOST {
        return Err(PyRecursionError::new_err("maximum recursion depth exceeded in a nested value"));
    }
    // SAFETY: the thread is attached, and the text is a C string that Python puts behind its own.
    if unsafe { ffi::Py_EnterRecursiveCall(c" in a nested value".as_ptr()) } != 0 {
        return Err(PyErr::fetch(py));
    }
    Ok(())
}

impl Drop for Level<'_> {
    #[inline]
    fn drop(&mut self) {
        LEVELS.with(|levels| levels.set(levels.get() - 1));
        if self.is_told {
            // SAFETY: the level was entered by this thread, which is attached.
            unsafe { ffi::Py_LeaveRecursiveCall() };
        }
    }
}
