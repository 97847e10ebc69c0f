//! `PlanMemory`: where each value lies, by the one planner.

use super::infer_shape::{SHAPE, Shapes};
use super::infer_type::{DTYPE, DTypes};
use crate::error::{GraphError, Result};
use crate::graph::{Graph, IndexedGraph};
use crate::registry::{Call, Cost, OpCost, OpWorkspace};
use std::collections::{HashMap, HashSet};
use weft_plan::{Memory, Network, Op as PlanOp, Pair, Plan, Settings, Share, Value, plan_network_also};

/// The storage of each entry; `OUTSIDE` for one outside of the arena.
pub const STORAGE_ID: &str = "storage_id";
/// Where each entry lies in the arena, in bytes.
pub const STORAGE_OFFSET: &str = "storage_offset";
/// For each entry, the input of its node that gives it its place; -1 for none, -2 for an entry outside.
pub const STORAGE_INPLACE_INDEX: &str = "storage_inplace_index";
/// The bytes of the arena.
pub const STORAGE_ALLOCATED_BYTES: &str = "storage_allocated_bytes";
/// The most bytes of these values that are live at the same time.
pub const STORAGE_PEAK_LIVE_BYTES: &str = "storage_peak_live_bytes";
/// Numbers of all nodes that are no variables, in an order that is to be tried besides.
pub(super) const PLANNED_ORDER: &str = "planned_order";
/// The storage of an entry outside of the arena.
pub const OUTSIDE: i64 = -2;

/// So many names a message lists.
const MOST_LISTED: usize = 20;

/// Entries outside, besides arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum External {
    /// Nothing.
    #[default]
    None,
    /// The outputs.
    Outputs,
    /// Values of these names.
    Named(HashSet<String>),
}

/// Plans intermediates and outputs of a graph with known shapes and dtypes.
///
/// # Errors
///
/// If they are not, a name is that of no value, or a mutation is not ordered (`order_mutation` orders them).
pub fn plan_memory(graph: &Graph, memory: Memory, external: &External) -> Result<Graph> {
    let indexed = graph.indexed()?;
    let Planned { network, nodes, .. } = planned(graph, &indexed, external, &|_| false)?;
    let also = known_order(graph, &nodes);
    let plan = plan_network_also(&network, also, &Settings { memory, ..Settings::default() })?;
    Ok(attributed(graph, &indexed, &network, &plan))
}

/// The ops in the order that the graph says, if it says one of just these.
fn known_order(graph: &Graph, nodes: &[u32]) -> Option<Vec<usize>> {
    let known = graph.get::<Vec<i64>>(PLANNED_ORDER)?;
    let op_of: HashMap<i64, usize> = nodes.iter().enumerate().map(|(op, &node)| (i64::from(node), op)).collect();
    let order: Option<Vec<usize>> = known.iter().map(|node| op_of.get(node).copied()).collect();
    order.filter(|order| order.len() == nodes.len())
}

/// Refuses names that no node, and none of its results, has.
fn check_named(indexed: &IndexedGraph, names: &HashSet<String>) -> Result<()> {
    let mut left: HashSet<&str> = names.iter().map(String::as_str).collect();
    for node in indexed.nodes() {
        left.remove(&**node.name());
        for index in 0..node.outputs() {
            if left.is_empty() {
                return Ok(());
            }
            left.remove(node.output_name(index)?.as_str());
        }
    }
    let Some(name) = left.into_iter().min() else { return Ok(()) };
    let calls: Vec<&str> =
        indexed.nodes().iter().filter(|node| !node.is_variable()).map(|node| &**node.name()).collect();
    let (shown, rest) = calls.split_at(calls.len().min(MOST_LISTED));
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    Err(GraphError::new(format!(
        "no value is named '{name}', which is to lie outside the plan: there are {}{more}, and their outputs",
        shown.join(", ")
    )))
}

/// A graph as the planner takes it: its values are the entries, by their numbers.
pub(super) struct Planned {
    pub(super) network: Network,
    /// The node of each op.
    pub(super) nodes: Vec<u32>,
    /// The inputs of its node that each op reads.
    pub(super) reads: Vec<Vec<usize>>,
}

