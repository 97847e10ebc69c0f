//! The base of `weft.symbol.Symbol`.

use super::nodes::{PyNode, PyNodeEntry, set_texts};
use super::registry::OpEntry;
use super::values::attributes_from_python;
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use weft_graph::symbol::{Arguments, Inputs};
use weft_graph::{Node, NodeEntry, Symbol};

/// Entries of nodes.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct SymbolCore(pub(crate) Symbol);

impl SymbolCore {
    pub(crate) fn of(outputs: Vec<NodeEntry>) -> Self {
        Self(Symbol::new(outputs))
    }

    pub(crate) fn single(&self) -> PyResult<NodeEntry> {
        Python::attach(|py| self.0.single().cloned().map_err(|error| errors::graph(py, error)))
    }
}

fn arguments(positional: &[PyRef<'_, SymbolCore>], keyword: Option<&Bound<'_, PyDict>>) -> PyResult<Arguments> {
    let mut arguments =
        Arguments { positional: positional.iter().map(|each| each.0.clone()).collect(), keyword: Vec::new() };
    if let Some(keyword) = keyword {
        for (name, symbol) in keyword {
            let name: String = name.extract()?;
            arguments.keyword.push((name.into(), symbol.cast::<SymbolCore>()?.get().0.clone()));
        }
    }
    Ok(arguments)
}

/// Copies the notes of a node to the variables that were made for it.
fn note_variables(node: &weft_graph::NodeRef, arguments: &Arguments) {
    let given = arguments.positional.iter().chain(arguments.keyword.iter().map(|(_, symbol)| symbol));
    let given: Vec<_> = given.flat_map(|symbol| symbol.outputs().iter().map(|entry| &entry.node)).collect();
    for entry in node.inputs() {
        if entry.node.is_variable() && !given.iter().any(|known| Arc::ptr_eq(known, &entry.node)) {
            for (key, text) in node.texts() {
                entry.node.set_text(&key, &text);
            }
        }
    }
}

#[pymethods]
impl SymbolCore {
    #[staticmethod]
    fn variable(py: Python<'_>, name: &str, texts: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let node = Node::variable(name).at(Location::here(py).bits());
        if let Some(texts) = texts {
            set_texts(&node, texts)?;
        }
        Ok(Self(Symbol::of_node(&Arc::new(node), 1)))
    }

    #[staticmethod]
    #[pyo3(signature = (entry, name, attributes, positional, keyword=None, texts=None))]
    fn call(
        py: Python<'_>,
        entry: &OpEntry,
        name: &str,
        attributes: &Bound<'_, PyDict>,
        positional: Vec<PyRef<'_, SymbolCore>>,
        keyword: Option<&Bound<'_, PyDict>>,
        texts: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let attributes = attributes_from_python(attributes)?;
        let arguments = arguments(&positional, keyword)?;
        let symbol = Symbol::call(&entry.0, &name.into(), attributes, &arguments, Location::here(py).bits())
            .map_err(|error| errors::graph(py, error))?;
        if let (Some(texts), Some(node)) = (texts, symbol.head()) {
            set_texts(node, texts)?;
            note_variables(node, &arguments);
        }
        Ok(Self(symbol))
    }

    #[staticmethod]
    fn atom(
        py: Python<'_>,
        entry: &OpEntry,
        name: &str,
        attributes: &Bound<'_, PyDict>,
        texts: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let attributes = attributes_from_python(attributes)?;
        let symbol = Symbol::atom(&entry.0, &name.into(), attributes, Location::here(py).bits())
            .map_err(|error| errors::graph(py, error))?;
        if let (Some(texts), Some(node)) = (texts, symbol.head()) {
            set_texts(node, texts)?;
        }
        Ok(Self(symbol))
    }

    #[staticmethod]
    fn group(symbols: Vec<PyRef<'_, SymbolCore>>) -> Self {
        Self(Symbol::group(&symbols.iter().map(|each| each.0.clone()).collect::<Vec<_>>()))
    }

    #[staticmethod]
    fn of_entries(entries: Vec<PyRef<'_, PyNodeEntry>>) -> Self {
        Self::of(entries.iter().map(|entry| entry.0.clone()).collect())
    }

    #[pyo3(signature = (name, positional, keyword=None))]
    fn composed(
        &self,
        py: Python<'_>,
        name: Option<&str>,
        positional: Vec<PyRef<'_, SymbolCore>>,
        keyword: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let name = name.map(Arc::from);
        let composed = self.0.composed(name.as_ref(), &arguments(&positional, keyword)?);
        composed.map(Self).map_err(|error| errors::graph(py, error))
    }

    fn __len__(&self) -> usize {
        self.0.outputs().len()
    }

    fn output(&self, at: usize) -> Option<Self> {
        self.0.outputs().get(at).map(|entry| Self::of(vec![entry.clone()]))
    }

    fn named(&self, py: Python<'_>, name: &str) -> PyResult<Self> {
        self.0.named(name).map(Self).map_err(|error| errors::graph(py, error))
    }

    fn entries(&self) -> Vec<PyNodeEntry> {
        self.0.outputs().iter().cloned().map(PyNodeEntry).collect()
    }

    fn head(&self) -> Option<PyNode> {
        self.0.head().cloned().map(PyNode)
    }

    fn internals(&self, py: Python<'_>) -> PyResult<Self> {
        self.0.internals().map(Self).map_err(|error| errors::graph(py, error))
    }

    fn children(&self) -> Option<Self> {
        self.0.children().map(Self)
    }

    /// The variables: "arguments", "auxiliary", or "all" of them.
    fn inputs(&self, py: Python<'_>, which: &str) -> PyResult<Vec<PyNode>> {
        let which = match which {
            "arguments" => Inputs::Arguments,
            "auxiliary" => Inputs::Auxiliary,
            _ => Inputs::All,
        };
        let nodes = self.0.inputs(which).map_err(|error| errors::graph(py, error))?;
        Ok(nodes.into_iter().map(PyNode).collect())
    }

    fn list_inputs(&self, py: Python<'_>, which: &str) -> PyResult<Vec<String>> {
        Ok(self.inputs(py, which)?.iter().map(|node| node.0.name().to_string()).collect())
    }

    fn list_outputs(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.0.output_names().map_err(|error| errors::graph(py, error))
    }

    fn nodes(&self) -> Vec<PyNode> {
        weft_graph::node::post_order(self.0.outputs()).into_iter().map(PyNode).collect()
    }
}
