//! `OrderMutation`: readers of a value come before the next call that mutates it, and after the one before.

use crate::error::Result;
use crate::graph::{Graph, IndexedGraph};
use crate::node::{NodeRef, Rewriter};
use std::collections::{BTreeMap, HashMap, HashSet};

#[derive(Default)]
struct Uses {
    readers: Vec<u32>,
    writers: Vec<u32>,
}

/// The order that mutations add to the inputs of nodes.
pub(super) struct MutationOrder {
    /// For each node those that must come before it because of a mutation; nothing where there is none.
    pub(super) before: Vec<Vec<u32>>,
    /// All nodes, in an order that keeps to inputs, control and these.
    pub(super) order: Vec<usize>,
}

/// Finds the order that keeps mutations in that of versions.
pub(super) fn ordered_by_mutation(indexed: &IndexedGraph) -> Result<MutationOrder> {
    let nodes = indexed.nodes();
    let mutates: Vec<Vec<usize>> = nodes.iter().map(|node| node.mutates()).collect::<Result<_>>()?;
    let mutable: HashSet<u32> = (0_u32..)
        .zip(&mutates)
        .flat_map(|(number, mutated)| {
            mutated.iter().filter_map(move |&at| indexed.inputs(number).get(at)).map(|id| id.node)
        })
        .collect();
    if mutable.is_empty() {
        return Ok(MutationOrder { before: Vec::new(), order: (0..nodes.len()).collect() });
    }
    let mut uses: HashMap<u32, BTreeMap<u32, Uses>> = HashMap::new();
    for (number, mutated) in (0_u32..).zip(&mutates) {
        for (at, id) in indexed.inputs(number).iter().enumerate() {
            if !mutable.contains(&id.node) {
                continue;
            }
            let version = uses.entry(id.node).or_default().entry(id.version).or_default();
            if mutated.contains(&at) { version.writers.push(number) } else { version.readers.push(number) }
        }
    }
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    for versions in uses.values() {
        let mut last: Option<u32> = None;
        let mut readers: Vec<u32> = Vec::new();
        for version in versions.values() {
            if let Some(last) = last {
                version
                    .readers
                    .iter()
                    .filter(|&&reader| reader != last)
                    .for_each(|&reader| before[reader as usize].push(last));
            }
            readers.extend(&version.readers);
            for &writer in &version.writers {
                before[writer as usize].extend(readers.drain(..).filter(|&reader| reader != writer));
                before[writer as usize].extend(last.filter(|&last| last != writer));
                last = Some(writer);
            }
        }
    }
    let mut edges: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
    for (number, added) in (0_u32..).zip(&mut before) {
        added.sort_unstable();
        added.dedup();
        let own = indexed.inputs(number).iter().map(|id| id.node).chain(indexed.control(number).iter().copied());
        edges.push(own.chain(added.iter().copied()).map(|each| each as usize).collect());
    }
    let order = crate::node::topological_order(&edges)
        .map_err(|at| nodes[at].error("it reads a version that comes after it"))?;
    Ok(MutationOrder { before, order })
}

/// Adds control dependencies that keep mutations in the order of versions. Calls that mutate the same version go in the
/// order of the graph.
///
/// # Errors
///
/// If versions contradict each other: a call reads a version after its own.
pub fn order_mutation(graph: &Graph) -> Result<Graph> {
    let indexed = graph.indexed()?;
    let nodes = indexed.nodes();
    let MutationOrder { before, order } = ordered_by_mutation(&indexed)?;
    if before.iter().all(Vec::is_empty) {
        return Ok(graph.clone());
    }
    let mut rewriter = Rewriter::default();
    for at in order {
        let node: &NodeRef = &nodes[at];
        if before[at].is_empty() {
            rewriter.follow(node);
            continue;
        }
        let mut control = rewriter.control(node);
        for &each in &before[at] {
            let each = rewriter.node(&nodes[each as usize]);
            if !control.iter().any(|known| std::sync::Arc::ptr_eq(known, &each)) {
                control.push(each);
            }
        }
        rewriter.replace_node(node, std::sync::Arc::new(node.rebuilt(rewriter.inputs(node), control)));
    }
    Ok(Graph::new(graph.outputs().iter().map(|entry| rewriter.entry(entry)).collect()))
}
