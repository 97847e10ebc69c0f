//! Where an op was pushed.

use super::errors;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Code objects remembered at most, for good: as many as a program has places that push.
const KNOWN: usize = 1 << 15;
/// Code objects a thread finds without a lock: two to this. Two that share a place are looked up again each time, so there
/// are many more places than code objects that push in one loop.
const AT_HAND_BITS: u32 = 10;
/// Bit of numbers of code objects inside the package: the place is that of their caller.
const INSIDE: u32 = 1 << 31;

/// A place in Python code. Taken at each push, it is half a word of numbers: no reference to keep,
/// no line to compute. Both are made on demand.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Location {
    /// Number of the code object, from 1; 0 is none.
    code: u32,
    /// Offset of the instruction.
    instruction: c_int,
}

#[derive(Default)]
struct Known {
    codes: Vec<Py<PyAny>>,
    numbers: HashMap<usize, u32>,
}

static CODES: Mutex<Option<Known>> = Mutex::new(None);

thread_local! {
    /// Addresses and numbers of code objects seen lately; the objects are held by `CODES`. On the heap: what a library
    /// keeps in place for each thread is taken from a small reserve that all libraries share.
    static SEEN: RefCell<Vec<(usize, u32)>> = const { RefCell::new(Vec::new()) };
}

