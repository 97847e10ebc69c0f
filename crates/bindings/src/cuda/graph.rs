//! `weft.cuda.Graph`.

use super::capture;
use crate::array::raised;
use crate::engine::wait_for_room;
use crate::errors;
use crate::location::Location;
use crate::trace;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::mem::offset_of;
use std::sync::{Arc, OnceLock};
use weft_array::Prepared;
use weft_engine::trace::Kind;
use weft_engine::{Cause, InOrder, OpContext, Payload, PlaceOffset, PushOptions};

/// What became of a capture.
pub(super) enum State {
    /// It can be replayed; without a graph there is nothing to be done.
    Ready { prepared: Prepared, graph: Option<weft_cuda::Graph> },
    /// An exception has left its block.
    Abandoned,
}

/// Ops on a CUDA device that were recorded by `capture`, to be replayed as one.
///
/// The graph holds the memory of the arrays it uses; arrays themselves may be deleted. It belongs to the process that
/// made it.
///
/// Notes
/// -----
/// Made by `capture` alone.
#[pyclass(module = "weft.cuda", frozen, weakref, name = "Graph")]
pub(crate) struct Graph {
    label: Arc<str>,
    named: bool,
    /// Nothing while it is being recorded.
    state: OnceLock<State>,
}

struct Replay {
    graph: weft_cuda::Graph,
    location: Location,
}

impl Payload for Replay {
    // SAFETY: a `Location` is eight bytes without padding.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(offset_of!(Self, location)) });

    fn queue(&self) -> Option<InOrder> {
        self.graph.queue()
    }

    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.graph.replay_at(self.location.bits()).map(drop).map_err(Cause::from)
    }
}

impl Graph {
    pub(super) fn new(name: Option<&str>) -> Self {
        Self { label: name.unwrap_or("graph").into(), named: name.is_some(), state: OnceLock::new() }
    }

    pub(super) fn label(&self) -> &Arc<str> {
        &self.label
    }

    fn state(&self, py: Python<'_>) -> PyResult<&State> {
        self.state.get().ok_or_else(|| {
            let message = format!("graph '{}' is still being recorded: its capture's block has not ended", self.label);
            errors::capture(py, &message)
        })
    }
}

#[pymethods]
impl Graph {
    #[new]
    #[pyo3(signature = (*args, **_kwargs))]
    fn refused(args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let message = "graphs are recorded, not made: with weft.cuda.capture() as graph: ...";
        Err(errors::argument_type(args.py(), message))
    }

    /// The name it was given, or None.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.named.then_some(&*self.label)
    }

    /// How many ops were recorded.
    #[getter]
    fn ops(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(match self.state(py)? {
            State::Ready { graph: Some(graph), .. } => graph.ops(),
            State::Ready { graph: None, .. } | State::Abandoned => 0,
        })
    }

    /// Bytes of arrays that nobody but this graph has any more: results in between.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(match self.state(py)? {
            State::Ready { graph: Some(graph), .. } => graph.hidden_bytes(),
            State::Ready { graph: None, .. } | State::Abandoned => 0,
        })
    }

    /// Pushes one op that does what was recorded, and returns at once.
    ///
    /// It accesses what the recorded ops do, and comes in its order among all that is pushed on the same arrays.
    ///
    /// Raises
    /// ------
    /// CaptureError
    ///     In a capture's block; or if the block of this graph's was left by an exception.
    /// EngineClosedError, PendingLimitError, NestedPushError
    ///     As for any push. Then nothing was pushed.
    fn replay(&self, py: Python<'_>) -> PyResult<()> {
        if capture::is_open() {
            let message =
                format!("graph '{}' cannot be replayed in a capture's block: replay it after that", self.label);
            return Err(errors::capture(py, &message));
        }
        let State::Ready { prepared, graph } = self.state(py)? else {
            let message = format!("graph '{}' was not recorded: an exception has left its capture's block", self.label);
            return Err(errors::capture(py, &message));
        };
        let engine = prepared.engine();
        wait_for_room(py, engine, 0)?;
        let location = Location::here(py);
        let note = if engine.is_traced() {
            trace::note(py, engine, Kind::Launch, &self.label, location)
        } else {
            weft_engine::trace::Note::of(Kind::Launch)
        };
        let options = PushOptions { name: Some(&self.label), note, ..PushOptions::default() };
        let pushed = match graph {
            Some(graph) => prepared.push(Replay { graph: graph.clone(), location }, options),
            None => prepared.push(|_: &mut OpContext<'_>| Ok(()), options),
        };
        pushed.map_err(|error| raised(py, error))
    }

    /// Ends the capture.
    fn _end(slf: &Bound<'_, Self>, abandon: bool) -> PyResult<()> {
        let py = slf.py();
        let recording = capture::end(py, slf)?;
        let ended = if abandon {
            py.detach(|| drop(recording));
            Ok(State::Abandoned)
        } else {
            recording.finish(py)
        };
        let (state, outcome) = match ended {
            Ok(state) => (state, Ok(())),
            Err(error) => (State::Abandoned, Err(error)),
        };
        // It is set here, by whoever has ended the capture.
        let _ = slf.get().state.set(state);
        outcome
    }

    #[allow(clippy::unused_self)] // a method
    fn __reduce__(&self) -> PyResult<()> {
        let message = "a weft.cuda.Graph belongs to its process and its device: it can be neither pickled nor copied";
        Err(PyTypeError::new_err(message))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let name = self.name().map(|name| format!(" '{name}'")).unwrap_or_default();
        let state = match self.state.get() {
            None => "recording".to_owned(),
            Some(State::Abandoned) => "abandoned".to_owned(),
            Some(State::Ready { .. }) => match self.ops(py) {
                Ok(1) => "1 op".to_owned(),
                Ok(ops) => format!("{ops} ops"),
                Err(_) => unreachable!("it is ready"),
            },
        };
        format!("<weft.cuda.Graph{name}, {state}>")
    }
}
