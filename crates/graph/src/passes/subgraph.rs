//! Graphs inside a call: read once, and kept while they are in use.

use super::derived::SUBGRAPH;
use crate::error::{GraphError, Result};
use crate::graph::{Graph, IndexedGraph};
use crate::json;
use crate::node::NodeRef;
use crate::registry::RuleError;
use crate::value::{Attributes, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Subgraphs that are kept: then they are forgotten all.
const KEPT: usize = 1 << 10;

/// The name, in a call's subgraph, of the variable for an input.
pub(super) fn input_name(at: usize) -> String {
    format!("x{at}")
}

/// The graph that a call computes.
pub(super) struct Subgraph {
    pub(super) graph: Graph,
    /// The entries that stand for the inputs of the call.
    pub(super) inputs: Vec<usize>,
    /// The entries of its results.
    pub(super) outputs: Vec<usize>,
}

impl Subgraph {
    /// The one that attributes hold.
    pub(super) fn of(attributes: &Attributes) -> Result<Arc<Self>, RuleError> {
        static KNOWN: OnceLock<Mutex<HashMap<Arc<str>, Arc<Subgraph>>>> = OnceLock::new();
        let Some(Value::Text(text)) = attributes.get(SUBGRAPH) else {
            return Err(format!("'{SUBGRAPH}' is the graph that it computes, as JSON, and is missing").into());
        };
        let known = KNOWN.get_or_init(Mutex::default);
        if let Some(found) = known.lock().unwrap_or_else(PoisonError::into_inner).get(text) {
            return Ok(found.clone());
        }
        let made = Arc::new(Self::read(text)?);
        let mut all = known.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = if all.len() >= KEPT { std::mem::take(&mut *all) } else { HashMap::new() };
        all.insert(text.clone(), made.clone());
        drop(all); // nodes may hold what is another language's
        drop(forgotten);
        Ok(made)
    }

    fn read(text: &str) -> Result<Self> {
        let graph = json::load(text, json::LoadOptions::default())?;
        let indexed = graph.indexed()?;
        let mut inputs = vec![usize::MAX; indexed.input_nodes().len()];
        for &number in indexed.input_nodes() {
            let name = indexed.nodes()[number as usize].name();
            let place = name.strip_prefix('x').and_then(|digits| digits.parse::<usize>().ok());
            match place.and_then(|place| inputs.get_mut(place)).filter(|slot| **slot == usize::MAX) {
                Some(slot) => *slot = indexed.entries_of(number).start,
                None => {
                    return Err(GraphError::new(format!(
                        "the variables of a subgraph are x0, x1, ..., one for each input, and one is '{name}'"
                    )));
                }
            }
        }
        let outputs = indexed.outputs().iter().map(|&id| indexed.entry_id(id)).collect();
        Ok(Self { graph, inputs, outputs })
    }

    /// The variables in the order of the inputs.
    pub(super) fn variables<'a>(&'a self, indexed: &'a IndexedGraph) -> impl Iterator<Item = NodeRef> + 'a {
        self.inputs.iter().filter_map(move |&entry| {
            let numbers = indexed.input_nodes().iter();
            let mut found = numbers.filter(move |&&number| indexed.entries_of(number).start == entry);
            found.next().map(|&number| indexed.nodes()[number as usize].clone())
        })
    }
}
