//! Forks of the process.
//!
//! | when | on which thread | does |
//! |---|---|---|
//! | `_before_fork`, a hook of Python's | the forking one, attached | stops the collector, arms |
//! | `prepare`, the C library's, right before the fork | the same, if armed | takes the roles and locks |
//! | `resume`, the C library's, right after, in the parent | the same | gives them back, and stays quiet |
//! | `_after_fork_parent` | the same | does what was put off meanwhile, starts the collector |
//! | `_after_fork_child` | the child's only one | starts engines over, gives the locks back |
//!
//! Invariant: the GIL stays with the forking thread from `prepare` to `resume`. Hooks of others that are written in Python
//! run outside these two: a thread that waits for one of the locks with the GIL in its hand would never end theirs.

use super::devices::{self, Kind, Locked};
use super::loose::NoDrops;
use pyo3::exceptions::PySystemExit;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use weft_engine::{Quiet, fork};

/// Roles and locks over a fork.
type Held = (fork::Fork, weft_array::fork::Fork, Vec<Box<dyn Locked>>, NoDrops);

thread_local! {
    static FORK: RefCell<Option<Fork>> = const { RefCell::new(None) };
    /// How often this thread has become the only one of a child.
    static CHILDREN: Cell<u32> = const { Cell::new(0) };
}

/// The state of the forking thread.
struct Fork {
    collector: Collector,
    held: Option<Box<Held>>,
    /// No user's code runs on the thread that gave the locks back: the interpreter is still in the middle of the fork.
    quiet: Option<Quiet>,
}

/// The garbage collector, which is off over a fork: an object that it drops may want a lock of the forking thread.
struct Collector {
    was_enabled: bool,
}

impl Collector {
    fn stop(_: Python<'_>) -> Self {
        // SAFETY: attached.
        Self { was_enabled: unsafe { ffi::PyGC_Disable() } == 1 }
    }

    fn go_on(self, _: Python<'_>) {
        if self.was_enabled {
            // SAFETY: as above.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

/// Right before the fork.
extern "C" fn prepare() {
    FORK.with_borrow_mut(|fork| {
        if let Some(fork) = fork {
            // A holder of a role, or of a lock of the arrays, never waits for the GIL, so this thread may wait for it with the GIL held.
            let arrays = weft_array::fork::before();
            let roles = fork::before();
            let kinds = devices::all().map(Kind::before_fork).collect();
            fork.held = Some(Box::new((roles, arrays, kinds, NoDrops::begin())));
        }
    });
}

/// Right after the fork, in the parent; after one that failed, too.
extern "C" fn resume() {
    FORK.with_borrow_mut(|fork| {
        if let Some(fork) = fork
            && let Some(held) = fork.held.take()
        {
            fork.quiet = Some(Quiet::begin());
            let (roles, arrays, kinds, no_drops) = *held;
            drop((no_drops, kinds, arrays)); // first, as the next step may want them
            fork::after_in_parent(roles);
        }
    });
}

/// Has `prepare` and `resume` called from now on.
#[pyfunction]
pub(crate) fn _watch_forks() -> bool {
    #[cfg(unix)]
    {
        type Handler = extern "C" fn();
        unsafe extern "C" {
            fn pthread_atfork(prepare: Option<Handler>, parent: Option<Handler>, child: Option<Handler>) -> c_int;
        }
        // SAFETY: the handlers are functions of this library, whose end, if it ever comes, takes them out.
        unsafe { pthread_atfork(Some(prepare), Some(resume), None) == 0 }
    }
    #[cfg(not(unix))]
    {
        let _: (c_int, extern "C" fn(), extern "C" fn()) = (0, prepare, resume);
        false
    }
}

/// Before a fork.
#[pyfunction]
pub(crate) fn _before_fork(py: Python<'_>) {
    let collector = Collector::stop(py);
    FORK.set(Some(Fork { collector, held: None, quiet: None }));
}

/// After a fork, in the parent.
#[pyfunction]
pub(crate) fn _after_fork_parent(py: Python<'_>) {
    if let Some(fork) = FORK.take() {
        drop(fork.quiet);
        fork.collector.go_on(py);
    }
}

/// After a fork, in the child.
#[pyfunction]
pub(crate) fn _after_fork_child(py: Python<'_>) {
    if let Some(Fork { collector, held, .. }) = FORK.take() {
        CHILDREN.set(CHILDREN.get() + 1);
        if let Some(held) = held {
            let (roles, arrays, kinds, no_drops) = *held;
            drop(no_drops);
            kinds.into_iter().for_each(Locked::after_in_child);
            drop(arrays); // first, as the next step may run ops on this thread
            // SAFETY: called by os.register_at_fork's hook, in the child's only thread.
            unsafe { fork::after_in_child(roles) };
        }
        collector.go_on(py);
    }
}

/// The process in which an op runs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Here(u32);

impl Here {
    /// This one.
    #[inline]
    pub(crate) fn now() -> Self {
        Self(CHILDREN.get())
    }

    /// Ends the process if it is a child, forked while the op ran: of the worker in which it began there is this thread
    /// alone, and nothing that the op could return to.
    #[inline]
    pub(crate) fn leave<T>(self, py: Python<'_>, answer: &PyResult<T>) {
        if Self::now() != self {
            end(py, answer.as_ref().err());
        }
    }
}

fn write(py: Python<'_>, text: &str) -> PyResult<()> {
    py.import("sys")?.getattr("stderr")?.call_method1("write", (text,)).map(drop)
}

/// Ends a child as the end of a script does, but for exit handlers, which are the parent's.
#[cold]
fn end(py: Python<'_>, error: Option<&PyErr>) {
    let status = match error {
        None => 0,
        Some(error) => match error.is_instance_of::<PySystemExit>(py).then(|| error.value(py).getattr("code")) {
            Some(Ok(code)) if code.is_none() => 0,
            Some(Ok(code)) => code.extract::<i32>().unwrap_or_else(|_| {
                drop(write(py, &format!("{code}\n"))); // without a stderr there is nothing to write to
                1
            }),
            _ => {
                error.display(py);
                1
            }
        },
    };
    let leave = || -> PyResult<()> {
        for stream in ["stdout", "stderr"] {
            let stream = py.import("sys")?.getattr(stream)?;
            if !stream.is_none() {
                drop(stream.call_method0("flush")); // a closed stream holds nothing up
            }
        }
        py.import("os")?.call_method1("_exit", (status,)).map(drop)
    };
    drop(leave());
    std::process::abort(); // os._exit() does not return
}
