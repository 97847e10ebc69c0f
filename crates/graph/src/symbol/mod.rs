//! Symbols: entries of nodes, composed by calls.

mod compose;
mod listing;

pub use compose::Arguments;
pub use listing::Inputs;

use crate::error::{GraphError, Result};
use crate::node::{Node, NodeEntry, NodeRef};
use std::sync::Arc;

/// One or several entries that are asked for together.
#[derive(Debug, Clone)]
pub struct Symbol {
    outputs: Vec<NodeEntry>,
}

impl Symbol {
    /// A symbol of these entries.
    #[must_use]
    pub fn new(outputs: Vec<NodeEntry>) -> Self {
        Self { outputs }
    }

    /// A variable.
    #[must_use]
    pub fn variable(name: &str) -> Self {
        Self::of_node(&Arc::new(Node::variable(name)), 1)
    }

    /// The first results of a node.
    #[must_use]
    pub fn of_node(node: &NodeRef, visible: u32) -> Self {
        Self { outputs: (0..visible).map(|index| NodeEntry::new(node.clone(), index)).collect() }
    }

    /// All entries of several symbols.
    #[must_use]
    pub fn group(symbols: &[Self]) -> Self {
        Self { outputs: symbols.iter().flat_map(|symbol| symbol.outputs.iter().cloned()).collect() }
    }

    /// The entries.
    #[must_use]
    pub fn outputs(&self) -> &[NodeEntry] {
        &self.outputs
    }

    /// The entry of a symbol of one.
    pub fn single(&self) -> Result<&NodeEntry> {
        match self.outputs.as_slice() {
            [one] => Ok(one),
            several => {
                let names: Result<Vec<_>> = several.iter().map(|entry| entry.node.output_name(entry.index)).collect();
                Err(GraphError::new(format!(
                    "a symbol of {} outputs ({}) stands where one is wanted: choose one by [name or index]",
                    several.len(),
                    names?.join(", ")
                )))
            }
        }
    }

    /// The node with all its outputs as results, if there is one.
    #[must_use]
    pub fn head(&self) -> Option<&NodeRef> {
        let first = &self.outputs.first()?.node;
        self.outputs.iter().all(|entry| Arc::ptr_eq(&entry.node, first)).then_some(first)
    }

    /// Whether it is a call with inputs still to come.
    pub fn is_atom(&self) -> Result<bool> {
        let Some(node) = self.head() else { return Ok(false) };
        let Some(op) = node.op() else { return Ok(false) };
        Ok(op.is_registered() && node.inputs().is_empty() && op.num_inputs(node.attributes())? != Some(0))
    }
}
