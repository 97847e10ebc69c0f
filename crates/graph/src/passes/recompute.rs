//! `recompute`: calls that are made again for the gradient instead of kept, where the plan of memory gets smaller.

use super::infer_shape::{SHAPE, Shapes};
use super::infer_type::{DTYPE, DTypes};
use super::plan_memory::{External, PLANNED_ORDER, Planned, planned};
use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::node::{NodeEntry, NodeRef, post_order};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weft_plan::{Memory, Recomputed, Settings};

/// Copies calls that `forward` rests on, so that later calls take the copies' results and the originals' need not be
/// kept. Only if the planned arena gets smaller; and with a limit, in bytes, as few as will do. A copy has the name of
/// its original and `_mirror`.
///
/// # Errors
///
/// If no set of copies that was found fits the limit; the message names the bound.
pub fn recompute(
    graph: &Graph,
    forward: &[NodeEntry],
    limit: Option<u64>,
    memory: Memory,
    external: &External,
) -> Result<Graph> {
    let indexed = graph.indexed()?;
    let first: HashSet<usize> = post_order(forward).iter().map(|node| Arc::as_ptr(node).addr()).collect();
    let again = |number: u32| {
        let node = &indexed.nodes()[number as usize];
        let pure = node.op().is_some_and(|op| op.is_pure(node.attributes()).unwrap_or(false));
        pure && first.contains(&Arc::as_ptr(node).addr())
    };
    let before = planned(graph, &indexed, external, &again)?;
    let found = weft_plan::recompute(&before.network, limit, &Settings { memory, ..Settings::default() })?;
    if found.copies.is_empty() {
        return Ok(graph.clone());
    }
    copied(graph, &before, &found)
}

/// The graph of a network with copies.
fn copied(graph: &Graph, before: &Planned, found: &Recomputed) -> Result<Graph> {
    let indexed = graph.indexed()?;
    let nodes = indexed.nodes();
    let mut values: Vec<Option<NodeEntry>> = vec![None; found.network.values.len()];
    // The first value of each new node's original.
    let mut stands_for: HashMap<usize, usize> = HashMap::new();
    for &number in indexed.input_nodes() {
        let first = indexed.entries_of(number).start;
        let node = &nodes[number as usize];
        values[first] = Some(NodeEntry::new(node.clone(), 0));
        stands_for.insert(Arc::as_ptr(node).addr(), first);
    }
    let mut op_of: Vec<Option<usize>> = vec![None; nodes.len()];
    before.nodes.iter().enumerate().for_each(|(op, &number)| op_of[number as usize] = Some(op));
    let mut made: Vec<Option<NodeRef>> = vec![None; found.network.ops.len()];
    let missing = || GraphError::new("the plan runs a call before what it takes");
    for &at in &found.plan.order {
        let op = &found.network.ops[at];
        let copy = at.checked_sub(before.nodes.len());
        let original = copy.map_or(at, |copy| found.copies[copy]);
        let number = before.nodes[original];
        let node = &nodes[number as usize];
        let mut inputs: Vec<NodeEntry> = Vec::with_capacity(node.inputs().len());
        for (place, &id) in indexed.inputs(number).iter().enumerate() {
            // An unread value stays.
            let value = match before.reads[original].iter().position(|&each| each == place) {
                Some(read) => op.inputs[read],
                None => indexed.entry_id(id),
            };
            inputs.push(NodeEntry { version: id.version, ..values[value].clone().ok_or_else(missing)? });
        }
        let mut control: Vec<NodeRef> = Vec::new();
        let given = indexed.control(number).iter().filter_map(|&each| {
            op_of[each as usize].map_or_else(|| Some(nodes[each as usize].clone()), |op| made[op].clone())
        });
        let added = op.after.iter().filter(|_| copy.is_some()).filter_map(|&each| made[each].clone());
        for each in given.chain(added) {
            if !control.iter().any(|known| Arc::ptr_eq(known, &each)) {
                control.push(each);
            }
        }
        let same = inputs.iter().zip(node.inputs()).all(|(new, old)| new == old)
            && control.len() == node.control().len()
            && control.iter().zip(node.control()).all(|(new, old)| Arc::ptr_eq(new, old));
        let new = match copy {
            Some(_) => Arc::new(node.rebuilt(inputs, control).renamed(format!("{}_mirror", node.name()).into())),
            None if same => node.clone(),
            None => Arc::new(node.rebuilt(inputs, control)),
        };
        for (index, &value) in (0_u32..).zip(&op.outputs) {
            values[value] = Some(NodeEntry::new(new.clone(), index));
        }
        stands_for.insert(Arc::as_ptr(&new).addr(), indexed.entries_of(number).start);
        made[at] = Some(new);
    }
    let outputs = indexed
        .outputs()
        .iter()
        .map(|&id| Ok(NodeEntry { version: id.version, ..values[indexed.entry_id(id)].clone().ok_or_else(missing)? }))
        .collect::<Result<Vec<_>>>()?;
    let mut result = Graph::new(outputs);
    let again = result.indexed()?;
    let sources: Vec<usize> = (0_u32..)
        .zip(again.nodes())
        .flat_map(|(number, node)| {
            let first = stands_for.get(&Arc::as_ptr(node).addr()).copied().unwrap_or(0);
            (0..again.entries_of(number).len()).map(move |index| first + index)
        })
        .collect();
    let (shapes, dtypes) =
        (graph.wanted::<Shapes>(SHAPE, "infer_shape")?, graph.wanted::<DTypes>(DTYPE, "infer_type")?);
    result.set(SHAPE, sources.iter().map(|&at| shapes[at].clone()).collect::<Shapes>());
    result.set(DTYPE, sources.iter().map(|&at| dtypes[at]).collect::<DTypes>());
    // Numbers of nodes follow from the needs of outputs: the order of this small plan may be another one.
    let numbers: HashMap<usize, i64> =
        (0_i64..).zip(again.nodes()).map(|(number, node)| (Arc::as_ptr(node).addr(), number)).collect();
    let number = |op: &usize| made[*op].as_ref().and_then(|node| numbers.get(&Arc::as_ptr(node).addr()).copied());
    result.set(PLANNED_ORDER, found.plan.order.iter().filter_map(number).collect::<Vec<i64>>());
    Ok(result)
}
