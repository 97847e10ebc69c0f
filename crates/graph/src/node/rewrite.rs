//! Graphs from graphs: nodes are immutable, so a change makes new ones of all that rest on it, and of no other.

use super::{Node, NodeEntry, NodeRef};
use std::collections::HashMap;
use std::sync::Arc;

/// The replacements.
#[derive(Debug, Default)]
pub struct Rewriter {
    entries: HashMap<(usize, u32), NodeEntry>,
    nodes: HashMap<usize, NodeRef>,
}

impl Rewriter {
    /// Lets `new` take the place of an entry.
    pub fn replace(&mut self, old: &NodeEntry, new: NodeEntry) {
        self.entries.insert(old.key(), new);
    }

    /// Lets all results of `new` take the places of those of `old`.
    pub fn replace_node(&mut self, old: &NodeRef, new: NodeRef) {
        self.nodes.insert(Arc::as_ptr(old).addr(), new);
    }

    /// The replacement of an entry.
    #[must_use]
    pub fn entry(&self, old: &NodeEntry) -> NodeEntry {
        if let Some(new) = self.entries.get(&old.key()) {
            return new.clone();
        }
        match self.nodes.get(&Arc::as_ptr(&old.node).addr()) {
            Some(node) => NodeEntry { node: node.clone(), ..*old },
            None => old.clone(),
        }
    }

    /// The replacement of a node.
    #[must_use]
    pub fn node(&self, old: &NodeRef) -> NodeRef {
        self.nodes.get(&Arc::as_ptr(old).addr()).unwrap_or(old).clone()
    }

    /// The inputs of a node, as they are now.
    #[must_use]
    pub fn inputs(&self, node: &Node) -> Vec<NodeEntry> {
        node.inputs().iter().map(|entry| self.entry(entry)).collect()
    }

    /// The nodes before a node, as they are now.
    #[must_use]
    pub fn control(&self, node: &Node) -> Vec<NodeRef> {
        node.control().iter().map(|before| self.node(before)).collect()
    }

    /// Makes a node anew if something that it rests on has changed, and returns the one that counts. To be called for all
    /// nodes of a walk in turn.
    pub fn follow(&mut self, node: &NodeRef) -> NodeRef {
        let changed = node.inputs().iter().any(|entry| {
            self.entries.contains_key(&entry.key()) || self.nodes.contains_key(&Arc::as_ptr(&entry.node).addr())
        }) || node.control().iter().any(|before| self.nodes.contains_key(&Arc::as_ptr(before).addr()));
        if !changed {
            return node.clone();
        }
        let new = Arc::new(node.rebuilt(self.inputs(node), self.control(node)));
        self.replace_node(node, new.clone());
        new
    }
}