/// A graph with known shapes and dtypes, as the planner takes it; `again` tells the nodes that may run again.
pub(super) fn planned(
    graph: &Graph,
    indexed: &IndexedGraph,
    external: &External,
    again: &dyn Fn(u32) -> bool,
) -> Result<Planned> {
    let shapes = graph.wanted::<Shapes>(SHAPE, "infer_shape")?;
    let dtypes = graph.wanted::<DTypes>(DTYPE, "infer_type")?;
    if shapes.len() != indexed.num_entries() || dtypes.len() != indexed.num_entries() {
        return Err(GraphError::new("the graph has shapes, or dtypes, of another graph: infer them anew"));
    }
    if let External::Named(names) = external {
        check_named(indexed, names)?;
    }
    let outputs: HashSet<usize> = indexed.outputs().iter().map(|&id| indexed.entry_id(id)).collect();
    let mut network = Network::default();
    let (mut nodes, mut reads) = (Vec::new(), Vec::new());
    let mut op_of: Vec<usize> = vec![usize::MAX; indexed.nodes().len()];
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        for (index, entry) in indexed.entries_of(number).enumerate() {
            let (Some(elements), Some(dtype)) = (shapes[entry].elements(), dtypes[entry]) else {
                return Err(node.error(format!(
                    "memory is planned for known sizes, and output {index} has shape {}: infer it",
                    shapes[entry]
                )));
            };
            let elements = u64::try_from(elements).unwrap_or(0);
            let size = elements
                .checked_mul(dtype.size() as u64)
                .ok_or_else(|| node.error("it has more bytes than can be counted"))?;
            let outside = node.is_variable()
                || match external {
                    External::None => false,
                    External::Outputs => outputs.contains(&entry),
                    External::Named(names) => {
                        let index = u32::try_from(index).unwrap_or(u32::MAX);
                        names.contains(&**node.name()) || names.contains(&node.output_name(index)?)
                    }
                };
            network.value(Value { size, external: outside, kept: outputs.contains(&entry) && !outside });
        }
        let Some(op) = node.op() else { continue };
        let inputs: Vec<usize> = indexed.inputs(number).iter().map(|&id| indexed.entry_id(id)).collect();
        let mut after: Vec<usize> = indexed
            .control(number)
            .iter()
            .map(|&each| op_of[each as usize])
            .filter(|&each| each != usize::MAX)
            .collect();
        after.dedup();
        let identities = op.inplace_identity(node.attributes())?;
        let ignored = op.ignores(node.attributes())?;
        let mut pairs = Vec::new();
        for (at, (input, output)) in op.inplace(node.attributes())?.into_iter().enumerate() {
            let (Some(&from), Some(to)) = (inputs.get(input), indexed.entries_of(number).nth(output)) else { continue };
            if network.values[to].size > network.values[from].size {
                continue;
            }
            let identity = identities.get(at).copied().unwrap_or(false);
            pairs.push(Pair { input, output, share: if identity { Share::Identity } else { Share::InPlace } });
        }
        let known = inputs.iter().map(|&entry| shapes[entry].clone()).collect::<Vec<_>>();
        let kinds: Vec<_> = inputs.iter().map(|&entry| dtypes[entry]).collect();
        let call = Call { op, attributes: node.attributes(), shapes: &known, dtypes: &kinds };
        // A value that an op ignores is not read: it may be gone by then.
        let read: Vec<usize> = (0..inputs.len()).filter(|at| !ignored.contains(at)).collect();
        pairs.retain_mut(|pair| match read.iter().position(|&at| at == pair.input) {
            Some(at) => {
                pair.input = at;
                true
            }
            None => false,
        });
        op_of[number as usize] = network.op(PlanOp {
            name: node.name().to_string(),
            inputs: read.iter().map(|&at| inputs[at]).collect(),
            outputs: indexed.entries_of(number).collect(),
            after: after
                .into_iter()
                .chain(
                    ignored.iter().filter_map(|&at| indexed.inputs(number).get(at)).map(|id| op_of[id.node as usize]),
                )
                .filter(|&each| each != usize::MAX)
                .collect(),
            pairs,
            workspace: workspace(&call)?,
            cost: cost(&call),
            again: again(number),
        });
        nodes.push(number);
        reads.push(read);
    }
    Ok(Planned { network, nodes, reads })
}

/// Bytes that a call needs while it runs.
fn workspace(call: &Call<'_>) -> Result<u64> {
    match call.op.get::<OpWorkspace>("workspace") {
        Some(rule) => rule(call).map_err(|source| GraphError::Rule {
            context: format!("op '{}', workspace", call.op.name()),
            source,
            place: 0,
            of_shapes: false,
        }),
        None => Ok(0),
    }
}

/// How long a call takes, in nanoseconds of a machine of 10 GFLOP/s and 10 GB/s.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
fn cost(call: &Call<'_>) -> u64 {
    let found = call.op.get::<OpCost>("cost").and_then(|rule| rule(call).ok());
    match found {
        Some(Cost::Seconds(seconds)) => (seconds * 1e9) as u64,
        Some(Cost::Work { flops, bytes }) => ((flops + bytes) / 10.0) as u64,
        None => call
            .shapes
            .iter()
            .filter_map(crate::value::Shape::elements)
            .map(|each| each.max(0) as u64)
            .max()
            .unwrap_or(1),
    }
}

fn attributed(graph: &Graph, indexed: &IndexedGraph, network: &Network, plan: &Plan) -> Graph {
    let count = indexed.num_entries();
    let signed = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    let mut storages = vec![OUTSIDE; count];
    let mut offsets = vec![-1_i64; count];
    let mut taken = vec![OUTSIDE; count];
    let mut numbers = HashMap::new();
    for entry in 0..count {
        let Some(offset) = plan.offsets[entry].filter(|_| !network.values[entry].external) else { continue };
        let next = numbers.len();
        storages[entry] = signed(*numbers.entry(plan.storages[entry]).or_insert(next));
        offsets[entry] = i64::try_from(offset).unwrap_or(i64::MAX);
        taken[entry] = plan.taken[entry].map_or(-1, signed);
    }
    let mut result = graph.clone();
    result.set(STORAGE_ID, storages);
    result.set(STORAGE_OFFSET, offsets);
    result.set(STORAGE_INPLACE_INDEX, taken);
    result.set(STORAGE_ALLOCATED_BYTES, usize::try_from(plan.nbytes).unwrap_or(usize::MAX));
    result.set(STORAGE_PEAK_LIVE_BYTES, usize::try_from(plan.peak_live_nbytes).unwrap_or(usize::MAX));
    result
}
