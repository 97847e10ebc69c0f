//! Calls that return their first input go, as shapes and dtypes tell.

use super::infer_shape::{SHAPE, Shapes};
use super::infer_type::{DTYPE, DTypes};
use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::node::{NodeEntry, Rewriter};
use crate::registry::Identity;
use crate::value::DType;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Lets the first input take the place of a call's result, where the op says by `identity` that it is the same. Outputs
/// stay calls, so that none is an argument; so does all that mutations touch. The graph has its shapes and dtypes.
pub fn eliminate_identity(graph: &Graph) -> Result<Graph> {
    let shapes = graph.wanted::<Shapes>(SHAPE, "infer_shape")?;
    let dtypes = graph.wanted::<DTypes>(DTYPE, "infer_type")?;
    let indexed = graph.indexed()?;
    if shapes.len() != indexed.num_entries() || dtypes.len() != indexed.num_entries() {
        return Err(GraphError::new("the graph has shapes, or dtypes, of another graph: infer them anew"));
    }
    let mut kept: HashSet<u32> = indexed.outputs().iter().map(|id| id.node).collect();
    let mut mutated: HashSet<u32> = HashSet::new();
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        kept.extend(indexed.control(number));
        mutated.extend(node.mutates()?.iter().filter_map(|&at| indexed.inputs(number).get(at)).map(|id| id.node));
    }
    let mut rewriter = Rewriter::default();
    let mut made: HashMap<usize, u32> = HashMap::new();
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        let new = rewriter.follow(node);
        made.insert(Arc::as_ptr(&new).addr(), number);
        let Some(identity) = node.op().and_then(|op| op.get::<Identity>("identity")) else { continue };
        let Some(&input) = indexed.inputs(number).first() else { continue };
        let (from, to) = (indexed.entry_id(input), indexed.entries_of(number).start);
        let same = shapes[from].is_known() && shapes[from] == shapes[to] && dtypes[from] == dtypes[to];
        let fits = match *identity {
            Identity::Like => same,
            Identity::Real => {
                same && dtypes[from].is_some_and(|dtype| !matches!(dtype, DType::Complex64 | DType::Complex128))
            }
        };
        let free = !kept.contains(&number)
            && !mutated.contains(&number)
            && !mutated.contains(&input.node)
            && node.control().is_empty();
        if fits && free && dtypes[from].is_some() {
            rewriter.replace(&NodeEntry::new(node.clone(), 0), new.inputs()[0].clone());
        }
    }
    let mut result = Graph::new(graph.outputs().iter().map(|entry| rewriter.entry(entry)).collect());
    let again = result.indexed()?;
    let sources: Vec<usize> = again
        .nodes()
        .iter()
        .filter_map(|node| made.get(&Arc::as_ptr(node).addr()))
        .flat_map(|&number| indexed.entries_of(number))
        .collect();
    result.set(SHAPE, sources.iter().map(|&at| shapes[at].clone()).collect::<Shapes>());
    result.set(DTYPE, sources.iter().map(|&at| dtypes[at]).collect::<DTypes>());
    Ok(result)
}
