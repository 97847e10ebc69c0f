//! MPI's functions, found by name in the library that the process has loaded.
//!
//! Handles are passed as machine words. MPI implementations have them as pointers or as 32-bit numbers, which the calling
//! conventions of all 64-bit machines pass in the low half of the same register; where MPI writes a handle, it finds a word.

use crate::MpiError;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A handle of MPI's: of a communicator, a datatype, an operation.
pub type Handle = usize;

/// Where MPI writes its status of a message: larger than any implementation's.
pub(crate) type Status = [u64; 16];

/// Room for MPI's texts of errors.
const TEXT: usize = 8192;

/// The constants of a library of MPI's.
#[derive(Debug, Clone, Copy)]
pub struct Constants {
    /// `MPI_IN_PLACE`.
    pub in_place: usize,
    /// `MPI_ANY_SOURCE`.
    pub any_source: i32,
    /// `MPI_BYTE`.
    pub byte: Handle,
    /// Whether threads may call it side by side; if not, they take turns.
    pub multiple: bool,
}

macro_rules! symbols {
    ($($field:ident: $symbol:ident($($argument:ident: $kind:ty),*);)+) => {
        pub(crate) struct Symbols {
            $(pub(crate) $field: unsafe extern "C" fn($($kind),*) -> c_int,)+
            pub(crate) error_string: unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> c_int,
        }

        impl Symbols {
            /// # Safety
            ///
            /// The library is one of MPI's.
            unsafe fn find(library: &libloading::Library) -> Result<Self, MpiError> {
                Ok(Self {
                    // SAFETY: MPI's function of this name has this type, but for the width of handles.
                    $($field: *unsafe { library.get(concat!(stringify!($symbol), "\0").as_bytes()) }
                        .map_err(|_| MpiError::Symbol(stringify!($symbol)))?,)+
                    // SAFETY: as above.
                    error_string: *unsafe { library.get(b"MPI_Error_string\0") }
                        .map_err(|_| MpiError::Symbol("MPI_Error_string"))?,
                })
            }
        }

        #[cfg(test)]
        impl Symbols {
            /// Functions that all answer with an error.
            pub(crate) fn refusing() -> Self {
                unsafe extern "C" fn say(_: c_int, _: *mut c_char, length: *mut c_int) -> c_int {
                    // SAFETY: there is room for the length.
                    unsafe { length.write(0) };
                    0
                }
                Self {
                    $($field: {
                        unsafe extern "C" fn refuse($(_: $kind),*) -> c_int {
                            1
                        }
                        refuse
                    },)+
                    error_string: say,
                }
            }
        }

        impl Library {
            $(
                /// MPI's function of this name.
                ///
                /// # Safety
                ///
                /// MPI's own conditions on its arguments.
                #[allow(clippy::too_many_arguments)] // MPI's
                pub(crate) unsafe fn $field(&self, $($argument: $kind),*) -> Result<(), MpiError> {
                    let _turn = self.turn();
                    // SAFETY: the caller's promise.
                    let code = unsafe { (self.symbols.$field)($($argument),*) };
                    if code == 0 { Ok(()) } else { Err(self.refusal(stringify!($symbol), code)) }
                }
            )+
        }
    };
}

symbols! {
    iallreduce: MPI_Iallreduce(from: *const c_void, to: *mut c_void, count: c_int, of: Handle, op: Handle, on: Handle, request: *mut u64);
    ibcast: MPI_Ibcast(at: *mut c_void, count: c_int, of: Handle, root: c_int, on: Handle, request: *mut u64);
    iallgather: MPI_Iallgather(from: *const c_void, count: c_int, of: Handle, to: *mut c_void, each: c_int, kind: Handle, on: Handle, request: *mut u64);
    ireduce_scatter_block: MPI_Ireduce_scatter_block(from: *const c_void, to: *mut c_void, count: c_int, of: Handle, op: Handle, on: Handle, request: *mut u64);
    ialltoall: MPI_Ialltoall(from: *const c_void, count: c_int, of: Handle, to: *mut c_void, each: c_int, kind: Handle, on: Handle, request: *mut u64);
    ibarrier: MPI_Ibarrier(on: Handle, request: *mut u64);
    isend: MPI_Isend(from: *const c_void, count: c_int, of: Handle, to: c_int, tag: c_int, on: Handle, request: *mut u64);
    irecv: MPI_Irecv(to: *mut c_void, count: c_int, of: Handle, from: c_int, tag: c_int, on: Handle, request: *mut u64);
    recv: MPI_Recv(to: *mut c_void, count: c_int, of: Handle, from: c_int, tag: c_int, on: Handle, status: *mut c_void);
    iprobe: MPI_Iprobe(from: c_int, tag: c_int, on: Handle, flag: *mut c_int, status: *mut c_void);
    test: MPI_Test(request: *mut u64, flag: *mut c_int, status: *mut c_void);
    get_count: MPI_Get_count(status: *const c_void, of: Handle, count: *mut c_int);
    cancel: MPI_Cancel(request: *mut u64);
    request_free: MPI_Request_free(request: *mut u64);
    finalized: MPI_Finalized(flag: *mut c_int);
}

