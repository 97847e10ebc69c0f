//! Nodes in post-order: inputs first.

use super::{NodeEntry, NodeRef};
use std::collections::HashSet;
use std::sync::Arc;

/// All that entries rest on, each once, inputs and earlier nodes ahead of their users. Without recursion.
#[must_use]
pub fn post_order(outputs: &[NodeEntry]) -> Vec<NodeRef> {
    let mut seen: HashSet<usize> = HashSet::new();
    let mut order = Vec::new();
    let mut stack: Vec<(&NodeRef, usize)> = Vec::new();
    for output in outputs {
        if seen.insert(Arc::as_ptr(&output.node).addr()) {
            stack.push((&output.node, 0));
        }
        while let Some((node, next)) = stack.last_mut() {
            let (at, node) = (*next, *node);
            *next += 1;
            let before = match node.inputs().get(at) {
                Some(entry) => Some(&entry.node),
                None => node.control().get(at - node.inputs().len()),
            };
            if let Some(before) = before {
                if seen.insert(Arc::as_ptr(before).addr()) {
                    stack.push((before, 0));
                }
            } else {
                order.push(node.clone());
                stack.pop();
            }
        }
    }
    order
}
