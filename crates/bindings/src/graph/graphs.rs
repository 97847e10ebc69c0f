//! The base of `weft.graph.Graph`, and `weft.graph.IndexedGraph`.

use super::nodes::PyNode;
use super::py_values::{Held, object};
use super::symbols::SymbolCore;
use super::values::{optional_dtype, shape_from_python, shape_to_python};
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::Arc;
use weft_graph::graph::{AnyAttribute, EntryId};
use weft_graph::passes::{DTYPE, DTypes, SHAPE, Shapes};
use weft_graph::{Graph, IndexedGraph, NodeRef};

/// A graph and its attributes.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct GraphCore(pub(crate) Graph);

/// An attribute of a graph as Python has it.
fn to_python<'py>(py: Python<'py>, value: &AnyAttribute) -> PyResult<Bound<'py, PyAny>> {
    if let Some(held) = object(py, value) {
        return Ok(held);
    }
    if let Some(shapes) = value.downcast_ref::<Shapes>() {
        let shapes: PyResult<Vec<_>> = shapes.iter().map(|shape| shape_to_python(py, shape)).collect();
        return shapes?.into_pyobject(py);
    }
    if let Some(dtypes) = value.downcast_ref::<DTypes>() {
        let dtypes: PyResult<Vec<_>> =
            dtypes.iter().map(|dtype| dtype.map(|dtype| dtypes::to_python(py, dtype)).transpose()).collect();
        return dtypes?.into_pyobject(py);
    }
    if let Some(numbers) = value.downcast_ref::<Vec<i64>>() {
        return numbers.into_pyobject(py);
    }
    if let Some(number) = value.downcast_ref::<usize>() {
        return Ok(number.into_pyobject(py)?.into_any());
    }
    if let Some(texts) = value.downcast_ref::<Vec<Option<Arc<str>>>>() {
        return texts.iter().map(|text| text.as_deref()).collect::<Vec<_>>().into_pyobject(py);
    }
    if let Some(text) = value.downcast_ref::<Arc<str>>() {
        return Ok(PyString::new(py, text).into_any());
    }
    Ok(py.None().into_bound(py))
}

/// The text of an item of an attribute that Python has left.
pub(crate) fn items(py: Python<'_>, value: &AnyAttribute, at: usize) -> Option<String> {
    let held = object(py, value)?;
    let found = held.get_item(at).ok()?;
    Some(found.str().ok()?.to_string_lossy().into_owned())
}

/// The value that Python gave for an attribute, in the form that passes make where they know it.
pub(crate) fn from_python(name: &str, value: &Bound<'_, PyAny>) -> AnyAttribute {
    if let Ok(objects) = value.extract::<Vec<Bound<'_, PyAny>>>() {
        let wanted = match name {
            SHAPE => objects
                .iter()
                .map(shape_from_python)
                .collect::<PyResult<Shapes>>()
                .ok()
                .map(|found| Arc::new(found) as _),
            DTYPE => {
                objects.iter().map(optional_dtype).collect::<PyResult<DTypes>>().ok().map(|found| Arc::new(found) as _)
            }
            "storage_id" | "storage_offset" | "storage_inplace_index" | "planned_order" => {
                value.extract::<Vec<i64>>().ok().map(|found| Arc::new(found) as _)
            }
            "device" | "layout" => value.extract::<Vec<Option<String>>>().ok().map(|found| {
                Arc::new(found.into_iter().map(|each| each.map(Arc::<str>::from)).collect::<Vec<_>>()) as _
            }),
            _ => None,
        };
        if let Some(found) = wanted {
            return found;
        }
    }
    if let (
        "shape_num_unknown_nodes" | "dtype_num_unknown_nodes" | "storage_allocated_bytes" | "storage_peak_live_bytes",
        Ok(number),
    ) = (name, value.extract::<usize>())
    {
        return Arc::new(number);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Arc::new(Arc::<str>::from(&*text.to_string_lossy()));
    }
    Arc::new(Held(value.clone().unbind()))
}

#[pymethods]
impl GraphCore {
    #[new]
    fn new(symbol: &SymbolCore) -> Self {
        Self(Graph::of(&symbol.0))
    }

    fn symbol(&self) -> SymbolCore {
        SymbolCore(self.0.symbol())
    }

    fn attribute<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.attribute(name).map(|value| to_python(py, value)).transpose()
    }

    fn names(&self) -> Vec<String> {
        self.0.attributes().map(|(name, _)| name.to_string()).collect()
    }

    /// Another graph of the same outputs with one more attribute; without it, for None.
    fn with_attribute(&self, name: &str, value: Option<&Bound<'_, PyAny>>) -> Self {
        let mut graph = self.0.clone();
        match value {
            Some(value) => graph.set_any(name, from_python(name, value)),
            None => graph.remove(name),
        }
        Self(graph)
    }

    /// The names of arguments and of auxiliary states.
    fn variables(&self, py: Python<'_>) -> PyResult<(Vec<String>, Vec<String>)> {
        let indexed = self.0.indexed().map_err(|error| errors::graph(py, error))?;
        let of = |mutable: bool| {
            let numbers = indexed.input_nodes().iter();
            let found = numbers.filter(|number| indexed.mutable_input_nodes().contains(number) == mutable);
            found.map(|&number| indexed.nodes()[number as usize].name().to_string()).collect()
        };
        Ok((of(false), of(true)))
    }

    fn indexed(&self, py: Python<'_>) -> PyResult<PyIndexedGraph> {
        self.0.indexed().map(PyIndexedGraph).map_err(|error| errors::graph(py, error))
    }
}

