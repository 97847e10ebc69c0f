//! A graph and its attributes.

use super::IndexedGraph;
use crate::error::{GraphError, Result};
use crate::node::NodeEntry;
use crate::symbol::Symbol;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The value of an attribute of a graph.
pub type AnyAttribute = Arc<dyn Any + Send + Sync>;

/// A computation, and the findings of passes about it.
///
/// A copy shares the attributes until one of both is given another. The outputs never change, so the numbers of
/// `indexed` cannot be stale: a pass that changes them returns another graph.
#[derive(Clone)]
pub struct Graph {
    outputs: Vec<NodeEntry>,
    attributes: Arc<BTreeMap<Arc<str>, AnyAttribute>>,
    indexed: OnceLock<Arc<IndexedGraph>>,
}

impl Graph {
    /// A graph of these outputs, without attributes.
    #[must_use]
    pub fn new(outputs: Vec<NodeEntry>) -> Self {
        Self { outputs, attributes: Arc::default(), indexed: OnceLock::new() }
    }

    /// A graph of the outputs of a symbol.
    #[must_use]
    pub fn of(symbol: &Symbol) -> Self {
        Self::new(symbol.outputs().to_vec())
    }

    /// The outputs.
    #[must_use]
    pub fn outputs(&self) -> &[NodeEntry] {
        &self.outputs
    }

    /// The outputs as a symbol.
    #[must_use]
    pub fn symbol(&self) -> Symbol {
        Symbol::new(self.outputs.clone())
    }

    /// The graph in numbers, made when it is first asked for.
    pub fn indexed(&self) -> Result<Arc<IndexedGraph>> {
        if let Some(known) = self.indexed.get() {
            return Ok(known.clone());
        }
        let made = Arc::new(IndexedGraph::new(&self.outputs)?);
        Ok(self.indexed.get_or_init(|| made).clone())
    }

    /// The attribute of this name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&AnyAttribute> {
        self.attributes.get(name)
    }

    /// The attribute of this name, if it is of type `T`.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        self.attributes.get(name)?.clone().downcast().ok()
    }

    /// The attribute of this name.
    ///
    /// # Errors
    ///
    /// If there is none, or it is of another type; the message names the pass that provides it, if that is known.
    pub fn wanted<T: Any + Send + Sync>(&self, name: &str, provider: &str) -> Result<Arc<T>> {
        match self.attributes.get(name) {
            None => {
                Err(GraphError::new(format!("the graph has no attribute '{name}': apply the pass '{provider}' first")))
            }
            Some(found) => found.clone().downcast().map_err(|_| {
                GraphError::new(format!(
                    "attribute '{name}' of the graph is not of the kind that the pass '{provider}' makes: apply that"
                ))
            }),
        }
    }

    /// Gives the graph an attribute, in place of one of that name.
    pub fn set<T: Any + Send + Sync>(&mut self, name: &str, value: T) {
        self.set_any(name, Arc::new(value));
    }

    /// As `set`.
    pub fn set_any(&mut self, name: &str, value: AnyAttribute) {
        Arc::make_mut(&mut self.attributes).insert(name.into(), value);
    }

    /// Takes an attribute away.
    pub fn remove(&mut self, name: &str) {
        if self.attributes.contains_key(name) {
            Arc::make_mut(&mut self.attributes).remove(name);
        }
    }

    /// All attributes, by name.
    pub fn attributes(&self) -> impl Iterator<Item = (&Arc<str>, &AnyAttribute)> {
        self.attributes.iter()
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.attributes.keys().collect();
        f.debug_struct("Graph").field("outputs", &self.outputs).field("attributes", &names).finish_non_exhaustive()
    }
}
