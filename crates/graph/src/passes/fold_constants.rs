//! Calls that rest on constants alone are computed once.

use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::node::{NodeEntry, NodeRef, Rewriter, post_order};
use crate::registry::RuleError;
use std::collections::HashSet;
use std::sync::Arc;

/// Computes a call on constants; entries of constants for its results, or None to leave it.
pub type Evaluate<'a> = dyn FnMut(&NodeRef) -> Result<Option<Vec<NodeEntry>>, RuleError> + 'a;

/// Replaces calls of pure ops that rest on no variable by the answers of `evaluate`.
///
/// # Errors
///
/// If `evaluate` fails, or answers for another number of results.
pub fn fold_constants(graph: &Graph, evaluate: &mut Evaluate<'_>) -> Result<Graph> {
    let mut rewriter = Rewriter::default();
    let mut constant: HashSet<usize> = HashSet::new();
    for node in post_order(graph.outputs()) {
        let new = rewriter.follow(&node);
        let Some(op) = new.op() else { continue };
        let fixed = new.inputs().iter().all(|entry| constant.contains(&entry.key().0));
        if !fixed || !new.control().is_empty() || !op.is_pure(new.attributes())? {
            continue;
        }
        let found = evaluate(&new).map_err(|source| GraphError::Rule {
            context: new.described(),
            source,
            place: new.place(),
            of_shapes: false,
        })?;
        let Some(found) = found else { continue };
        if found.len() != new.outputs() as usize {
            return Err(new.error(format!("it was computed to {} values, and has {}", found.len(), new.outputs())));
        }
        for (index, entry) in (0..new.outputs()).zip(found) {
            constant.insert(Arc::as_ptr(&entry.node).addr());
            rewriter.replace(&NodeEntry::new(node.clone(), index), entry);
        }
    }
    Ok(Graph::new(graph.outputs().iter().map(|entry| rewriter.entry(entry)).collect()))
}