/// A graph in numbers: nodes in an order in which inputs come first.
#[pyclass(module = "weft.graph", name = "IndexedGraph", frozen)]
pub(crate) struct PyIndexedGraph(pub(crate) Arc<IndexedGraph>);

fn entry(id: &EntryId) -> (u32, u32, u32) {
    (id.node, id.index, id.version)
}

impl PyIndexedGraph {
    fn check(&self, py: Python<'_>, node: i64) -> PyResult<u32> {
        if let Some(node) = u32::try_from(node).ok().filter(|&node| (node as usize) < self.0.nodes().len()) {
            return Ok(node);
        }
        let message = format!("there is no node {node}: the graph has {}", self.0.nodes().len());
        Err(errors::graph(py, weft_graph::GraphError::new(message)))
    }
}

#[pymethods]
impl PyIndexedGraph {
    /// The nodes.
    #[getter]
    fn nodes(&self) -> Vec<PyNode> {
        self.0.nodes().iter().map(|node: &NodeRef| PyNode(node.clone())).collect()
    }

    /// The numbers of variables.
    #[getter]
    fn input_nodes(&self) -> Vec<u32> {
        self.0.input_nodes().to_vec()
    }

    /// The numbers of variables that an op mutates.
    #[getter]
    fn mutable_input_nodes(&self) -> std::collections::BTreeSet<u32> {
        self.0.mutable_input_nodes().clone()
    }

    /// The outputs as ``(node, index, version)``.
    #[getter]
    fn outputs(&self) -> Vec<(u32, u32, u32)> {
        self.0.outputs().iter().map(entry).collect()
    }

    /// The number of entries of all nodes.
    #[getter]
    fn num_node_entries(&self) -> usize {
        self.0.num_entries()
    }

    /// The number of nodes.
    #[getter]
    fn num_nodes(&self) -> usize {
        self.0.nodes().len()
    }

    /// Where the inputs of each node begin among those of all, and where the last end.
    #[getter]
    fn input_starts(&self) -> Vec<u32> {
        self.0.input_starts().to_vec()
    }

    /// The inputs of a node as ``(node, index, version)``; of all nodes in turn without a number.
    #[pyo3(signature = (node=None))]
    fn inputs(&self, py: Python<'_>, node: Option<i64>) -> PyResult<Vec<(u32, u32, u32)>> {
        Ok(match node {
            Some(node) => self.0.inputs(self.check(py, node)?).iter().map(entry).collect(),
            None => self.0.all_inputs().iter().map(entry).collect(),
        })
    }

    /// The nodes that come before a node although nothing of theirs is used.
    fn control_deps(&self, py: Python<'_>, node: i64) -> PyResult<Vec<u32>> {
        Ok(self.0.control(self.check(py, node)?).to_vec())
    }

    /// The number of a node, given by itself or by its name.
    fn node_id(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> PyResult<u32> {
        let found = match node.cast::<PyNode>() {
            Ok(node) => self.0.node_id(&node.get().0),
            Err(_) => {
                let name: String = node.extract()?;
                (0_u32..).zip(self.0.nodes()).find(|(_, node)| **node.name() == *name).map(|(at, _)| at)
            }
        };
        let missing = || errors::graph(py, weft_graph::GraphError::new(format!("the graph has no node {node}")));
        found.ok_or_else(missing)
    }

    /// The number of an entry among those of all nodes: of a node's number and which result, of a ``NodeEntry``, or of a
    /// tuple as in ``outputs``.
    #[pyo3(signature = (node, index=0))]
    fn entry_id(&self, py: Python<'_>, node: &Bound<'_, PyAny>, index: i64) -> PyResult<usize> {
        let (node, index) = if let Ok(entry) = node.cast::<super::nodes::PyNodeEntry>() {
            let entry = &entry.get().0;
            match self.0.node_id(&entry.node) {
                Some(node) => (i64::from(node), i64::from(entry.index)),
                None => {
                    let message = format!("the graph has no node '{}'", entry.node.name());
                    return Err(errors::graph(py, weft_graph::GraphError::new(message)));
                }
            }
        } else if let Ok((node, index, _version)) = node.extract::<(i64, i64, i64)>() {
            (node, index)
        } else if let Ok(node) = node.extract::<i64>() {
            (node, index)
        } else {
            (i64::from(self.node_id(py, node)?), index)
        };
        let entries = self.0.entries_of(self.check(py, node)?);
        let Some(at) = usize::try_from(index).ok().filter(|&at| at < entries.len()) else {
            let message = format!("node {node} has {} outputs, and output {index} was asked for", entries.len());
            return Err(errors::graph(py, weft_graph::GraphError::new(message)));
        };
        Ok(entries.start + at)
    }

    fn __len__(&self) -> usize {
        self.0.nodes().len()
    }

    fn __repr__(&self) -> String {
        format!("<IndexedGraph of {} nodes, {} entries>", self.0.nodes().len(), self.0.num_entries())
    }
}
