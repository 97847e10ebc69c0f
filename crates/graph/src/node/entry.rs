//! One value of a graph.

use super::NodeRef;
use std::sync::Arc;

/// A result of a node, or a variable in one of its versions.
#[derive(Debug, Clone)]
pub struct NodeEntry {
    /// What makes it.
    pub node: NodeRef,
    /// Which of its results it is.
    pub index: u32,
    /// How often it was mutated before.
    pub version: u32,
}

impl NodeEntry {
    /// The first version of a result.
    #[must_use]
    pub fn new(node: NodeRef, index: u32) -> Self {
        Self { node, index, version: 0 }
    }

    /// The identity of an entry: the node's address and the result.
    #[must_use]
    pub fn key(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.node).addr(), self.index)
    }
}

impl PartialEq for NodeEntry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for NodeEntry {}
