//! Unused calls of pure ops go: outputs rest on them by an order alone.

use crate::error::Result;
use crate::graph::Graph;
use crate::node::{NodeRef, Rewriter, post_order};
use std::collections::HashSet;
use std::sync::Arc;

/// Drops control dependencies on unused calls of pure ops. Their predecessors still come before.
pub fn eliminate_dead(graph: &Graph) -> Result<Graph> {
    let order = post_order(graph.outputs());
    let mut needed: HashSet<usize> = graph.outputs().iter().map(|entry| entry.key().0).collect();
    for node in order.iter().rev() {
        let address = Arc::as_ptr(node).addr();
        let keeps = match node.op() {
            Some(op) => !op.is_pure(node.attributes())?,
            None => false,
        };
        if needed.contains(&address) || keeps {
            needed.insert(address);
            needed.extend(node.inputs().iter().map(|entry| entry.key().0));
        }
    }
    let mut rewriter = Rewriter::default();
    for node in &order {
        let dead = |before: &NodeRef| !needed.contains(&Arc::as_ptr(before).addr());
        if !node.control().iter().any(dead) {
            rewriter.follow(node);
            continue;
        }
        let mut control: Vec<NodeRef> = Vec::new();
        let mut pending: Vec<NodeRef> = node.control().iter().rev().cloned().collect();
        let mut seen = HashSet::new();
        while let Some(before) = pending.pop() {
            if !seen.insert(Arc::as_ptr(&before).addr()) {
                continue;
            }
            if dead(&before) {
                pending.extend(before.control().iter().rev().cloned());
                pending
                    .extend(before.inputs().iter().map(|entry| entry.node.clone()).filter(|node| !node.is_variable()));
            } else {
                control.push(rewriter.node(&before));
            }
        }
        rewriter.replace_node(node, Arc::new(node.rebuilt(rewriter.inputs(node), control)));
    }
    Ok(Graph::new(graph.outputs().iter().map(|entry| rewriter.entry(entry)).collect()))
}
