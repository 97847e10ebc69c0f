//! Equal calls of pure ops become one.

use crate::error::Result;
use crate::graph::Graph;
use crate::node::{NodeRef, Rewriter, post_order};
use crate::value::Attributes;
use std::collections::HashMap;
use std::sync::Arc;

/// Merges calls of the same op on the same values with the same attributes. The first one stays.
pub fn eliminate_common(graph: &Graph) -> Result<Graph> {
    type Key = (usize, Attributes, Vec<(usize, u32, u32)>, Vec<usize>);
    let mut known: HashMap<Key, NodeRef> = HashMap::new();
    let mut rewriter = Rewriter::default();
    for node in post_order(graph.outputs()) {
        let new = rewriter.follow(&node);
        let Some(op) = new.op() else { continue };
        if !op.is_pure(new.attributes())? || new.subgraphs().is_some() {
            continue;
        }
        let inputs = new.inputs().iter().map(|entry| (entry.key().0, entry.index, entry.version)).collect();
        let control = new.control().iter().map(|before| Arc::as_ptr(before).addr()).collect();
        let key = (Arc::as_ptr(op).addr(), new.attributes().clone(), inputs, control);
        match known.get(&key) {
            // Calls on different devices are not the same.
            Some(first) if first.texts() == new.texts() => rewriter.replace_node(&node, first.clone()),
            Some(_) => {}
            None => drop(known.insert(key, new)),
        }
    }
    Ok(Graph::new(graph.outputs().iter().map(|entry| rewriter.entry(entry)).collect()))
}
