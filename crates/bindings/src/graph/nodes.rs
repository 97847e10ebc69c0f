//! `weft.graph.Node` and `weft.graph.NodeEntry`.

use super::registry::{OpEntry, face};
use super::values::{attributes_from_python, attributes_to_python};
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyMapping, PyString};
use std::collections::HashMap;
use std::sync::Arc;
use weft_graph::node::{HIDDEN, is_note};
use weft_graph::{Node, NodeEntry, NodeRef, Registry};

/// A call of an op, or a variable.
#[pyclass(module = "weft.graph", name = "Node", frozen)]
pub(crate) struct PyNode(pub(crate) NodeRef);

/// The record of an op, given as an `OpEntry`, an `Op`, or a name.
fn entry_of(py: Python<'_>, op: &Bound<'_, PyAny>) -> PyResult<Arc<weft_graph::Op>> {
    if let Ok(entry) = op.cast::<OpEntry>() {
        return Ok(entry.get().0.clone());
    }
    if let Ok(name) = op.cast::<PyString>() {
        let name = name.to_string_lossy();
        return Registry::global().find(&name).ok_or_else(|| {
            let message = format!("no op is named '{name}': weft.ops.list_ops() names them all");
            errors::graph(py, weft_graph::GraphError::new(message))
        });
    }
    let entry = op.getattr("_entry").ok().and_then(|entry| Some(entry.cast::<OpEntry>().ok()?.get().0.clone()));
    entry.ok_or_else(|| {
        let class = op.get_type();
        let message = format!("a node's op is a weft.ops.Op, its name, or None for a variable, not {op} ({class})");
        errors::argument_type(py, &message)
    })
}

/// The attributes for Python: read only, as writing to them would change nothing.
fn read_only<'py>(py: Python<'py>, attributes: Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("weft._graph.attributes")?.getattr("NodeAttributes")?.unbind())
    })?;
    class.bind(py).call1((attributes,))
}

/// The attributes of a call, and the notes on its node, from both together.
fn parted<'py>(
    py: Python<'py>,
    attrs: Option<&Bound<'py, PyMapping>>,
    is_variable: bool,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let (given, texts) = (PyDict::new(py), PyDict::new(py));
    let items = attrs.map(PyMappingMethods::items).transpose()?;
    for item in items.iter().flatten() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let Ok(name) = key.cast::<PyString>() else {
            return Err(errors::argument_type(py, &format!("attributes of a node go by names, not by {key}")));
        };
        let name = name.to_string_lossy();
        let noted = is_variable || is_note(&name) || HIDDEN.contains(&&*name);
        if noted { texts.set_item(key, value)? } else { given.set_item(key, value)? }
    }
    Ok((given, texts))
}

#[pymethods]
impl PyNode {
    #[new]
    #[pyo3(signature = (op, name, attrs=None, inputs=Vec::new(), control_deps=Vec::new()))]
    fn new(
        py: Python<'_>,
        op: Option<Bound<'_, PyAny>>,
        name: &str,
        attrs: Option<Bound<'_, PyMapping>>,
        inputs: Vec<PyRef<'_, PyNodeEntry>>,
        control_deps: Vec<PyRef<'_, PyNode>>,
    ) -> PyResult<Self> {
        let control = control_deps.iter().map(|node| node.0.clone()).collect();
        let place = Location::here(py).bits();
        let (given, texts) = parted(py, attrs.as_ref(), op.is_none())?;
        let node = match op {
            None => {
                if !inputs.is_empty() {
                    let message = format!("variable '{name}' takes no inputs: give the node an op");
                    return Err(errors::graph(py, weft_graph::GraphError::new(message)));
                }
                Node::variable(name)
            }
            Some(op) => {
                let inputs = inputs.iter().map(|entry| entry.0.clone()).collect();
                Node::call(entry_of(py, &op)?, name.into(), attributes_from_python(&given)?, inputs)
                    .map_err(|error| errors::graph(py, error))?
            }
        };
        set_texts(&node, &texts)?;
        Ok(Self(Arc::new(node.at(place).after(control))))
    }

    /// The op; None of a variable.
    #[getter]
    pub(crate) fn op<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.op().map(|op| face(py, op)).transpose()
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Whether it is a variable.
    #[getter]
    fn is_variable(&self) -> bool {
        self.0.is_variable()
    }

