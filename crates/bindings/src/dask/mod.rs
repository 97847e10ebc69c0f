//! Graphs of Python calls that are entered by one push: Dask's, as `weft.distributed.dask` hands them over.
//!
//! | file | home of |
//! |---|---|
//! | `read` | from Dask's nodes to calls on numbered values, each behind what it needs |
//! | `legacy` | the same from Dask's older form, of tuples |
//! | `run` | values, who still needs them, the first exception; a call as a step of a replay |
//!
//! The engine's replay schedules the calls. A call that raises fails no step: the graph is stopped, and calls that have
//! not begun do nothing.

mod legacy;
mod read;
mod run;

use crate::array::raised;
use crate::engine::Engine;
use crate::engine::variable::Variable;
use crate::interpreter::errors;
use legacy::Conversion;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use read::{Kinds, Reader};
use run::{Few, Observers, Run};
use std::sync::Arc;
use weft_array::{ArrayError, recording};
use weft_engine::{AccessKind, PushOptions, ReplayBuilder, ReplayOptions, StepKind, StepOptions};

/// How many priorities a graph's calls have, at most: the engine looks at each of them now and then, so that none starves.
const PRIORITIES: usize = 1024;

/// Calls that are computed together, once.
#[pyclass(module = "weft._core", frozen, name = "_TaskGraph")]
pub(crate) struct TaskGraph {
    run: Arc<Run>,
    /// Of each call, the calls that make its arguments.
    needs: Vec<Few>,
}

#[pymethods]
impl TaskGraph {
    /// Of all `nodes` by key, those that are needed for the keys `wanted`; `known` are values by key. `kinds` are Dask's
    /// classes, `mapping` its `Dict`, `convert(value)` its conversion of values of the older form; `before(key)` and `after(key, value)` are called around each call, if they are given.
    #[new]
    #[allow(clippy::too_many_arguments)] // the package's
    #[pyo3(signature = (nodes, wanted, known, kinds, mapping, convert, before=None, after=None))]
    fn new(
        nodes: &Bound<'_, PyDict>,
        wanted: &Bound<'_, PyList>,
        known: &Bound<'_, PyDict>,
        kinds: &Bound<'_, PyTuple>,
        mapping: Bound<'_, PyAny>,
        convert: Bound<'_, PyAny>,
        before: Option<Py<PyAny>>,
        after: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let observed = before.is_some() || after.is_some();
        let read =
            Reader::new(nodes, known, Kinds::new(kinds)?, Conversion::new(mapping, convert), observed).read(wanted)?;
        Ok(Self {
            run: Arc::new(Run::new(read.calls, read.values, read.wanted, Observers { before, after })),
            needs: read.needs,
        })
    }

    /// The keys of the calls, each behind its dependencies.
    fn order<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.run.keys())
    }

    /// Pushes all calls as one op. The variable is ready when the last of them is done.
    fn push(&self, py: Python<'_>, engine: &Bound<'_, Engine>) -> PyResult<Variable> {
        if recording::is_open() {
            let message =
                "a graph of Dask's is computed now, and not at each replay: compute it outside of the program";
            return Err(raised(py, ArrayError::Capture(message.to_owned())));
        }
        let (inner, owner) = (&engine.get().inner, engine.clone().unbind());
        let variable = inner.new_variable(Some("dask graph"));
        let mut builder = ReplayBuilder::<Run>::new();
        builder.name("dask graph");
        let done = builder.port();
        let traced = inner.is_traced();
        let (chains, places) = self.chains();
        let mut steps = Vec::with_capacity(chains.len());
        let together = chains.len().div_ceil(PRIORITIES);
        let mut last = Vec::new();
        let failed = |error| errors::raised(py, error);
        for calls in chains {
            let name = traced.then(|| self.run.name(py, &calls));
            // The dependency that a reader needs first goes first: so values are dropped soon.
            let priority = -i32::try_from(steps.len() / together).unwrap_or(i32::MAX);
            let options =
                StepOptions { kind: StepKind::Hosted, name: name.as_deref(), priority, ..StepOptions::default() };
            let (first, wanted) = (calls[0], calls.iter().any(|&call| self.run.is_wanted(call)));
            let step = builder.step(run::Chain(calls), &options);
            for &earlier in &self.needs[first as usize] {
                builder.needs(step, steps[places[earlier as usize] as usize]).map_err(failed)?;
            }
            if wanted {
                builder.touches(step, done, false).map_err(failed)?;
                last.push(step);
            }
            steps.push(step);
        }
        builder.resolve(done, AccessKind::Mutate, (&last, true), &last).map_err(failed)?;
        let replay = inner.new_replay(builder).map_err(failed)?;
        engine.get().wait_for_room(py, 0)?;
        let options = ReplayOptions {
            push: PushOptions { name: Some("dask graph"), ..PushOptions::default() },
            sequential: false,
        };
        let ports = [(done, &variable)];
        py.detach(|| inner.push_replay(&replay, &ports, Arc::clone(&self.run), &options)).map_err(failed)?;
        Ok(Variable::new(variable, owner))
    }

    /// Lets calls that have not begun do nothing.
    fn stop(&self) {
        self.run.stop();
    }

    /// The values of the keys that were wanted; or the first exception, which goes out of here.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.run.take(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The replay uses them, too.
        if Arc::strong_count(&self.run) == 1 { self.run.traverse(&visit) } else { Ok(()) }
    }
}

impl TaskGraph {
    /// Calls that nothing can run beside each other: each needs the one before it alone, and is the only one to need it.
    /// And of each call, which of these lists it is in.
    fn chains(&self) -> (Vec<Vec<u32>>, Vec<u32>) {
        let mut needed = vec![0_u32; self.needs.len()];
        self.needs.iter().flatten().for_each(|&call| needed[call as usize] += 1);
        let (mut chains, mut places) = (Vec::<Vec<u32>>::new(), Vec::with_capacity(self.needs.len()));
        for (call, needs) in (0..).zip(&self.needs) {
            match needs[..] {
                [only] if needed[only as usize] == 1 => {
                    let place: u32 = places[only as usize];
                    chains[place as usize].push(call);
                    places.push(place);
                }
                _ => {
                    places.push(u32::try_from(chains.len()).unwrap_or(u32::MAX));
                    chains.push(vec![call]);
                }
            }
        }
        (chains, places)
    }
}