type GetInstruction = unsafe extern "C" fn(*mut ffi::PyFrameObject) -> c_int;
type GetBack = unsafe extern "C" fn(*mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject;

/// `PyFrame_GetLasti`: part of Python since 3.11 but not of its stable ABI, so its address is
/// asked for. A line number, which is in the stable ABI, takes a walk through the line table: 0.3 us.
static GET_INSTRUCTION: OnceLock<Option<GetInstruction>> = OnceLock::new();
/// `PyFrame_GetBack`, likewise: part of Python since 3.9.
static GET_BACK: OnceLock<Option<GetBack>> = OnceLock::new();

/// The address of a function of Python's that is not part of its stable ABI, if there is one of this name.
pub(crate) fn python_symbol(py: Python<'_>, name: &str) -> Option<usize> {
    let find = || -> PyResult<usize> {
        let ctypes = py.import("ctypes")?;
        let function = ctypes.getattr("pythonapi")?.getattr(name)?;
        ctypes.getattr("cast")?.call1((function, ctypes.getattr("c_void_p")?))?.getattr("value")?.extract()
    };
    find().ok().filter(|&found| found != 0)
}

/// Looks the functions up. Called when the extension is imported: a thread that were to do it later
/// could be caught in the middle by a fork.
pub(crate) fn load(py: Python<'_>) {
    let found = |name: &str| python_symbol(py, name);
    // SAFETY: the symbol of this name has had this type ever since it exists.
    let _ = GET_INSTRUCTION.set(found("PyFrame_GetLasti").map(|found| unsafe { std::mem::transmute(found) }));
    // SAFETY: as above.
    let _ = GET_BACK.set(found("PyFrame_GetBack").map(|found| unsafe { std::mem::transmute(found) }));
}

/// Where a code object is remembered: addresses differ in few bits, which a product spreads.
fn slot(address: usize) -> usize {
    let spread = (address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - AT_HAND_BITS);
    usize::try_from(spread).unwrap_or(0)
}

impl Location {
    const NOWHERE: Self = Self { code: 0, instruction: 0 };

    /// The place that is being executed.
    #[inline]
    pub(crate) fn here(py: Python<'_>) -> Self {
        let Some(&Some(get_instruction)) = GET_INSTRUCTION.get() else { return Self::NOWHERE };
        // SAFETY: attached; the frame is borrowed from the running thread.
        let place = unsafe {
            let frame = ffi::PyEval_GetFrame();
            if frame.is_null() { Self::NOWHERE } else { Self::of_frame(py, frame, get_instruction) }
        };
        if place.code & INSIDE == 0 { place } else { Self::of_caller(py, get_instruction) }
    }

    /// The place in a frame.
    ///
    /// # Safety
    ///
    /// `frame` is a frame.
    #[inline]
    unsafe fn of_frame(py: Python<'_>, frame: *mut ffi::PyFrameObject, get_instruction: GetInstruction) -> Self {
        // SAFETY: the caller's promise; the code is a new reference.
        let (code, instruction) = unsafe {
            let code = ffi::PyFrame_GetCode(frame).cast::<ffi::PyObject>();
            (Bound::from_owned_ptr_or_opt(py, code), get_instruction(frame))
        };
        let Some(code) = code else { return Self::NOWHERE };
        let address = code.as_ptr().addr();
        let found = SEEN.try_with(|seen| {
            let mut seen = seen.borrow_mut();
            if seen.is_empty() {
                seen.resize(1 << AT_HAND_BITS, (0, 0));
            }
            let at_hand = &mut seen[slot(address)];
            if at_hand.0 != address {
                match number_of(code) {
                    0 => return Self::NOWHERE,
                    number => *at_hand = (address, number),
                }
            }
            Self { code: at_hand.1, instruction }
        });
        found.unwrap_or(Self::NOWHERE) // at the end of the thread
    }

    /// The place of the first caller outside the package.
    #[cold]
    fn of_caller(py: Python<'_>, get_instruction: GetInstruction) -> Self {
        // SAFETY: as in here().
        let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
        let mut frame = frame;
        while let Some(at) = frame {
            // SAFETY: it is a frame.
            let place = unsafe { Self::of_frame(py, at.as_ptr().cast(), get_instruction) };
            if place.code & INSIDE == 0 {
                return place;
            }
            let Some(&Some(get_back)) = GET_BACK.get() else { break };
            // SAFETY: as above; it is a new reference, or null.
            frame = unsafe { Bound::from_owned_ptr_or_opt(py, get_back(at.as_ptr().cast()).cast()) };
        }
        Self::NOWHERE
    }

    /// Its eight bytes; 0 is nowhere.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.code.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.instruction.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    }

    pub(crate) fn of_bits(bits: u64) -> Self {
        let bytes = bits.to_ne_bytes();
        let half = |at: usize| std::array::from_fn(|byte| bytes[at + byte]);
        Self { code: u32::from_ne_bytes(half(0)), instruction: c_int::from_ne_bytes(half(4)) }
    }

    /// `file.py:12`, in a notebook `Cell In[9], line 12`, or nothing where that is not known.
    pub(crate) fn describe(self, py: Python<'_>) -> Option<String> {
        let code = {
            let known = CODES.lock().unwrap_or_else(PoisonError::into_inner);
            known.as_ref()?.codes.get((self.code & !INSIDE).checked_sub(1)? as usize)?.clone_ref(py)
        };
        let code = code.bind(py);
        let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
        let mut line = None;
        for range in code.call_method0("co_lines").ok()?.try_iter().ok()? {
            let (start, end, at): (c_int, c_int, Option<u32>) = range.ok()?.extract().ok()?;
            if (start..end).contains(&self.instruction) {
                line = at;
                break;
            }
        }
        Some(match (cell_of(py, &file), line) {
            (Some(cell), Some(line)) => format!("{cell}, line {line}"),
            (Some(cell), None) => cell,
            (None, Some(line)) => format!("{file}:{line}"),
            (None, None) => file,
        })
    }
}

/// What a notebook calls the cell that ran under a file's name.
fn cell_of(py: Python<'_>, file: &str) -> Option<String> {
    py.import("weft._trace.cells").ok()?.getattr("cell_of").ok()?.call1((file,)).ok()?.extract().ok()?
}

/// The number of a code object, which is held from now on; 0 if there are too many already.
#[cold]
fn number_of(code: Bound<'_, PyAny>) -> u32 {
    let inside = || -> Option<bool> {
        let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
        let within = file.strip_prefix(&errors::package_folder(code.py())?)?;
        // The benchmarks come with the package, but use it as anybody's program does.
        Some(!Path::new(within).starts_with("bench"))
    };
    let inside = if inside().unwrap_or(false) { INSIDE } else { 0 };
    let mut known = CODES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    let address = code.as_ptr().addr();
    if let Some(&number) = known.numbers.get(&address) {
        return number;
    }
    if known.codes.len() == KNOWN {
        return 0;
    }
    known.codes.push(code.unbind());
    let number = u32::try_from(known.codes.len()).unwrap_or(0) | inside;
    known.numbers.insert(address, number);
    number
}
