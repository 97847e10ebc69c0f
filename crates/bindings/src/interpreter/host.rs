//! The GIL, as the engine's host for Python callables.
//!
//! A worker keeps one Python thread state from its first batch to its end: making one anew at each
//! entry costs microseconds, taking the GIL with a kept one some 50 ns.

use super::exceptions::Exceptions;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use weft_engine::Host;

/// How long a worker sleeps before it gives its thread state up, where there is no GIL: as long as a thread has one, what it
/// made and others let go, completion tokens among it, waits for it to run Python again. A new one takes 0.1 ms.
const REST: Duration = Duration::from_millis(10);

/// How long unused memory of arrays is kept, before a worker that has nothing to do gives it back.
const KEPT: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, PartialEq)]
enum ThreadState {
    /// Not one of our threads: it has, or makes, its own.
    Foreign,
    /// A worker that has run no callable yet.
    None,
    /// A worker with a thread state of its own.
    Kept,
}

thread_local! {
    static STATE: Cell<ThreadState> = const { Cell::new(ThreadState::Foreign) };
}

/// One engine's, whose callables' exceptions it keeps.
pub(crate) struct Gil(Arc<Exceptions>);

impl Gil {
    pub(crate) fn new(exceptions: &Arc<Exceptions>) -> Self {
        Self(Arc::clone(exceptions))
    }

    pub(crate) fn exceptions(&self) -> &Arc<Exceptions> {
        &self.0
    }
}

impl Host for Gil {
    fn enter(&self, batch: &mut dyn FnMut()) {
        if STATE.get() == ThreadState::None && Python::try_attach(keep).is_some() {
            STATE.set(ThreadState::Kept);
        }
        if Python::try_attach(|_| batch()).is_none() {
            // The interpreter is gone, and the process soon will be; Python must not be touched.
            loop {
                std::thread::park();
            }
        }
    }

    // C's `unsigned long` has 32 bits on Windows, where the conversion is one.
    #[allow(clippy::useless_conversion)]
    fn thread(&self) -> u64 {
        // SAFETY: takes nothing, needs no GIL.
        u64::from(unsafe { ffi::PyThread_get_thread_ident() })
    }

    fn worker_begins(&self) {
        STATE.set(ThreadState::None);
    }

    fn rests_after(&self) -> Option<Duration> {
        if cfg!(Py_GIL_DISABLED) && STATE.get() == ThreadState::Kept {
            return Some(REST);
        }
        weft_array::keeps_memory().then_some(KEPT)
    }

    fn worker_rests(&self) {
        if cfg!(Py_GIL_DISABLED) {
            let_go();
        }
        weft_array::release_memory(KEPT / 2);
    }

    fn worker_ends(&self) {
        let_go();
    }
}

/// Keeps the state of an attached thread, and lets those who watch the threads that Python starts watch this one.
fn keep(py: Python<'_>) {
    // SAFETY: the thread is attached. It enters once more than it leaves, and so keeps its state.
    unsafe { ffi::PyGILState_Ensure() };
    let watched = || -> PyResult<()> {
        let (threading, sys) = (py.import("threading")?, py.import("sys")?);
        for (get, set) in [("gettrace", "settrace"), ("getprofile", "setprofile")] {
            let watcher = threading.call_method0(get)?;
            if !watcher.is_none() {
                sys.call_method1(set, (watcher,))?;
            }
        }
        Ok(())
    };
    // Where the interpreter is about to end there is neither module, and nothing to be watched.
    drop(watched());
}

/// Gives the kept thread state up. If the interpreter is gone, for a native op has outlasted it, so is the state.
fn let_go() {
    if STATE.replace(ThreadState::None) == ThreadState::Kept {
        // SAFETY: the thread is attached, a second time. Leaving once for what enter() has kept leaves it attached;
        // the end of the attachment then ends the state.
        Python::try_attach(|_| unsafe { ffi::PyGILState_Release(ffi::PyGILState_STATE::PyGILState_LOCKED) });
    }
}
