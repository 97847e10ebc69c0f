//! Where an op was pushed.

use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Code objects whose files a thread remembers: a power of two.
const REMEMBERED: usize = 64;

/// A line of Python code, in two words' half: taken at each push, it holds no reference and needs
/// no clean-up. The names of files are kept for good; there are as many as a program has files.
#[derive(Clone, Copy)]
pub(crate) struct Location {
    file: u32,
    line: i32,
}

/// File number 0 is none.
static FILES: Mutex<Option<Files>> = Mutex::new(None);

#[derive(Default)]
struct Files {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

thread_local! {
    /// Code objects seen lately, held so that their addresses stay theirs, and the numbers of their files.
    static SEEN: RefCell<Vec<Option<(Py<PyAny>, u32)>>> = const { RefCell::new(Vec::new()) };
}

impl Location {
    const NOWHERE: Self = Self { file: 0, line: 0 };

    /// The line that is being executed.
    #[inline]
    pub(crate) fn here(py: Python<'_>) -> Self {
        // SAFETY: attached; the frame is borrowed from the running thread, the code is a new reference.
        let (code, line) = unsafe {
            let frame = ffi::PyEval_GetFrame();
            if frame.is_null() {
                return Self::NOWHERE;
            }
            let code = ffi::PyFrame_GetCode(frame).cast::<ffi::PyObject>();
            (Bound::from_owned_ptr_or_opt(py, code), ffi::PyFrame_GetLineNumber(frame))
        };
        let Some(code) = code else { return Self::NOWHERE };
        let place = code.as_ptr().addr() / 64 % REMEMBERED;
        SEEN.with_borrow_mut(|seen| {
            if let Some(Some((known, file))) = seen.get(place)
                && known.is(&code)
            {
                return Self { file: *file, line };
            }
            seen.resize_with(REMEMBERED, || None);
            let file = number_of_file(&code);
            seen[place] = Some((code.unbind(), file));
            Self { file, line }
        })
    }

    /// `file.py:12`, or nothing for code that is in no file.
    pub(crate) fn describe(self) -> Option<String> {
        let files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        let file = files.as_ref()?.names.get(self.file.checked_sub(1)? as usize)?;
        Some(format!("{file}:{}", self.line))
    }
}

/// The number of the file that a code object is from.
#[cold]
fn number_of_file(code: &Bound<'_, PyAny>) -> u32 {
    let Ok(name) = code.getattr("co_filename").and_then(|name| name.extract::<String>()) else { return 0 };
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let files = files.get_or_insert_default();
    if let Some(&number) = files.numbers.get(&name) {
        return number;
    }
    files.names.push(name.clone());
    let number = u32::try_from(files.names.len()).unwrap_or(0);
    files.numbers.insert(name, number);
    number
}
