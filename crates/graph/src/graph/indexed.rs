//! A graph in numbers: nodes in topological order, edges as ranges of one array.

use crate::error::{GraphError, Result};
use crate::node::{NodeEntry, NodeRef, post_order};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// An entry in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryId {
    /// The node.
    pub node: u32,
    /// Which of its results.
    pub index: u32,
    /// How often it was mutated before.
    pub version: u32,
}

/// A graph in numbers.
#[derive(Debug)]
pub struct IndexedGraph {
    nodes: Vec<NodeRef>,
    numbers: HashMap<usize, u32>,
    first_entry: Vec<u32>,
    first_input: Vec<u32>,
    inputs: Vec<EntryId>,
    first_control: Vec<u32>,
    control: Vec<u32>,
    input_nodes: Vec<u32>,
    mutable: BTreeSet<u32>,
    outputs: Vec<EntryId>,
}

impl IndexedGraph {
    /// Numbers the nodes that entries rest on.
    ///
    /// # Errors
    ///
    /// If there are more than 32 bits count, an entry names a result that its node does not have, or inputs of a call are
    /// still to come.
    pub fn new(outputs: &[NodeEntry]) -> Result<Self> {
        let nodes = post_order(outputs);
        let count = |value: usize| u32::try_from(value).map_err(|_| GraphError::new("the graph is too large"));
        count(nodes.len())?;
        let mut graph = Self {
            numbers: HashMap::with_capacity(nodes.len()),
            first_entry: Vec::with_capacity(nodes.len() + 1),
            first_input: Vec::with_capacity(nodes.len() + 1),
            inputs: Vec::with_capacity(nodes.len()),
            first_control: Vec::with_capacity(nodes.len() + 1),
            control: Vec::new(),
            input_nodes: Vec::new(),
            mutable: BTreeSet::new(),
            outputs: Vec::new(),
            nodes: Vec::new(),
        };
        let mut entries = 0_u32;
        for (number, node) in (0_u32..).zip(&nodes) {
            node.check_complete()?;
            graph.numbers.insert(Arc::as_ptr(node).addr(), number);
            graph.first_entry.push(entries);
            entries = entries.checked_add(node.outputs()).ok_or_else(|| GraphError::new("the graph is too large"))?;
            graph.first_input.push(count(graph.inputs.len())?);
            for entry in node.inputs() {
                let id = graph.id_of(entry)?;
                graph.inputs.push(id);
            }
            graph.first_control.push(count(graph.control.len())?);
            for before in node.control() {
                graph.control.push(graph.numbers[&Arc::as_ptr(before).addr()]);
            }
            if node.is_variable() {
                graph.input_nodes.push(number);
            }
            for at in node.mutates()? {
                if let Some(entry) = node.inputs().get(at)
                    && entry.node.is_variable()
                {
                    graph.mutable.insert(graph.numbers[&Arc::as_ptr(&entry.node).addr()]);
                }
            }
        }
        graph.first_entry.push(entries);
        graph.first_input.push(count(graph.inputs.len())?);
        graph.first_control.push(count(graph.control.len())?);
        graph.outputs = outputs.iter().map(|entry| graph.id_of(entry)).collect::<Result<_>>()?;
        graph.nodes = nodes;
        Ok(graph)
    }

    fn id_of(&self, entry: &NodeEntry) -> Result<EntryId> {
        if entry.index >= entry.node.outputs() {
            return Err(GraphError::Graph {
                message: format!(
                    "{} has {} outputs, and output {} is used",
                    entry.node.described(),
                    entry.node.outputs(),
                    entry.index
                ),
                place: entry.node.place(),
            });
        }
        let node = self.numbers[&Arc::as_ptr(&entry.node).addr()];
        Ok(EntryId { node, index: entry.index, version: entry.version })
    }

    /// The nodes; inputs come first.
    #[must_use]
    pub fn nodes(&self) -> &[NodeRef] {
        &self.nodes
    }

    /// The number of a node.
    #[must_use]
    pub fn node_id(&self, node: &NodeRef) -> Option<u32> {
        self.numbers.get(&Arc::as_ptr(node).addr()).copied()
    }

    /// The number of entries of all nodes.
    #[must_use]
    pub fn num_entries(&self) -> usize {
        self.first_entry[self.nodes.len()] as usize
    }

    /// The number of an entry among all.
    #[must_use]
    pub fn entry_id(&self, entry: EntryId) -> usize {
        (self.first_entry[entry.node as usize] + entry.index) as usize
    }

    /// The numbers of the entries of a node.
    #[must_use]
    pub fn entries_of(&self, node: u32) -> std::ops::Range<usize> {
        self.first_entry[node as usize] as usize..self.first_entry[node as usize + 1] as usize
    }

    /// The inputs of a node.
    #[must_use]
    pub fn inputs(&self, node: u32) -> &[EntryId] {
        &self.inputs[self.first_input[node as usize] as usize..self.first_input[node as usize + 1] as usize]
    }

    /// The nodes that come before a node although nothing of theirs is used.
    #[must_use]
    pub fn control(&self, node: u32) -> &[u32] {
        &self.control[self.first_control[node as usize] as usize..self.first_control[node as usize + 1] as usize]
    }

    /// Where the inputs of each node begin in `all_inputs`, and where the last ones end.
    #[must_use]
    pub fn input_starts(&self) -> &[u32] {
        &self.first_input
    }

    /// The inputs of all nodes.
    #[must_use]
    pub fn all_inputs(&self) -> &[EntryId] {
        &self.inputs
    }

    /// The variables.
    #[must_use]
    pub fn input_nodes(&self) -> &[u32] {
        &self.input_nodes
    }

    /// The variables that an op mutates.
    #[must_use]
    pub fn mutable_input_nodes(&self) -> &BTreeSet<u32> {
        &self.mutable
    }

    /// The outputs.
    #[must_use]
    pub fn outputs(&self) -> &[EntryId] {
        &self.outputs
    }
}
