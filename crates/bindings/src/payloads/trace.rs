//! Traces: the descriptions of payloads, and recordings as Python sees them.

use super::callable::{AsyncCallable, Callable};
use super::native::{KeepingAlive, Native};
use super::opaque;
use crate::interpreter::location::Location;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyType};
use std::sync::Arc;
use weft_array::{ArrayError, Opaque, announce, recording};
use weft_engine::Payload;
use weft_engine::trace::{Describe, Kind, Note, RecordedOp, RecordedRun, Recording, StreamKind};

/// A payload that a trace shows with its name and the place of its push.
pub(crate) trait Traced: Payload + Sized {
    const KIND: Kind;

    fn location(&self) -> Location;

    /// The name of its callable, if it has one.
    fn callable(&self) -> Option<&Py<PyAny>> {
        None
    }

    /// Whether somebody is told if it is dropped unrun.
    fn answers(&self) -> bool {
        false
    }

    /// The step that does the same each time.
    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError>;

    /// The payload with another callable in the place of its own.
    fn wrapped(self, _wrap: impl FnOnce(Py<PyAny>) -> PyResult<Py<PyAny>>) -> PyResult<Self> {
        Ok(self)
    }
}

impl Traced for Callable {
    const KIND: Kind = Kind::Callable;

    fn location(&self) -> Location {
        self.location
    }

    fn callable(&self) -> Option<&Py<PyAny>> {
        Some(&self.function)
    }

    fn answers(&self) -> bool {
        self.dropped.is_some()
    }

    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError> {
        opaque::calling(self)
    }

    fn wrapped(self, wrap: impl FnOnce(Py<PyAny>) -> PyResult<Py<PyAny>>) -> PyResult<Self> {
        Ok(Self { function: wrap(self.function.into_inner())?.into(), ..self })
    }
}

impl Traced for AsyncCallable {
    const KIND: Kind = Kind::Async;

    fn location(&self) -> Location {
        self.0.location
    }

    fn callable(&self) -> Option<&Py<PyAny>> {
        Some(&self.0.function)
    }

    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError> {
        opaque::starting(self)
    }

    fn wrapped(self, wrap: impl FnOnce(Py<PyAny>) -> PyResult<Py<PyAny>>) -> PyResult<Self> {
        self.0.wrapped(wrap).map(Self)
    }
}

impl Traced for Native {
    const KIND: Kind = Kind::Native;

    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError> {
        Ok(opaque::native(self, None))
    }

    fn location(&self) -> Location {
        self.location
    }
}

impl Traced for KeepingAlive {
    const KIND: Kind = Kind::Native;

    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError> {
        Ok(opaque::native(self.native, Some(self.object)))
    }

    fn location(&self) -> Location {
        self.native.location
    }
}

/// Asks Python.
struct Asking<'py> {
    py: Python<'py>,
    location: Location,
}

impl Describe for Asking<'_> {
    fn place(&self, _: u64) -> String {
        self.location.describe(self.py).unwrap_or_default()
    }

    fn thread(&self) -> Option<String> {
        let name = || -> PyResult<Option<String>> {
            let threading = self.py.import("threading")?;
            let ident: u64 = threading.call_method0("get_ident")?.extract()?;
            // current_thread() would make an object for a thread that is not Python's.
            for thread in threading.call_method0("enumerate")?.try_iter()? {
                let thread = thread?;
                if thread.getattr("ident")?.extract::<Option<u64>>()? == Some(ident) {
                    return thread.getattr("name")?.extract().map(Some);
                }
            }
            Ok(None)
        };
        name().ok().flatten()
    }
}

/// A note on an op of this name that is pushed at this place.
pub(crate) fn note(py: Python<'_>, engine: &weft_engine::Engine, kind: Kind, name: &str, location: Location) -> Note {
    if engine.is_watched() {
        announce(name, location.bits());
    }
    engine.note(kind, name, location.bits(), &Asking { py, location })
}

/// Bytes that such an op writes for its place to be noted: then asking for it takes no time beside the op.
const WORTH_A_PLACE: usize = 1 << 16;

