//! The times of devices, for traces.

use super::fences;
use super::runtime;
use pyo3::prelude::*;
use std::time::Duration;
use weft_cuda::Lane;
use weft_engine::Engine;
use weft_engine::trace::{RecordedStream, Recording, StreamKind};

/// Prepares for a trace that has begun.
pub(super) fn begin(engine: &Engine) {
    if let Some(cuda) = runtime::known() {
        cuda.begin_times(engine.id());
    }
}

/// Waits until the work has ended that traced ops have issued.
pub(super) fn wait_for(py: Python<'_>, engine: &Engine, timeout: Option<Duration>) -> PyResult<()> {
    let Some(cuda) = runtime::known() else { return Ok(()) };
    if !engine.is_traced() {
        return Ok(());
    }
    fences::for_device(py, timeout, |wait| cuda.wait_for_times(engine.id(), wait))
}

/// Joins the times of devices to a recording.
pub(super) fn join(recording: &mut Recording) {
    for stream in runtime::known().map(|cuda| cuda.times(recording.engine)).unwrap_or_default() {
        let kind = match stream.lane {
            Lane::Compute => StreamKind::Compute,
            Lane::CopyIn => StreamKind::CopyIn,
            Lane::CopyOut => StreamKind::CopyOut,
            Lane::CopyAcross => StreamKind::Peer,
        };
        let about = RecordedStream { device: format!("cuda:{}", stream.device), name: stream.name, kind };
        recording.add_stream(about, &stream.runs);
    }
}

/// Forgets it, when the trace is over.
pub(super) fn end(recording: &Recording) {
    if let Some(cuda) = runtime::known() {
        cuda.end_times(recording.engine);
    }
}
