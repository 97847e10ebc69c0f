//! Engines and variables as Python holds them, and waits. Their methods are in `face`.

mod backpressure;
mod settings;
mod tracing;
pub(crate) mod variable;
pub(crate) mod wait;
pub(crate) mod watching;

pub(crate) use settings::{Given, at_least_one, check_interval};

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
///     Who runs what, by default ``"work_stealing"``: one of ``weft._core.POLICIES``. ``"serial"`` runs each op at its push,
///     and ``"shuffled:7"`` draws with the seed 7 in which order ops run, both for debugging. Results never depend on it.
/// max_pending_ops : int, optional
///     How many ops may be pending. Pushes from inside ops are exempt.
/// max_pending_bytes : int, optional
///     How many bytes pending ops may hold: their results, and what pushes tell by `nbytes`. By default a thirty-second of
///     the memory that this process may use, and at least 256 MiB.
/// on_limit : {"block", "raise"}, optional
///     Whether a push over a limit waits (without the GIL) or raises `PendingLimitError`.
/// switch_interval : float, optional
///     Seconds for ``sys.setswitchinterval``, set when the engine is made: how long a busy thread
///     keeps the GIL from callables. By default it is left alone.
/// stall_after : float, optional
///     Seconds after which a wait warns, through the logger ``weft``, that no op has finished meanwhile: what runs, and
///     who waits for whom. None for never.
/// blas_threads : int, optional
///     How many threads BLAS and LAPACK take for a call of `weft.linalg` on this engine's arrays; by default as many as the
///     process has set. It is set around each such call and then as before, by threadpoolctl (extra ``machine``).
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
    /// What its failures refer to.
    pub(crate) exceptions: Arc<Exceptions>,
    /// A `weft._engine.identity.ObjectVariables`.
    pub(crate) objects: OnceLock<Py<PyAny>>,
    /// What a trace wraps callables in: called with the callable and its name or None.
    pub(crate) wrap: Mutex<Option<Py<PyAny>>>,
    /// Threads for a hosted call of BLAS or LAPACK, if not the process's.
    pub(crate) blas_threads: Option<u64>,
}
