//! `functionalise`: mutations become values.

use super::derived::{FUNCTIONAL, FUNCTIONAL_OF, derived_op};
use super::order_mutation::ordered_by_mutation;
use crate::error::Result;
use crate::graph::Graph;
use crate::node::{Node, NodeEntry, NodeRef, Rewriter};
use crate::value::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The attribute of a graph with the names of its mutated variables: their last values are its last outputs.
pub const MUTATED_INPUTS: &str = "mutated_inputs";

/// Replaces each call that mutates inputs by one of the op `functional`, with the mutated inputs as further results;
/// readers of a later version read these. With `states` the last values of mutated variables follow the outputs, and
/// the attribute `mutated_inputs` names them.
///
/// An output that is a value which is mutated later is its last version, as it is where both are one array.
///
/// # Errors
///
/// If versions contradict each other, or an op has an attribute of the name that `functional` needs.
pub fn functionalise(graph: &Graph, states: bool) -> Result<Graph> {
    let indexed = graph.indexed()?;
    let nodes = indexed.nodes();
    let order = ordered_by_mutation(&indexed)?.order;
    let mut rewriter = Rewriter::default();
    let mut last: HashMap<(usize, u32), NodeEntry> = HashMap::new();
    let mut mutated_variables: HashSet<usize> = HashSet::new();
    for at in order {
        let node = &nodes[at];
        let inputs: Vec<NodeEntry> = node
            .inputs()
            .iter()
            .map(|entry| NodeEntry {
                version: 0,
                ..last.get(&entry.key()).cloned().unwrap_or_else(|| rewriter.entry(entry))
            })
            .collect();
        let mutated = node.mutates()?;
        if mutated.is_empty() {
            let same = node.inputs().iter().zip(&inputs).all(|(old, new)| old == new && old.version == new.version);
            if same && node.control().is_empty() {
                continue;
            }
            let new = Arc::new(node.rebuilt(inputs, rewriter.control(node)));
            rewriter.replace_node(node, new);
            continue;
        }
        let new = functional(node, inputs, rewriter.control(node))?;
        for (index, at) in (node.outputs()..).zip(mutated) {
            let Some(entry) = node.inputs().get(at) else { continue };
            last.insert(entry.key(), NodeEntry::new(new.clone(), index));
            if entry.node.is_variable() {
                mutated_variables.insert(entry.key().0);
            }
        }
        rewriter.replace_node(node, new);
    }
    let now = |entry: &NodeEntry| NodeEntry {
        version: 0,
        ..last.get(&entry.key()).cloned().unwrap_or_else(|| rewriter.entry(entry))
    };
    let mut outputs: Vec<NodeEntry> = graph.outputs().iter().map(now).collect();
    let mut names: Vec<Option<Arc<str>>> = Vec::new();
    if states {
        for &number in indexed.input_nodes() {
            let node = &nodes[number as usize];
            if mutated_variables.contains(&Arc::as_ptr(node).addr()) {
                outputs.push(now(&NodeEntry::new(node.clone(), 0)));
                names.push(Some(node.name().clone()));
            }
        }
    }
    let mut result = Graph::new(outputs);
    if states {
        result.set(MUTATED_INPUTS, names);
    }
    Ok(result)
}

fn functional(node: &NodeRef, inputs: Vec<NodeEntry>, control: Vec<NodeRef>) -> Result<NodeRef> {
    let given = node.attributes();
    if given.get(FUNCTIONAL_OF).is_some() {
        return Err(node.error(format!("its attribute '{FUNCTIONAL_OF}' is one of '{FUNCTIONAL}': rename it")));
    }
    let attributes = given.with(FUNCTIONAL_OF, Value::text(node.op_name()));
    let new = Node::call(derived_op(FUNCTIONAL)?, node.name().clone(), attributes, inputs)?;
    node.texts().iter().for_each(|(key, text)| new.set_text(key, text));
    Ok(Arc::new(new.at(node.place()).after(control)))
}
