//! Where an op was pushed.

use pyo3::ffi;
use pyo3::prelude::*;

/// A line of Python code. Taken at each push, so it holds what is cheap to get; the file's name is
/// looked up when it is needed.
pub(crate) struct Location {
    code: Option<Py<PyAny>>,
    line: i32,
}

impl Location {
    /// The line that is being executed.
    #[inline]
    pub(crate) fn here(py: Python<'_>) -> Self {
        // SAFETY: attached; the frame is borrowed from the running thread, the code is a new reference.
        unsafe {
            let frame = ffi::PyEval_GetFrame();
            if frame.is_null() {
                return Self { code: None, line: 0 };
            }
            let code = ffi::PyFrame_GetCode(frame).cast::<ffi::PyObject>();
            Self { code: Bound::from_owned_ptr_or_opt(py, code).map(Bound::unbind), line: ffi::PyFrame_GetLineNumber(frame) }
        }
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self { code: self.code.as_ref().map(|code| code.clone_ref(py)), line: self.line }
    }

    /// `file.py:12`, or nothing for code that is in no file.
    pub(crate) fn describe(&self, py: Python<'_>) -> Option<String> {
        let file = self.code.as_ref()?.bind(py).getattr("co_filename").ok()?;
        Some(format!("{}:{}", file.extract::<String>().ok()?, self.line))
    }
}
