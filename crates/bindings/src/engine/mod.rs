//! Engines and variables as Python holds them, and waits. Their methods are in `face`.

mod backpressure;
pub(crate) mod recorded;
mod settings;
pub(crate) mod stand_in;
mod tracing;
pub(crate) mod variable;
pub(crate) mod wait;
pub(crate) mod watching;

pub(crate) use settings::{Given, at_least_one, check_interval, checks};

use crate::interpreter::exceptions::Exceptions;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, OnceLock};

/// Runs ops side by side where their accesses allow it, and in order where they do not.
///
/// Parameters
/// ----------
/// workers : int, optional
///     Worker threads; by default as many as this process may use processors. With
///     ``policy="per_device"``, threads of each device's compute lane.
/// policy : str, optional
///     The policy that places ops on workers, by default ``"work_stealing"``: one of ``weft._core.POLICIES``. ``"serial"`` runs each op at its push,
///     and ``"shuffled:7"`` draws with the seed 7 in which order ops run, both for debugging. Results never depend on it.
/// max_pending_ops : int, optional
///     How many ops may be pending. Pushes from inside ops are exempt.
/// max_pending_bytes : int, optional
///     How many bytes pending ops may hold: their results, and the `nbytes` of pushes. By default a thirty-second of
///     the memory that this process may use, and at least 256 MiB.
/// on_limit : {"block", "raise"}, optional
///     Whether a push over a limit waits (without the GIL) or raises `PendingLimitError`.
/// switch_interval : float, optional
///     Seconds for ``sys.setswitchinterval``, set when the engine is made: how long a busy thread
///     keeps the GIL from callables. By default it is left alone.
/// stall_after : float, optional
///     Seconds after which a wait warns, through the logger ``weft``, that no op has finished meanwhile: with the ops that
///     run, and those that wait, with their blockers. None for never.
/// rename_limit : int, optional
///     How many storages an array may have at a time, from 1 to 64. With 2, an op that overwrites all of an array (`copyfrom`,
///     ``x[...] =``, ``out=x``) writes to other memory while ops that were pushed before still use the values, instead of waiting
///     for them; 1 switches this off.
/// blas_threads : int, optional
///     How many threads BLAS and LAPACK take for a call of `weft.linalg` on this engine's arrays; by default as many as the
///     process has set. It is set around each such call and then as before, by threadpoolctl (extra ``machine``).
/// check : bool, optional
///     Whether NumPy arrays are guarded while tasks on them are pending: all but these tasks find them read-only, so that a
///     statement between two calls that writes to one raises. By default what the environment variable ``WEFT_CHECK`` says,
///     1 or 0; off if it is not set.
/// name : str, optional
///     For messages and names of threads.
///
/// Raises
/// ------
/// ArgumentValueError
///     For a number out of range, or an unknown policy or limit mode.
/// ImportError
///     If `blas_threads` is given and threadpoolctl is not installed.
#[pyclass(module = "weft", frozen, weakref)]
pub(crate) struct Engine {
    pub(crate) inner: weft_engine::Engine,
    /// The exceptions that its failures refer to.
    pub(crate) exceptions: Arc<Exceptions>,
    /// A `weft._engine.identity.ObjectVariables`.
    pub(crate) objects: OnceLock<Py<PyAny>>,
    /// The wrapper that a trace puts around callables: called with the callable and its name or None.
    pub(crate) wrap: Mutex<Option<Py<PyAny>>>,
    /// Whether tasks guard the NumPy arrays that they were given.
    pub(crate) check: bool,
    /// Threads for a hosted call of BLAS or LAPACK, if not the process's.
    pub(crate) blas_threads: Option<u64>,
}
