//! A graph as a list of calls in order.

use super::graphs::GraphCore;
use super::registry::face;
use super::values::attributes_to_python;
use crate::interpreter::errors;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weft_graph::value::Attributes;

/// One call: its function, its entries, the entries of its results.
#[pyclass(module = "weft._core", name = "GraphCall", frozen)]
pub(crate) struct GraphCall {
    /// The name of the node.
    #[pyo3(get)]
    name: Py<PyString>,
    /// Its function, as `prepare` has made it of op and attributes: one object for all calls that have the same.
    #[pyo3(get)]
    kind: Py<PyAny>,
    /// The entries that it takes.
    #[pyo3(get)]
    inputs: Py<PyTuple>,
    /// The entry of its first result.
    #[pyo3(get)]
    first: usize,
    /// The number of its results.
    #[pyo3(get)]
    results: u32,
}

#[pymethods]
impl GraphCall {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.kind)?;
        visit.call(&self.inputs)
    }
}

/// The variables with their entries, and the calls; `prepare(op, attributes, is_mutated)` makes what they have in common. The
/// last says whether memory of an input, or of a result, is mutated by a call.
#[pyfunction]
#[allow(clippy::type_complexity)] // two tables
pub(crate) fn graph_calls(
    py: Python<'_>,
    graph: &GraphCore,
    prepare: &Bound<'_, PyAny>,
) -> PyResult<(Vec<(String, usize)>, Vec<GraphCall>)> {
    let indexed = graph.0.indexed().map_err(|error| errors::graph(py, error))?;
    let mut mutated: HashSet<usize> = HashSet::new();
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        let inputs = indexed.inputs(number);
        let found = node.mutates().map_err(|error| errors::graph(py, error))?;
        mutated.extend(found.into_iter().filter_map(|at| inputs.get(at)).map(|&id| indexed.entry_id(id)));
    }
    let mut variables = Vec::new();
    let mut calls = Vec::with_capacity(indexed.nodes().len());
    let mut kinds: HashMap<(usize, Attributes, bool), Py<PyAny>> = HashMap::new();
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        let first = indexed.entries_of(number).start;
        let Some(op) = node.op() else {
            variables.push((node.name().to_string(), first));
            continue;
        };
        let entries: Vec<usize> = indexed.inputs(number).iter().map(|&id| indexed.entry_id(id)).collect();
        let is_mutated = !mutated.is_empty()
            && entries.iter().copied().chain(indexed.entries_of(number)).any(|entry| mutated.contains(&entry));
        let key = (Arc::as_ptr(op).addr(), node.attributes().clone(), is_mutated);
        let kind = match kinds.get(&key) {
            Some(known) => known.clone_ref(py),
            None => {
                let made = prepare.call1((face(py, op)?, attributes_to_python(py, &key.1)?, is_mutated))?.unbind();
                kinds.entry(key).or_insert(made).clone_ref(py)
            }
        };
        calls.push(GraphCall {
            name: PyString::new(py, node.name()).unbind(),
            kind,
            inputs: PyTuple::new(py, entries)?.unbind(),
            first,
            results: node.outputs(),
        });
    }
    Ok((variables, calls))
}