/// The note of a native op, with the place of its push if it writes so many bytes that it may fail for want of memory.
#[inline]
pub(crate) fn placed(py: Python<'_>, note: Note, bytes: usize) -> Note {
    if bytes < WORTH_A_PLACE { note } else { note.at(Location::here(py).bits()) }
}

/// The note of an op on arrays that is pushed here; its kind alone if nobody observes the engine.
#[inline]
pub(crate) fn of_arrays(py: Python<'_>, engine: &weft_engine::Engine, kind: Kind, name: &str) -> Note {
    if engine.is_observed() {
        return note(py, engine, kind, name, Location::here(py));
    }
    if recording::is_open() {
        recording::announce(name, Location::here(py).bits());
    }
    Note::of(kind)
}

/// A note on a payload that is to be pushed with this name or none. May run a user's code.
#[cold]
pub(crate) fn note_of<P: Traced>(
    py: Python<'_>,
    engine: &weft_engine::Engine,
    payload: &P,
    name: Option<&str>,
) -> Note {
    match payload.callable() {
        Some(callable) => note_of_call(py, engine, P::KIND, name, callable.bind(py), payload.location()),
        None => note(py, engine, P::KIND, name.unwrap_or("native function"), payload.location()),
    }
}

/// The same for a payload that calls a callable.
pub(crate) fn note_of_call(
    py: Python<'_>,
    engine: &weft_engine::Engine,
    kind: Kind,
    name: Option<&str>,
    callable: &Bound<'_, PyAny>,
    location: Location,
) -> Note {
    if let Some(name) = name {
        return note(py, engine, kind, name, location);
    }
    let name = name_of(callable);
    let text = name.as_ref().and_then(|name| name.to_str().ok()).unwrap_or("callable");
    note(py, engine, kind, text, location)
}

/// The name of a callable; an object without one has the name of its class.
fn name_of<'py>(callable: &Bound<'py, PyAny>) -> Option<Bound<'py, PyString>> {
    let named = callable.getattr("__qualname__").ok();
    let name = named.and_then(|name| name.cast_into::<PyString>().ok());
    name.or_else(|| callable.get_type().cast_into::<PyType>().ok()?.qualname().ok())
}

/// One column: a number of each op, as bytes.
fn column<'py, const N: usize, T>(
    py: Python<'py>,
    rows: &[T],
    value: impl Fn(&T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, rows.len() * N, |bytes| {
        for (place, row) in bytes.chunks_exact_mut(N).zip(rows) {
            place.copy_from_slice(&value(row));
        }
        Ok(())
    })
}

const NONE: u16 = u16::MAX;