    /// The attributes of the call.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        read_only(py, attributes_to_python(py, self.0.attributes())?)
    }

    /// The attributes of the call, and the notes on the node.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dict = attributes_to_python(py, self.0.attributes())?;
        for (key, text) in self.0.texts() {
            dict.set_item(&*key, &*text)?;
        }
        read_only(py, dict)
    }

    /// The entries that it takes.
    #[getter]
    fn inputs(&self) -> Vec<PyNodeEntry> {
        self.0.inputs().iter().cloned().map(PyNodeEntry).collect()
    }

    /// The nodes that come before although nothing of theirs is used.
    #[getter]
    fn control_deps(&self) -> Vec<PyNode> {
        self.0.control().iter().cloned().map(PyNode).collect()
    }

    /// The number of results.
    #[getter]
    fn num_outputs(&self) -> u32 {
        self.0.outputs()
    }

    /// The results.
    #[getter]
    fn outputs(&self) -> Vec<PyNodeEntry> {
        (0..self.0.outputs()).map(|index| PyNodeEntry(NodeEntry::new(self.0.clone(), index))).collect()
    }

    /// The names of its inputs.
    #[getter]
    fn input_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let names = self.0.input_names().map_err(|error| errors::graph(py, error))?;
        Ok(names.iter().map(ToString::to_string).collect())
    }

    /// The inputs that it changes.
    #[getter]
    fn mutates(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.0.mutates().map_err(|error| errors::graph(py, error))
    }

    /// The line that made it, as `file:line`, if it is known.
    #[getter]
    fn line(&self, py: Python<'_>) -> Option<String> {
        Location::of_bits(self.0.place()).describe(py)
    }

    /// The note under a key, or None.
    fn attr(&self, key: &str) -> Option<String> {
        self.0.text(key).map(|text| text.to_string())
    }

    /// Notes a text under a key, or each keyword's under its name.
    #[pyo3(signature = (key = None, value = None, /, **texts))]
    fn set_attr(
        &self,
        py: Python<'_>,
        key: Option<&str>,
        value: Option<&str>,
        texts: Option<HashMap<String, String>>,
    ) -> PyResult<()> {
        match (key, value) {
            (Some(key), Some(value)) => self.0.set_text(key, value),
            (None, None) => {}
            _ => {
                return Err(errors::argument_type(
                    py,
                    "set_attr takes a key and its text, or keywords: set_attr(key=\"text\")",
                ));
            }
        }
        texts.into_iter().flatten().for_each(|(key, text)| self.0.set_text(&key, &text));
        Ok(())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| Arc::ptr_eq(&self.0, &other.get().0))
    }

    fn __hash__(&self) -> usize {
        Arc::as_ptr(&self.0).addr() >> 4
    }

    fn __repr__(&self) -> String {
        format!("<Node '{}' of {}>", self.0.name(), if self.0.is_variable() { "no op" } else { self.0.op_name() })
    }
}

/// Notes texts on a node; other values are written as texts.
pub(crate) fn set_texts(node: &Node, texts: &Bound<'_, PyDict>) -> PyResult<()> {
    for (key, value) in texts {
        let text = match value.cast::<PyString>() {
            Ok(text) => text.to_string_lossy().into_owned(),
            Err(_) => super::values::value_from_python(&value)?.to_string(),
        };
        node.set_text(&key.cast::<PyString>()?.to_string_lossy(), &text);
    }
    Ok(())
}

/// A result of a node in one of its versions.
#[pyclass(module = "weft.graph", name = "NodeEntry", frozen)]
pub(crate) struct PyNodeEntry(pub(crate) NodeEntry);

#[pymethods]
impl PyNodeEntry {
    #[new]
    #[pyo3(signature = (node, index=0, version=0))]
    fn new(py: Python<'_>, node: &PyNode, index: i64, version: i64) -> PyResult<Self> {
        let refuse = |message: String| Err(errors::graph(py, weft_graph::GraphError::new(message)));
        let Some(index) = u32::try_from(index).ok().filter(|&index| index < node.0.outputs()) else {
            let count = node.0.outputs();
            return refuse(format!("{} has {count} outputs, and output {index} was asked for", node.0.described()));
        };
        let Ok(version) = u32::try_from(version) else {
            return refuse(format!("{}: a version counts mutations, and {version} was given", node.0.described()));
        };
        Ok(Self(NodeEntry { node: node.0.clone(), index, version }))
    }

    /// Its node.
    #[getter]
    fn node(&self) -> PyNode {
        PyNode(self.0.node.clone())
    }

    /// Which of the node's results it is.
    #[getter]
    fn index(&self) -> u32 {
        self.0.index
    }

    /// How often it was mutated before.
    #[getter]
    fn version(&self) -> u32 {
        self.0.version
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> usize {
        (self.0.key().0 >> 4) ^ self.0.index as usize
    }

    fn __repr__(&self) -> String {
        format!("<NodeEntry {} of '{}', version {}>", self.0.index, self.0.node.name(), self.0.version)
    }
}
