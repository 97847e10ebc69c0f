//! The methods of `weft.Engine`.

use super::{process, recover};
use crate::engine::recorded::{check_all_pushed, check_pushed};
use crate::engine::variable::Variable;
use crate::engine::{Engine, Given, at_least_one, check_interval, checks};
use crate::engine::{wait, watching};
use crate::interpreter::arguments::{
    self, Address, AlwaysRun, BlasThreads, Bytes, Cancel, Check, LimitMode, Name, PendingBytes, PendingOps, PolicyName,
    Priority, RenameLimit, StallAfter, SwitchInterval, Timeout, Workers,
};
use crate::interpreter::devices;
use crate::interpreter::errors;
use crate::interpreter::exceptions::Exceptions;
use crate::interpreter::host::Gil;
use crate::interpreter::stall;
use crate::payloads::callable::{AsyncCallable, Callable};
use crate::payloads::native::{KeepingAlive, Native};
use crate::payloads::trace;
use crate::pushes::{Operator, Request};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use weft_engine::{CloseOptions, NativeFunction, OnLimit, PushOptions};

/// The bytes at the beginning of a process's addresses that are never mapped.
const FIRST_PAGE: usize = 4096;

/// Arguments of pushes beside their accesses.
fn options(priority: Priority, name: Option<Name<'_>>, always_run: AlwaysRun, nbytes: Bytes) -> PushOptions<'_> {
    PushOptions {
        priority: priority.0,
        name: name.map(|name| name.0),
        always_run: always_run.0,
        bytes: nbytes.0,
        ..PushOptions::default()
    }
}

/// Enters what an engine counts.
pub(super) fn add_stats(py: Python<'_>, engine: &weft_engine::Engine, figures: &Bound<'_, PyDict>) -> PyResult<()> {
    let stats = py.detach(|| engine.stats());
    figures.set_item("pushed", stats.pushed)?;
    figures.set_item("completed", stats.completed)?;
    figures.set_item("failed", stats.failed)?;
    figures.set_item("skipped", stats.skipped)?;
    figures.set_item("cancelled", stats.cancelled)?;
    figures.set_item("pending", stats.pending)?;
    figures.set_item("running", stats.running)?;
    figures.set_item("pending_bytes", stats.pending_bytes)?;
    figures.set_item("variables", stats.variables)
}

/// Refuses keywords that an engine has not: for other pools' names of the number of workers, with its own.
fn refuse_others(py: Python<'_>, others: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let Some(name) = others.and_then(|others| others.keys().iter().next()) else { return Ok(()) };
    let name: String = name.extract()?;
    let hint = match name.as_str() {
        "threads" | "num_threads" | "n_threads" | "nthreads" | "max_workers" | "n_jobs" | "processes" => {
            ": write workers="
        }
        _ => "",
    };
    Err(errors::argument_type(py, &format!("Engine() got an unexpected keyword argument '{name}'{hint}")))
}

#[pymethods]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // Python's signatures
impl Engine {
    #[new]
    #[pyo3(
        signature = (workers=None, policy=PolicyName("work_stealing"), *, max_pending_ops=PendingOps(1_048_576),
                     max_pending_bytes=None, on_limit=LimitMode("block"), switch_interval=None,
                     stall_after=Some(StallAfter(30.0)), rename_limit=RenameLimit(2), blas_threads=None, check=None, name=None, **others),
        text_signature = "(workers=None, policy='work_stealing', *, max_pending_ops=1048576, max_pending_bytes=None, \
                          on_limit='block', switch_interval=None, stall_after=30.0, rename_limit=2, blas_threads=None, \
                          check=None, name=None)"
    )]
    fn new(
        py: Python<'_>,
        workers: Option<Workers>,
        policy: PolicyName<'_>,
        max_pending_ops: PendingOps,
        max_pending_bytes: Option<PendingBytes>,
        on_limit: LimitMode<'_>,
        switch_interval: Option<SwitchInterval>,
        stall_after: Option<StallAfter>,
        rename_limit: RenameLimit,
        blas_threads: Option<BlasThreads>,
        check: Option<Check>,
        name: Option<Name<'_>>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        refuse_others(py, others)?;
        let switch_interval = switch_interval.map(|seconds| seconds.0);
        let blas_threads = blas_threads.map(|threads| at_least_one(py, "blas_threads", threads.0)).transpose()?;
        if blas_threads.is_some() {
            py.import("weft._call.blas")?.getattr("find")?.call0()?;
        }
        let exceptions = Arc::new(Exceptions::new(py)?);
        let drawn = watching::policy();
        let given = Given {
            workers: workers.map(|workers| workers.0),
            policy: drawn.as_deref().unwrap_or(policy.0),
            max_pending_ops: max_pending_ops.0,
            max_pending_bytes: max_pending_bytes.map(|bytes| bytes.0),
            on_limit: on_limit.0,
            stall_after: stall_after.map(|seconds| seconds.0),
            rename_limit: rename_limit.0,
            name: name.map(|name| name.0.to_owned()),
        };
        let settings = given.read(py, Gil::new(&exceptions))?;
        check_interval(py, switch_interval)?;
        let check = check.map_or_else(|| checks(py), |check| Ok(check.0))?;
        let inner = py.detach(|| weft_engine::Engine::new(settings)).map_err(|error| errors::raised(py, error))?;
        if let Some(seconds) = switch_interval {
            py.import("sys")?.call_method1("setswitchinterval", (seconds,))?;
        }
        process::register(&inner);
        inner.watch(watching::is_on());
        Ok(Self { inner, exceptions, objects: OnceLock::new(), wrap: Mutex::new(None), blas_threads, check })
    }

    /// The name it was given, or None.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.inner.given_name()
    }

    /// The name of its policy, with its seed if it has one.
    #[getter]
    fn policy(&self) -> String {
        self.inner.policy().to_string()
    }

    /// How many workers it was made with; 0 for ``serial``.
    #[getter]
    fn workers(&self) -> usize {
        self.inner.workers()
    }

    /// How many ops may be pending before a push waits or raises.
    #[getter]
    fn max_pending_ops(&self) -> u64 {
        self.inner.max_pending_ops()
    }

    /// How many bytes pending ops may hold before a push waits or raises; None without a limit.
    #[getter]
    fn max_pending_bytes(&self) -> Option<u64> {
        Some(self.inner.max_pending_bytes()).filter(|&bytes| bytes < u64::MAX)
    }

    /// The behaviour of a push over a limit: ``"block"`` or ``"raise"``.
    #[getter]
    fn on_limit(&self) -> &'static str {
        match self.inner.on_limit() {
            OnLimit::Block => "block",
            OnLimit::Raise => "raise",
        }
    }

    /// How many storages an array may have at a time.
    #[getter]
    fn rename_limit(&self) -> usize {
        self.inner.rename_limit()
    }

    /// How many threads BLAS and LAPACK take for a call on its arrays; None for as many as the process has set.
    #[getter]
    fn blas_threads(&self) -> Option<u64> {
        self.blas_threads
    }

    /// Whether it guards NumPy arrays with pending tasks.
    #[getter]
    fn check(&self) -> bool {
        self.check
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// How many ops were pushed and have not finished.
    #[getter]
    fn pending(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.inner.stats()).pending
    }

    /// Makes a variable, at version 0.
    ///
    /// Parameters
    /// ----------
    /// name : str, optional
    ///     For messages.
    ///
    /// Returns
    /// -------
    /// Variable
    #[pyo3(signature = (name=None))]
    fn new_variable(slf: &Bound<'_, Self>, name: Option<Name<'_>>) -> Variable {
        Variable::new(slf.get().inner.new_variable(name.map(|name| name.0)), slf.clone().unbind())
    }

    /// The variable of an object: the same one each time, for as long as the object lives.
    ///
    /// NumPy views have the variable of the array that owns their memory.
    ///
    /// Parameters
    /// ----------
    /// obj : object
    ///     Any object that can be weakly referenced.
    ///
    /// Returns
    /// -------
    /// Variable
    ///
    /// Raises
    /// ------
    /// ArgumentTypeError
    ///     If the object cannot be weakly referenced.
    fn variable_of<'py>(slf: &Bound<'py, Self>, obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let objects = &slf.get().objects;
        let objects = if let Some(objects) = objects.get() {
            objects
        } else {
            let class = py.import("weft._engine.identity")?.getattr("ObjectVariables")?;
            let made = class.call1((slf.getattr("new_variable")?,))?.unbind();
            objects.get_or_init(|| made) // of two threads that come here at the same time, the first one's stays
        };
        objects.bind(py).call_method1("variable_of", (obj,))
    }

    /// Pushes an op: `exec_func()` runs when its accesses are granted.
    ///
    /// Parameters
    /// ----------
    /// exec_func : callable
    ///     Called without arguments, on a worker. Its result is dropped; its exception is
    ///     raised by waits on the variables that it was to change.
    /// read_vars, mutate_vars : sequence of Variable or NDArray, optional
    ///     The variables that it reads, and those that it changes. Inside the op, ``numpy.asarray(x)`` of an array among them is its memory,
    ///     at once, to be written to if the op changes it.
    /// overwrite_vars : sequence of Variable or NDArray, optional
    ///     Variables that it changes without a look at the old value, which therefore may have failed.
    /// priority : int, optional
    ///     Ready ops with a higher one go first.
    /// name : str, optional
    ///     For messages; by default the name of the callable.
    /// device : Device, optional
    ///     Where it runs, with ``policy="per_device"``.
    /// always_run : bool, optional
    ///     Whether it runs even if a value that it reads has failed: for clean-up.
    /// nbytes : int, optional
    ///     Bytes it holds while it is pending.
    ///
    /// Raises
    /// ------
    /// ArgumentTypeError
    ///     If `exec_func` is not callable, or the lists hold anything but variables and arrays.
    /// WrongEngineError, VariableDeletedError, EngineClosedError, PendingLimitError
    ///     Then nothing was pushed.
    #[pyo3(
        signature = (exec_func, read_vars=None, mutate_vars=None, *, overwrite_vars=None, priority=Priority(0), name=None,
                     device=None, always_run=AlwaysRun(false), nbytes=Bytes(0)),
        text_signature = "($self, exec_func, read_vars=(), mutate_vars=(), *, overwrite_vars=(), priority=0, \
                          name=None, device=None, always_run=False, nbytes=0)"
    )]
    fn push<'py>(
        &self,
        py: Python<'py>,
        exec_func: &Bound<'py, PyAny>,
        read_vars: Option<&Bound<'py, PyAny>>,
        mutate_vars: Option<&Bound<'py, PyAny>>,
        overwrite_vars: Option<&Bound<'py, PyAny>>,
        priority: Priority,
        name: Option<Name<'_>>,
        device: Option<&Bound<'py, PyAny>>,
        always_run: AlwaysRun,
        nbytes: Bytes,
    ) -> PyResult<()> {
        arguments::check_callable("exec_func", exec_func)?;
        let options = options(priority, name, always_run, nbytes);
        let common = Request::new(read_vars, mutate_vars, overwrite_vars, device, options)?;
        common.push(py, self, Callable::new(exec_func))
    }

    /// Pushes an op that completes later: `exec_func(done)` starts it, and `done()` or
    /// `done.fail(exc)`, from any thread, ends it.
    ///
    /// Parameters
    /// ----------
    /// exec_func : callable
    ///     Called with a `Completion`. If it raises, the op fails with that.
    /// read_vars, mutate_vars, overwrite_vars, priority, name, device, always_run, nbytes
    ///     As for `push`.
    #[pyo3(
        signature = (exec_func, read_vars=None, mutate_vars=None, *, overwrite_vars=None, priority=Priority(0), name=None,
                     device=None, always_run=AlwaysRun(false), nbytes=Bytes(0)),
        text_signature = "($self, exec_func, read_vars=(), mutate_vars=(), *, overwrite_vars=(), priority=0, \
                          name=None, device=None, always_run=False, nbytes=0)"
    )]
    fn push_async<'py>(
        &self,
        py: Python<'py>,
        exec_func: &Bound<'py, PyAny>,
        read_vars: Option<&Bound<'py, PyAny>>,
        mutate_vars: Option<&Bound<'py, PyAny>>,
        overwrite_vars: Option<&Bound<'py, PyAny>>,
        priority: Priority,
        name: Option<Name<'_>>,
        device: Option<&Bound<'py, PyAny>>,
        always_run: AlwaysRun,
        nbytes: Bytes,
    ) -> PyResult<()> {
        arguments::check_callable("exec_func", exec_func)?;
        let options = options(priority, name, always_run, nbytes);
        let common = Request::new(read_vars, mutate_vars, overwrite_vars, device, options)?;
        common.push(py, self, AsyncCallable(Callable::new(exec_func)))
    }

    /// Pushes a native function, ``int32_t (*)(void *data)``, which runs without the GIL.
    ///
    /// The address must be that of such a function, which may run on any thread; a wrong one ends the process.
    ///
    /// Parameters
    /// ----------
    /// address : int
    ///     The function's address. If it answers anything but 0, the op fails with `NativeOpError`.
    /// data : int, optional
    ///     The pointer it is called with.
    /// keep_alive : object, optional
    ///     Is kept alive until the function has run.
    /// read_vars, mutate_vars, overwrite_vars, priority, name, device, always_run, nbytes
    ///     As for `push`.
    ///
    /// Raises
    /// ------
    /// ArgumentValueError
    ///     If no function can lie at the address: below 4096 there is no memory.
    #[pyo3(
        signature = (address, data=Address(0), read_vars=None, mutate_vars=None, *, keep_alive=None, overwrite_vars=None,
                     priority=Priority(0), name=None, device=None, always_run=AlwaysRun(false), nbytes=Bytes(0)),
        text_signature = "($self, address, data=0, read_vars=(), mutate_vars=(), *, keep_alive=None, \
                          overwrite_vars=(), priority=0, name=None, device=None, always_run=False, nbytes=0)"
    )]
    fn push_native<'py>(
        &self,
        py: Python<'py>,
        address: Address,
        data: Address,
        read_vars: Option<&Bound<'py, PyAny>>,
        mutate_vars: Option<&Bound<'py, PyAny>>,
        keep_alive: Option<Py<PyAny>>,
        overwrite_vars: Option<&Bound<'py, PyAny>>,
        priority: Priority,
        name: Option<Name<'_>>,
        device: Option<&Bound<'py, PyAny>>,
        always_run: AlwaysRun,
        nbytes: Bytes,
    ) -> PyResult<()> {
        let (Address(address), Address(data)) = (address, data);
        if address < FIRST_PAGE {
            let message = format!(
                "address is that of a function, and no function lies at {address}: below {FIRST_PAGE} there is no memory"
            );
            return Err(errors::argument_value(py, &message));
        }
        // SAFETY: the caller of push_native vouches for the address, as its documentation demands.
        let function = unsafe {
            let function = std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void) -> i32>(address);
            NativeFunction::new(function, std::ptr::with_exposed_provenance_mut(data))
        };
        let options = options(priority, name, always_run, nbytes);
        let common = Request::new(read_vars, mutate_vars, overwrite_vars, device, options)?;
        let native = Native::new(py, function);
        match keep_alive {
            None => common.push(py, self, native),
            Some(object) => common.push(py, self, KeepingAlive { native, object: object.into() }),
        }
    }

    /// Makes an operator: an op whose accesses are checked once, to be pushed many times.
    ///
    /// Parameters
    /// ----------
    /// exec_func, read_vars, mutate_vars, overwrite_vars, priority, name, device, always_run
    ///     As for `push`.
    ///
    /// Returns
    /// -------
    /// Operator
    ///     Its ``push()`` pushes the op.
    #[pyo3(
        signature = (exec_func, read_vars=None, mutate_vars=None, *, overwrite_vars=None, priority=Priority(0), name=None,
                     device=None, always_run=AlwaysRun(false)),
        text_signature = "($self, exec_func, read_vars=(), mutate_vars=(), *, overwrite_vars=(), priority=0, \
                          name=None, device=None, always_run=False)"
    )]
    fn new_operator<'py>(
        slf: &Bound<'py, Self>,
        exec_func: &Bound<'py, PyAny>,
        read_vars: Option<&Bound<'py, PyAny>>,
        mutate_vars: Option<&Bound<'py, PyAny>>,
        overwrite_vars: Option<&Bound<'py, PyAny>>,
        priority: Priority,
        name: Option<Name<'_>>,
        device: Option<&Bound<'py, PyAny>>,
        always_run: AlwaysRun,
    ) -> PyResult<Operator> {
        arguments::check_callable("exec_func", exec_func)?;
        let options = options(priority, name, always_run, Bytes(0));
        let common = Request::new(read_vars, mutate_vars, overwrite_vars, device, options)?;
        common.operator(slf, Callable::new(exec_func))
    }

    /// Waits until every mutation of the variable pushed so far has finished.
    ///
    /// Parameters
    /// ----------
    /// var : Variable
    /// timeout : float, optional
    ///     Seconds; no limit by default.
    ///
    /// Raises
    /// ------
    /// BaseException
    ///     The exception of the op that made this version, the original object.
    /// WaitTimeoutError
    ///     If the time ran out. The op goes on.
    /// DeadlockError
    ///     Inside an op, if the wait could never end.
    /// CaptureError
    ///     While a function is recorded: if an op that changes it was recorded, not pushed.
    #[pyo3(signature = (var, timeout=None))]
    fn wait_for_var(&self, py: Python<'_>, var: &Bound<'_, PyAny>, timeout: Option<Timeout>) -> PyResult<()> {
        let timeout = arguments::timeout(py, timeout)?;
        let variable = &Variable::argument(var)?.get().inner;
        check_pushed(py, variable)?;
        if self.inner.is_done(variable).map_err(|error| errors::raised(py, error))? {
            return Ok(());
        }
        wait::detached(py, &self.inner, timeout, |wait| self.inner.wait_for_var_with(variable, wait))
            .map_err(|error| recover::hint_of(py, error, &self.inner, variable))
    }

    /// Waits until every access of the variable pushed so far, reads included, has finished.
    ///
    /// Parameters and errors as for `wait_for_var`.
    #[pyo3(signature = (var, timeout=None))]
    fn wait_to_write(&self, py: Python<'_>, var: &Bound<'_, PyAny>, timeout: Option<Timeout>) -> PyResult<()> {
        let timeout = arguments::timeout(py, timeout)?;
        let variable = &Variable::argument(var)?.get().inner;
        check_pushed(py, variable)?;
        wait::detached(py, &self.inner, timeout, |wait| self.inner.wait_to_write_with(variable, wait))
    }

    /// Waits until all ops pushed so far have finished.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds; no limit by default.
    ///
    /// Raises
    /// ------
    /// BaseException
    ///     The exception of an op that no wait has raised yet; several come as an `ExceptionGroup`.
    /// WaitTimeoutError
    ///     If the time ran out. The ops go on.
    /// DeadlockError
    ///     Inside an op.
    /// CaptureError
    ///     While a function is recorded: if a callable or a native function was recorded, not pushed, whose effects are not in arrays
    ///     alone.
    #[pyo3(signature = (timeout=None))]
    fn wait_for_all(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        let timeout = arguments::timeout(py, timeout)?;
        check_all_pushed(py, &self.inner)?;
        let start = Instant::now();
        wait::detached(py, &self.inner, timeout, |wait| self.inner.wait_for_all_with(wait))?;
        let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        devices::all().try_for_each(|kind| kind.wait_for_all(py, left))
    }

    /// Deletes a variable: after everything pushed before, `finalizer()` runs, once.
    ///
    /// Parameters
    /// ----------
    /// var : Variable
    ///     Every later use of it raises `VariableDeletedError`.
    /// finalizer : callable, optional
    #[pyo3(signature = (var, finalizer=None))]
    fn delete_variable(
        &self,
        py: Python<'_>,
        var: &Bound<'_, PyAny>,
        finalizer: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let variable = &Variable::argument(var)?.get().inner;
        let name = format!("deletion of {}", variable.label().replace('\'', ""));
        let deleted = match finalizer {
            None => {
                let nothing = |_: &mut weft_engine::OpContext<'_>| Ok(());
                self.inner.delete_variable(variable, nothing, Some(&name))
            }
            Some(finalizer) => {
                arguments::check_callable("finalizer", finalizer)?;
                self.inner.delete_variable(variable, Callable::new(finalizer), Some(&name))
            }
        };
        deleted.map_err(|error| errors::raised(py, error))
    }

    /// Figures: workers, pending, pushed, completed, failed, skipped, cancelled, running,
    /// pending_bytes, variables; policy and name.
    ///
    /// Returns
    /// -------
    /// dict
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let figures = PyDict::new(py);
        figures.set_item("name", self.inner.given_name())?;
        figures.set_item("policy", self.policy())?;
        figures.set_item("workers", self.workers())?;
        add_stats(py, &self.inner, &figures)?;
        Ok(figures)
    }

    /// Waits until all ops pushed so far have finished. Their failures stay unreported.
    #[pyo3(signature = (timeout=None))]
    fn _drain(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        let timeout = arguments::timeout(py, timeout)?;
        let start = Instant::now();
        wait::detached(py, &self.inner, timeout, |wait| self.inner.drain_with(wait))?;
        let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        devices::all().try_for_each(|kind| kind.wait_for_times(py, &self.inner, left))
    }

    /// The ops that run now, and those that wait, with their blockers.
    fn _stall_report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stall::report(py, &self.inner)
    }

    /// Starts to record the engine's work, at most `limit` ops of those that are pushed from now on. Callables are replaced by
    /// what `wrap(callable, name)` returns, if it is given. A `sample` costs nothing more when it is full.
    #[pyo3(signature = (limit, wrap=None, sample=false))]
    fn _trace_start(&self, py: Python<'_>, limit: u64, wrap: Option<Py<PyAny>>, sample: bool) -> PyResult<()> {
        let start = || if sample { self.inner.start_sample(limit) } else { self.inner.start_trace(limit) };
        py.detach(start).map_err(|error| errors::raised(py, error))?;
        py.detach(|| devices::all().for_each(|kind| kind.begin_times(&self.inner)));
        let before = std::mem::replace(&mut *self.wrap.lock().unwrap_or_else(PoisonError::into_inner), wrap);
        drop(before); // after the lock is released: that may run Python
        Ok(())
    }

    /// The records so far; the trace goes on.
    fn _trace_read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut recording = py.detach(|| self.inner.read_trace()).map_err(|error| errors::raised(py, error))?;
        py.detach(|| devices::all().for_each(|kind| kind.join_times(&mut recording)));
        trace::to_python(py, &recording)
    }

    /// How many more ops the trace has room for, about; None without one.
    fn _trace_room(&self) -> Option<u64> {
        self.inner.trace_room()
    }

    /// Ends the trace. Answers its records.
    fn _trace_stop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut recording = py.detach(|| self.inner.stop_trace()).map_err(|error| errors::raised(py, error))?;
        py.detach(|| {
            devices::all().for_each(|kind| kind.join_times(&mut recording));
            devices::all().for_each(|kind| kind.end_times(&recording));
        });
        // Bound to a name, so that it is dropped after the lock is released.
        let wrap = self.wrap.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(wrap);
        trace::to_python(py, &recording)
    }

    /// Closes the engine: waits for all pushed ops, then ends the workers. Later pushes raise.
    ///
    /// Parameters
    /// ----------
    /// cancel : bool, optional
    ///     Whether ops that have not started are dropped: they fail with `OpCancelledError`.
    /// timeout : float, optional
    ///     Seconds; no limit by default.
    ///
    /// Raises
    /// ------
    /// BaseException
    ///     Exceptions of ops that no wait has raised yet, unless `cancel`.
    /// WaitTimeoutError
    ///     If the time ran out. Ops go on; close again to wait for them.
    #[pyo3(signature = (cancel=Cancel(false), timeout=None), text_signature = "($self, cancel=False, timeout=None)")]
    fn close(&self, py: Python<'_>, cancel: Cancel, timeout: Option<Timeout>) -> PyResult<()> {
        let timeout = arguments::timeout(py, timeout)?;
        wait::detached(py, &self.inner, None, |wait| {
            self.inner.close_with(CloseOptions { cancel: cancel.0, timeout, tick: wait.tick.take() })
        })
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Drains and closes; after an exception drops the ops that have not started.
    #[pyo3(signature = (exc_type, exc_value, traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<&Bound<'_, PyAny>>,
        exc_value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (exc_value, traceback);
        self.close(py, Cancel(exc_type.is_some()), None)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.objects.get())?;
        self.exceptions.traverse(&visit)
    }

    fn __clear__(&self) {
        self.exceptions.clear();
    }

    fn __repr__(&self) -> String {
        let name = self.inner.given_name().map(|name| format!(" '{name}'")).unwrap_or_default();
        let state = if self.inner.is_closed() { ", closed" } else { "" };
        format!("<weft.Engine{name}, {}, {} workers{state}>", self.policy(), self.workers())
    }
}