const fn word_of(kind: StreamKind) -> &'static str {
    match kind {
        StreamKind::Compute => "compute",
        StreamKind::CopyIn => "copy in",
        StreamKind::CopyOut => "copy out",
        StreamKind::Peer => "peer",
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // places in lists that are shorter
fn ops<'py>(py: Python<'py>, ops: &[RecordedOp], runs: &[RecordedRun]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("number", column(py, ops, |op| op.number.to_ne_bytes())?)?;
    columns.set_item("name", column(py, ops, |op| op.name.to_ne_bytes())?)?;
    columns.set_item("place", column(py, ops, |op| op.place.to_ne_bytes())?)?;
    columns.set_item("kind", column(py, ops, |op| [op.kind as u8])?)?;
    columns.set_item("lane", column(py, ops, |op| op.lane.to_ne_bytes())?)?;
    columns.set_item("priority", column(py, ops, |op| op.priority.to_ne_bytes())?)?;
    columns.set_item("bytes", column(py, ops, |op| op.bytes.to_ne_bytes())?)?;
    columns.set_item("pusher", column(py, ops, |op| op.pusher.to_ne_bytes())?)?;
    columns.set_item("worker", column(py, ops, |op| op.worker.unwrap_or(NONE).to_ne_bytes())?)?;
    columns.set_item("parent", column(py, ops, |op| op.parent.map_or(-1, |parent| parent as i64).to_ne_bytes())?)?;
    columns.set_item("pushed", column(py, ops, |op| op.pushed.to_ne_bytes())?)?;
    columns.set_item("ready", column(py, ops, |op| op.ready.to_ne_bytes())?)?;
    columns.set_item("started", column(py, ops, |op| op.started.to_ne_bytes())?)?;
    columns.set_item("ended", column(py, ops, |op| op.ended.to_ne_bytes())?)?;
    columns.set_item("settled", column(py, ops, |op| op.settled.to_ne_bytes())?)?;
    columns.set_item("outcome", column(py, ops, |op| [op.outcome as u8])?)?;
    // Of the op that runs on several streams, the last one.
    let mut on_device = vec![None; ops.len()];
    runs.iter().for_each(|run| on_device[run.op] = Some(*run));
    columns.set_item("stream", column(py, &on_device, |run| run.map_or(NONE, |run| run.stream).to_ne_bytes())?)?;
    columns
        .set_item("device_started", column(py, &on_device, |run| run.map_or(0, |run| run.started).to_ne_bytes())?)?;
    columns.set_item("device_ended", column(py, &on_device, |run| run.map_or(0, |run| run.ended).to_ne_bytes())?)?;
    columns.set_item("moved", column(py, &on_device, |run| run.map_or(0, |run| run.bytes).to_ne_bytes())?)?;
    Ok(columns)
}

/// A recording as the views of `weft.trace` read it.
#[allow(clippy::cast_possible_truncation)] // as above
pub(crate) fn to_python<'py>(py: Python<'py>, recording: &Recording) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    answer.set_item("epoch", recording.epoch)?;
    answer.set_item("duration", recording.duration)?;
    answer.set_item("dropped", recording.dropped)?;
    answer.set_item("names", &recording.names)?;
    answer.set_item("places", &recording.places)?;
    let threads = recording.threads.iter().map(|thread| {
        let row = PyDict::new(py);
        row.set_item("name", &thread.name)?;
        row.set_item("kind", if thread.lane.is_some() { "worker" } else { "thread" })?;
        row.set_item("lane", thread.lane.map_or(-1, i32::from))?;
        row.set_item("ident", thread.ident)?;
        Ok(row)
    });
    answer.set_item("threads", threads.collect::<PyResult<Vec<_>>>()?)?;
    let streams = recording.streams.iter().map(|stream| {
        let row = PyDict::new(py);
        row.set_item("device", &stream.device)?;
        row.set_item("name", &stream.name)?;
        row.set_item("kind", word_of(stream.kind))?;
        Ok(row)
    });
    answer.set_item("streams", streams.collect::<PyResult<Vec<_>>>()?)?;
    let variables = recording.variables.iter().map(|variable| {
        let row = PyDict::new(py);
        row.set_item("id", variable.number)?;
        row.set_item("name", &variable.name)?;
        row.set_item("bytes", variable.bytes)?;
        Ok(row)
    });
    answer.set_item("variables", variables.collect::<PyResult<Vec<_>>>()?)?;
    answer.set_item("ops", ops(py, &recording.ops, &recording.runs)?)?;
    let accesses = PyDict::new(py);
    let rows = &recording.accesses;
    accesses.set_item("op", column(py, rows, |access| (access.op as u32).to_ne_bytes())?)?;
    accesses.set_item("variable", column(py, rows, |access| access.variable.to_ne_bytes())?)?;
    // An exclusive access that makes no version has the place in the order of one that does.
    accesses
        .set_item("kind", column(py, rows, |access| [if access.kind as u8 > 2 { 1 } else { access.kind as u8 }])?)?;
    accesses.set_item("version", column(py, rows, |access| access.version.to_ne_bytes())?)?;
    answer.set_item("accesses", accesses)?;
    let errors = PyDict::new(py);
    for (op, reason) in &recording.errors {
        errors.set_item(op, reason)?;
    }
    answer.set_item("errors", errors)?;
    Ok(answer)
}
