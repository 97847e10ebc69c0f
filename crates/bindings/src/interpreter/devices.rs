//! Kinds of devices with memory of their own: what pushes, waits, traces, errors, exits and forks ask of them.
//!
//! Two sorts of kinds exist: those of the core, and those of Python's alone (`pushes::kinds`). On streams of the first, work goes on after its
//! op has ended.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;
use weft_array::{Access, Array, DType, Operand};
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

/// Kernels for one combination of dtypes, on the devices of one kind.
pub(crate) trait Kernels: Send + Sync {
    /// The dtype of the result.
    fn result(&self) -> DType;

    /// Pushes them over operands on one device of the kind: arrays of this engine of Python's, and numbers. The caller has waited for room.
    fn push(&self, engine: &Bound<'_, PyAny>, outputs: &[&Array], inputs: &[Operand<'_>]) -> PyResult<()>;
}

/// A kind of device. Arrays, engines and failures that are none of its own are no business of it. The default answers are those of a kind
/// without streams: its work has ended when its op has.
pub(crate) trait Kind: Sync {
    /// Its name, as backends have it.
    fn name(&self) -> &'static str;

    /// Whether the array lies in memory of this kind.
    fn owns(&self, array: &Array) -> bool;

    /// The elements of an array of its own, for the running op, as an array of a library that computes there.
    fn view<'py>(&self, py: Python<'py>, array: &Array, readonly: bool) -> PyResult<Bound<'py, PyAny>>;

    /// The elements of an array of its own, of this engine of Python's, copied to the host's memory. Waits for them.
    fn to_host(&self, engine: &Bound<'_, PyAny>, array: &Array) -> PyResult<Array>;

    /// The kernels that its backend has stated, with a result of this dtype.
    fn kernels(&self, stated: Bound<'_, PyAny>, result: DType) -> PyResult<Box<dyn Kernels>>;

    /// The kernels of an operator, by its number, for operands of two dtypes, if they are known.
    fn mixed(&self, _: usize, _: DType, _: DType) -> Option<&'static dyn Kernels> {
        None
    }

    /// Runs `body`, once, as the op that was granted these arrays, on a stream of theirs.
    fn run(
        &self,
        _: Python<'_>,
        _: &[(Array, Access)],
        _: Labelled<'_>,
        body: &mut dyn FnMut() -> PyResult<()>,
    ) -> PyResult<()> {
        body()
    }

    /// Waits for the issued work that touches the array's range of its buffer.
    fn wait_for(&self, _: Python<'_>, _: &Array, _: Until, _: Option<Duration>) -> PyResult<()> {
        Ok(())
    }

    /// Whether all that writes to the array's range of its buffer has ended; so it has, if it has failed.
    fn is_done(&self, _: &Array) -> bool {
        true
    }

    /// Waits for all work that was issued so far.
    fn wait_for_all(&self, _: Python<'_>, _: Option<Duration>) -> PyResult<()> {
        Ok(())
    }

    /// Prepares for a trace that has begun.
    fn begin_times(&self, _: &Engine) {}

    /// Waits for the work that traced ops have issued.
    fn wait_for_times(&self, _: Python<'_>, _: &Engine, _: Option<Duration>) -> PyResult<()> {
        Ok(())
    }

    /// Joins the times of devices to a recording.
    fn join_times(&self, _: &mut Recording) {}

    /// Forgets these times, when the trace is over.
    fn end_times(&self, _: &Recording) {}

    /// The exception of a failure whose cause is an error of this kind.
    fn exception(&self, _: Python<'_>, _: &Failure, _: &(dyn Error + 'static)) -> Option<PyErr> {
        None
    }

    /// Ends its threads, before the process ends.
    fn shut_down(&self, _: Python<'_>) {}

    /// Takes its locks, right before a fork.
    fn before_fork(&self) -> Box<dyn Locked> {
        Box::new(())
    }
}

/// The locks of a kind over a fork. In the parent they are dropped.
pub(crate) trait Locked {
    /// Gives them back in the child.
    fn after_in_child(self: Box<Self>);
}

impl Locked for () {
    fn after_in_child(self: Box<Self>) {}
}

/// Kinds at most.
pub(crate) const MANY: usize = 16;

static KINDS: [OnceLock<&dyn Kind>; MANY] = [const { OnceLock::new() }; MANY];

/// Makes the kind of this name known, if it is not, and answers whether there was room for it.
pub(crate) fn add(name: &str, kind: impl Fn() -> &'static dyn Kind) -> bool {
    KINDS.iter().any(|place| place.get_or_init(&kind).name() == name)
}

/// All kinds.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn Kind> {
    KINDS.iter().map_while(|place| place.get().copied())
}

/// The kind that has the memory of an array, and its place among all.
#[inline]
pub(crate) fn placed(array: &Array) -> PyResult<(usize, &'static dyn Kind)> {
    let found = all().enumerate().find(|(_, kind)| kind.owns(array));
    found.ok_or_else(|| PyRuntimeError::new_err("no kind of device has the memory of this array"))
}

/// The kind that has the memory of an array.
pub(crate) fn of(array: &Array) -> PyResult<&'static dyn Kind> {
    Ok(placed(array)?.1)
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