/// The library of MPI's, through the file that was linked with it: a lookup in that file looks there, too.
#[cfg(not(windows))]
fn loaded(path: &str) -> Result<libloading::Library, MpiError> {
    // SAFETY: it is loaded already, so that nothing of it runs now.
    unsafe { libloading::Library::new(path) }.map_err(|error| MpiError::Library(error.to_string()))
}

/// The library of MPI's, by its own name: on Windows a lookup looks into one file alone.
#[cfg(windows)]
fn loaded(path: &str) -> Result<libloading::Library, MpiError> {
    /// Microsoft's and Intel's, the two that mpi4py is built with there.
    const NAMES: [&str; 2] = ["msmpi.dll", "impi.dll"];
    NAMES
        .into_iter()
        .find_map(|name| libloading::os::windows::Library::open_already_loaded(name).ok())
        .map(libloading::Library::from)
        .ok_or_else(|| MpiError::Library(format!("{path} has loaded none of {}", NAMES.join(", "))))
}

/// A library of MPI's, initialised elsewhere.
pub struct Library {
    symbols: Symbols,
    pub(crate) constants: Constants,
    /// Where threads take turns.
    turns: Option<Mutex<()>>,
    /// Stays loaded, where the functions are of one.
    _opened: Option<libloading::Library>,
}

impl Library {
    /// Finds MPI in what this file, which is loaded already, was linked with.
    ///
    /// # Safety
    ///
    /// The file was linked with a library of MPI's, of which the constants are.
    pub unsafe fn open(path: &str, constants: Constants) -> Result<Self, MpiError> {
        let library = loaded(path)?;
        // SAFETY: the caller's promise.
        let symbols = unsafe { Symbols::find(&library) }?;
        let turns = (!constants.multiple).then(Mutex::default);
        Ok(Self { symbols, constants, turns, _opened: Some(library) })
    }

    /// A library of these functions.
    #[cfg(test)]
    pub(crate) fn of(symbols: Symbols) -> Self {
        let constants = Constants { in_place: 0, any_source: -1, byte: 1, multiple: true };
        Self { symbols, constants, turns: None, _opened: None }
    }

    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.turns.as_ref().map(|turns| turns.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[cold]
    fn refusal(&self, function: &'static str, code: c_int) -> MpiError {
        let (mut text, mut length) = ([0 as c_char; TEXT], 0);
        // SAFETY: there is more room than any implementation asks for.
        unsafe { (self.symbols.error_string)(code, text.as_mut_ptr(), &raw mut length) };
        // SAFETY: the buffer ends in zeros.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
        MpiError::Call { function, text }
    }

    /// Whether the request is done. The status of its message is then in `status`.
    pub(crate) fn is_done(&self, request: &mut u64, status: &mut Status) -> Result<bool, MpiError> {
        let mut flag = 0;
        // SAFETY: the request is one of MPI's, the status has room.
        unsafe { self.test(request, &raw mut flag, status.as_mut_ptr().cast()) }?;
        Ok(flag != 0)
    }

    /// Whether MPI has come to its end in this process.
    #[must_use]
    pub fn is_finalized(&self) -> bool {
        let mut flag = 0;
        // SAFETY: may be called at any time.
        unsafe { self.finalized(&raw mut flag) }.is_err() || flag != 0
    }
}

#[cfg(test)]
mod tests {
    use super::loaded;
    use crate::MpiError;

    #[test]
    fn a_process_without_mpi_is_told_so() {
        let error = loaded("/nowhere/MPI.so").err();
        assert!(matches!(error, Some(MpiError::Library(_))), "{error:?}");
    }
}
