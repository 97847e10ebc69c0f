//! The end of a node: without recursion, however long the chain behind it.

use super::{Node, NodeRef};
use std::sync::Arc;

impl Drop for Node {
    fn drop(&mut self) {
        let mut pending: Vec<NodeRef> = Vec::new();
        take(self, &mut pending);
        while let Some(node) = pending.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                take(&mut node, &mut pending);
            }
        }
    }
}

fn take(node: &mut Node, pending: &mut Vec<NodeRef>) {
    pending.extend(node.inputs.drain(..).map(|entry| entry.node));
    pending.append(&mut node.control);
}
