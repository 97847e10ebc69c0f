//! The parts of a symbol, by name.

use super::Symbol;
use crate::error::{GraphError, Result};
use crate::node::{NodeEntry, NodeRef, post_order};
use std::collections::HashSet;
use std::sync::Arc;

/// Which variables are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inputs {
    /// Those that are not mutated.
    Arguments,
    /// Those that an op mutates.
    Auxiliary,
    /// All of them.
    All,
}

impl Symbol {
    /// The variables that it rests on, inputs first.
    pub fn inputs(&self, which: Inputs) -> Result<Vec<NodeRef>> {
        let order = post_order(&self.outputs);
        let mut mutated: HashSet<usize> = HashSet::new();
        if which != Inputs::All {
            for node in &order {
                for at in node.mutates()? {
                    if let Some(entry) = node.inputs().get(at) {
                        mutated.insert(Arc::as_ptr(&entry.node).addr());
                    }
                }
            }
        }
        let wanted = |node: &NodeRef| {
            node.is_variable()
                && (which == Inputs::All || mutated.contains(&Arc::as_ptr(node).addr()) == (which == Inputs::Auxiliary))
        };
        Ok(order.into_iter().filter(wanted).collect())
    }

    /// The names of its entries.
    pub fn output_names(&self) -> Result<Vec<String>> {
        self.outputs.iter().map(|entry| entry.node.output_name(entry.index)).collect()
    }

    /// All entries of all nodes that it rests on.
    pub fn internals(&self) -> Result<Self> {
        let mut outputs = Vec::new();
        for node in post_order(&self.outputs) {
            let visible = match node.op() {
                Some(op) if op.is_registered() => op.visible_outputs(node.attributes())?,
                _ => node.outputs() as usize,
            };
            outputs.extend((0..node.outputs()).take(visible).map(|index| NodeEntry::new(node.clone(), index)));
        }
        Ok(Self::new(outputs))
    }

    /// The inputs of the nodes of its entries; None of a variable.
    #[must_use]
    pub fn children(&self) -> Option<Self> {
        let mut seen = HashSet::new();
        let mut outputs = Vec::new();
        for entry in &self.outputs {
            if seen.insert(Arc::as_ptr(&entry.node).addr()) {
                outputs.extend(entry.node.inputs().iter().cloned());
            }
        }
        (!outputs.is_empty()).then(|| Self::new(outputs))
    }

    /// The entry of this name: that of an output, or that of a node with one result.
    pub fn named(&self, name: &str) -> Result<Self> {
        let mut found: Vec<&NodeEntry> = Vec::new();
        for entry in &self.outputs {
            if entry.node.output_name(entry.index)? == name {
                found.push(entry);
            }
        }
        if found.is_empty() {
            found = self.outputs.iter().filter(|entry| **entry.node.name() == *name).collect();
        }
        found.dedup();
        match found.as_slice() {
            [one] => Ok(Self::new(vec![(*one).clone()])),
            [] => Err(GraphError::new(format!(
                "no output is named '{name}': there are {}",
                self.output_names()?.join(", ")
            ))),
            several => {
                let count = several.len();
                Err(GraphError::new(format!("{count} outputs are named '{name}': choose one by its index")))
            }
        }
    }
}
