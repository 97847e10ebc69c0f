//! The status with which the process exits.
//!
//! Python decides it before its `atexit` callbacks run, and nothing there changes it. So this is done behind Python's own end,
//! when all it has to flush is flushed.
//!
//! | C library | by | changes |
//! |---|---|---|
//! | glibc | `on_exit`, whose handler is told the status | 0 to 1 |
//! | others | `Py_AtExit`, which is not | every status to 1 |
//!
//! Both end in `exit`, which runs what others have left to be run: glibc goes on with its list where a handler calls it, and
//! `Py_AtExit` comes before anybody has.

use pyo3::prelude::*;
use std::ffi::c_int;

unsafe extern "C" {
    fn exit(status: c_int) -> !;
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use super::exit;
    use std::ffi::{c_int, c_void};

    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }

    /// `process` is the one that has asked: its forks have failures of their own.
    extern "C" fn change(status: c_int, process: *mut c_void) {
        if status == 0 && process.addr() == std::process::id() as usize {
            // SAFETY: glibc lets handlers call it, and goes on with those that are left.
            unsafe { exit(1) }
        }
    }

    pub(super) fn fail() {
        let process = std::ptr::without_provenance_mut(std::process::id() as usize);
        // SAFETY: the handler lives as long as the process, as the extension is never unloaded. If there is no room for it, the
        // status stays as it is.
        unsafe { on_exit(change, process) };
    }
}

mod python {
    use super::exit;
    use std::sync::OnceLock;

    /// The process that has asked: its forks have failures of their own.
    static ASKED: OnceLock<u32> = OnceLock::new();

    extern "C" fn change() {
        if ASKED.get() == Some(&std::process::id()) {
            // SAFETY: Python has ended, and nobody has called it yet.
            unsafe { exit(1) }
        }
    }

    pub(super) fn fail() {
        if ASKED.set(std::process::id()).is_ok() {
            // SAFETY: as the extension is never unloaded. If there is no room for it, the status stays as it is.
            unsafe { pyo3::ffi::Py_AtExit(Some(change)) };
        }
    }
}

/// Lets the process exit with status 1 where it would with 0. To be called at its exit. `portably` takes the way of other C
/// libraries, for tests.
#[pyfunction]
#[pyo3(signature = (portably=false))]
pub(crate) fn _exit_failed(portably: bool) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if !portably {
        return glibc::fail();
    }
    let _ = portably; // the one way here
    python::fail();
}
