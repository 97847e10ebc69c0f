//! Kinds of devices on whose streams work goes on after its op has ended: what waits, traces, errors, exits and forks ask of them.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;
use weft_array::{Access, Array};
use weft_engine::trace::Recording;
use weft_engine::{Engine, Failure};

/// Which ops are waited for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Until {
    /// Those that write.
    Read,
    /// Those that read, too.
    Written,
}

/// The name of an op, and the line of its push as bits.
pub(crate) type Labelled<'a> = (&'a str, u64);

/// A kind of device. Arrays, engines and failures that are none of its own are no business of it.
pub(crate) trait Kind: Sync {
    /// Whether the array lies in memory of this kind.
    fn owns(&self, array: &Array) -> bool;

    /// The elements of an array of its own, for the running op, as an array of a library that computes there.
    fn view<'py>(&self, py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>>;

    /// The elements of an array of its own, copied to the host's memory. Waits for them.
    fn to_host(&self, py: Python<'_>, array: &Array) -> PyResult<Array>;

    /// Runs `body`, once, as the op that was granted these arrays, on a stream of theirs.
    fn run(
        &self,
        py: Python<'_>,
        arrays: &[(Array, Access)],
        op: Labelled<'_>,
        body: &mut dyn FnMut() -> PyResult<()>,
    ) -> PyResult<()>;

    /// Waits for the issued work that touches the array's range of its buffer.
    fn wait_for(&self, py: Python<'_>, array: &Array, until: Until, timeout: Option<Duration>) -> PyResult<()>;

    /// Whether all that writes to the array's range of its buffer has ended; so it has, if it has failed.
    fn is_done(&self, array: &Array) -> bool;

    /// Waits for all work that was issued so far.
    fn wait_for_all(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<()>;

    /// Prepares for a trace that has begun.
    fn begin_times(&self, engine: &Engine);

    /// Waits for the work that traced ops have issued.
    fn wait_for_times(&self, py: Python<'_>, engine: &Engine, timeout: Option<Duration>) -> PyResult<()>;

    /// Joins the times of devices to a recording.
    fn join_times(&self, recording: &mut Recording);

    /// Forgets these times, when the trace is over.
    fn end_times(&self, recording: &Recording);

    /// The exception of a failure whose cause is an error of this kind.
    fn exception(&self, py: Python<'_>, failure: &Failure, cause: &(dyn Error + 'static)) -> Option<PyErr>;

    /// Ends its threads, before the process ends.
    fn shut_down(&self, py: Python<'_>);

    /// Takes its locks, right before a fork.
    fn before_fork(&self) -> Box<dyn Locked>;
}

/// The locks of a kind over a fork. In the parent they are dropped.
pub(crate) trait Locked {
    /// Gives them back in the child.
    fn after_in_child(self: Box<Self>);
}

static KINDS: OnceLock<&[&dyn Kind]> = OnceLock::new();

/// Makes the kinds known; called when the extension is imported.
pub(crate) fn load(kinds: &'static [&'static dyn Kind]) {
    let _ = KINDS.set(kinds); // the same ones at each import
}

/// All kinds.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn Kind> {
    KINDS.get().copied().unwrap_or_default().iter().copied()
}

/// The kind that has the memory of an array.
pub(crate) fn of(array: &Array) -> PyResult<&'static dyn Kind> {
    let found = all().find(|kind| kind.owns(array));
    found.ok_or_else(|| PyRuntimeError::new_err("no kind of device has the memory of this array"))
}

/// Runs `body` as the op that was granted these arrays: on a stream, if one of them is of a kind with streams.
pub(crate) fn run(
    py: Python<'_>,
    arrays: &[(Array, Access)],
    op: Labelled<'_>,
    body: &mut dyn FnMut() -> PyResult<()>,
) -> PyResult<()> {
    match all().find(|kind| arrays.iter().any(|(array, _)| kind.owns(array))) {
        Some(kind) => kind.run(py, arrays, op, body),
        None => body(),
    }
}

/// Waits for devices, after a wait for the engine.
pub(crate) fn wait_for(py: Python<'_>, array: &Array, until: Until, timeout: Option<Duration>) -> PyResult<()> {
    if !array.buffer().is_elsewhere() {
        return Ok(());
    }
    all().try_for_each(|kind| kind.wait_for(py, array, until, timeout)) // one kind alone has work on it
}

/// Whether no device still writes to an array.
pub(crate) fn is_done(array: &Array) -> bool {
    !array.buffer().is_elsewhere() || all().all(|kind| kind.is_done(array))
}
