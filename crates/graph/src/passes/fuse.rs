//! `fuse`: element-wise neighbours become one call, of a graph of its own.

use super::derived::{FUSED, SUBGRAPH, derived_op};
use super::gradient::{GradientOptions, gradient};
use super::infer_shape::spread_shapes;
use super::infer_type::spread_types;
use super::subgraph::{Subgraph, input_name};
use crate::error::Result;
use crate::graph::{Graph, IndexedGraph};
use crate::json;
use crate::node::{Differentiated, Node, NodeEntry, NodeRef, Rewriter, SharedGradient};
use crate::registry::{Call, Cost, Given, Op, OpCost, RuleError, SharedShapeRule, SharedTypeRule};
use crate::value::{Attributes, DType, Shape, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The users of a node's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Users {
    None,
    /// Nodes of one group: its last node.
    One(u32),
    Several,
}

impl Users {
    fn and(&mut self, group: u32) {
        *self = match *self {
            Self::None => Self::One(group),
            Self::One(known) if known == group => Self::One(group),
            _ => Self::Several,
        };
    }
}

/// Makes one call of each group of calls whose ops are `elementwise`: one call with a result for others, and all before
/// it with results for the group alone. The call has the name of that one.
///
/// A call that mutates, draws, has control dependencies, or reads a mutated value stays by itself.
pub fn fuse(graph: &Graph) -> Result<Graph> {
    let indexed = graph.indexed()?;
    let nodes = indexed.nodes();
    let last = groups(&indexed)?;
    let mut members: HashMap<u32, Vec<u32>> = HashMap::new();
    for (number, &group) in (0_u32..).zip(&last) {
        members.entry(group).or_default().push(number);
    }
    let mut rewriter = Rewriter::default();
    for (number, node) in (0_u32..).zip(nodes) {
        if last[number as usize] != number {
            continue;
        }
        match members[&number].as_slice() {
            [_] => drop(rewriter.follow(node)),
            group => {
                let new = fused(&indexed, group, node, &rewriter)?;
                rewriter.replace_node(node, new);
            }
        }
    }
    Ok(Graph::new(graph.outputs().iter().map(|entry| rewriter.entry(entry)).collect()))
}

/// For each node the last node of its group.
fn groups(indexed: &IndexedGraph) -> Result<Vec<u32>> {
    let nodes = indexed.nodes();
    let mutated: HashSet<u32> = {
        let mut found = HashSet::new();
        for (number, node) in (0_u32..).zip(nodes) {
            found.extend(node.mutates()?.iter().filter_map(|&at| indexed.inputs(number).get(at)).map(|id| id.node));
        }
        found
    };
    let mut users = vec![Users::None; nodes.len()];
    indexed.outputs().iter().for_each(|id| users[id.node as usize] = Users::Several);
    let mut last: Vec<u32> = Vec::new();
    last.resize(nodes.len(), u32::MAX);
    let mut may: Vec<bool> = vec![false; nodes.len()];
    for at in (0..nodes.len()).rev() {
        let (node, number) = (&nodes[at], u32::try_from(at).unwrap_or(u32::MAX));
        may[at] = is_elementwise(node)?
            && !mutated.contains(&number)
            && !indexed.inputs(number).iter().any(|id| mutated.contains(&id.node));
        let group = match users[at] {
            Users::One(group)
                if may[at]
                    && may[group as usize]
                    && indexed.control(number).is_empty()
                    && nodes[group as usize].texts() == node.texts() =>
            {
                group
            }
            _ => number,
        };
        last[at] = group;
        indexed.inputs(number).iter().for_each(|id| users[id.node as usize].and(group));
        indexed.control(number).iter().for_each(|&each| users[each as usize] = Users::Several);
    }
    Ok(last)
}

fn is_elementwise(node: &Node) -> Result<bool> {
    let Some(op) = node.op() else { return Ok(false) };
    Ok(node.outputs() == 1
        && node.subgraphs().is_none()
        && !node.attributes().iter().any(|(_, value)| json::contains_opaque(value))
        && op.is_elementwise(node.attributes())?
        && op.is_pure(node.attributes())?)
}

fn fused(indexed: &IndexedGraph, group: &[u32], root: &NodeRef, rewriter: &Rewriter) -> Result<NodeRef> {
    let mut inputs: Vec<NodeEntry> = Vec::new();
    let mut inner: HashMap<(usize, u32), NodeEntry> = HashMap::new();
    let mut result = None;
    for &number in group {
        let node = &indexed.nodes()[number as usize];
        let mut taken = Vec::with_capacity(node.inputs().len());
        for entry in node.inputs() {
            taken.push(
                inner
                    .entry(entry.key())
                    .or_insert_with(|| {
                        let variable = Node::variable(&input_name(inputs.len()));
                        inputs.push(rewriter.entry(entry));
                        NodeEntry::new(Arc::new(variable), 0)
                    })
                    .clone(),
            );
        }
        let Some(op) = node.op() else { continue };
        let copy = Node::call(op.clone(), node.name().clone(), node.attributes().clone(), taken)?;
        let entry = NodeEntry::new(Arc::new(copy), 0);
        inner.insert((Arc::as_ptr(node).addr(), 0), entry.clone());
        result = Some(entry);
    }
    let text = json::save(&Graph::new(result.into_iter().collect()))?;
    let attributes = Attributes::new([(SUBGRAPH.into(), Value::text(&text))]);
    let new = Node::call(derived_op(FUSED)?, root.name().clone(), attributes, inputs)?;
    root.texts().iter().for_each(|(key, text)| new.set_text(key, text));
    Ok(Arc::new(new.at(root.place()).after(rewriter.control(root))))
}

/// Lets an op describe itself by its subgraph.
pub(super) fn describe(op: &Arc<Op>, level: i32) -> Result<()> {
    op.set("num_inputs", by(|of| Some(of.inputs.len())), level)?;
    op.set("num_outputs", by(|of| of.graph.outputs().len()), level)?;
    op.set(
        "input_names",
        by(|of| (0..of.inputs.len()).map(|at| input_name(at).into()).collect::<Vec<Arc<str>>>()),
        level,
    )?;
    // Each element of the result is made of those at its place: any input that is as large may lie there.
    op.set("inplace", by(|of| (0..of.inputs.len()).map(|at| (at, 0)).collect::<Vec<_>>()), level)?;
    op.set("elementwise", Given::Fixed(true), level)?;
    op.set("pure", Given::Fixed(true), level)?;
    op.set("infer_shape", Arc::new(infer_shape) as SharedShapeRule, level)?;
    op.set("infer_type", Arc::new(infer_type) as SharedTypeRule, level)?;
    op.set("gradient", Arc::new(differentiate) as SharedGradient, level)?;
    op.set("cost", Arc::new(cost) as OpCost, level)
}

fn by<T>(rule: impl Fn(&Subgraph) -> T + Send + Sync + 'static) -> Given<T> {
    Given::By(Arc::new(move |attributes| Ok(rule(&*Subgraph::of(attributes)?))))
}

/// The facts of a subgraph's entries, with those of its inputs and outputs.
fn facts<F: Clone>(of: &Subgraph, indexed: &IndexedGraph, unknown: &F, ins: &[F], outs: &[F]) -> Vec<F> {
    let mut facts = vec![unknown.clone(); indexed.num_entries()];
    let places = of.inputs.iter().chain(&of.outputs);
    places.zip(ins.iter().chain(outs)).for_each(|(&at, fact)| facts[at] = fact.clone());
    facts
}

fn infer_shape(call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let of = Subgraph::of(call.attributes)?;
    let indexed = of.graph.indexed()?;
    let dtypes = if call.dtypes.is_empty() {
        None
    } else {
        Some(spread_types(&indexed, facts(&of, &indexed, &None, call.dtypes, &[]), None)?)
    };
    let known = spread_shapes(&indexed, facts(&of, &indexed, &Shape::unknown(), ins, outs), dtypes.as_deref())?;
    ins.iter_mut().zip(&of.inputs).for_each(|(shape, &at)| *shape = known[at].clone());
    outs.iter_mut().zip(&of.outputs).for_each(|(shape, &at)| *shape = known[at].clone());
    Ok(())
}

fn infer_type(call: &Call<'_>, ins: &mut [Option<DType>], outs: &mut [Option<DType>]) -> Result<(), RuleError> {
    let of = Subgraph::of(call.attributes)?;
    let indexed = of.graph.indexed()?;
    let known = spread_types(&indexed, facts(&of, &indexed, &None, ins, outs), None)?;
    ins.iter_mut().zip(&of.inputs).for_each(|(dtype, &at)| *dtype = known[at]);
    outs.iter_mut().zip(&of.outputs).for_each(|(dtype, &at)| *dtype = known[at]);
    Ok(())
}

/// The gradient of the subgraph, on the inputs: values in between are computed again.
fn differentiate(of: &Differentiated<'_>, grads: &[Option<NodeEntry>]) -> Result<Vec<Option<NodeEntry>>, RuleError> {
    let sub = Subgraph::of(of.node.attributes())?;
    let indexed = sub.graph.indexed()?;
    let variables: Vec<NodeEntry> = sub.variables(&indexed).map(|node| NodeEntry::new(node, 0)).collect();
    let heads: Vec<NodeEntry> = (0..grads.len())
        .map(|at| NodeEntry::new(Arc::new(Node::variable(&format!("{}_head{at}", of.node.name()))), 0))
        .collect();
    let (mut ys, mut given) = (Vec::new(), Vec::new());
    let mut replaced: Vec<(NodeEntry, NodeEntry)> = variables.iter().cloned().zip(of.inputs.iter().cloned()).collect();
    for ((y, head), grad) in sub.graph.outputs().iter().zip(heads).zip(grads) {
        if let Some(grad) = grad {
            ys.push(y.clone());
            given.push(Some(head.clone()));
            replaced.push((head, grad.clone()));
        }
    }
    let found = gradient(&ys, &variables, &given, &GradientOptions::default())?;
    let mut rewriter = Rewriter::default();
    replaced.into_iter().for_each(|(old, new)| rewriter.replace(&old, new));
    for node in found.indexed()?.nodes() {
        rewriter.follow(node);
    }
    Ok(found.outputs().iter().map(|entry| Some(rewriter.entry(entry))).collect())
}

/// A pass over the inputs, and an operation of each call on each element.
fn cost(call: &Call<'_>) -> Result<Cost, RuleError> {
    let of = Subgraph::of(call.attributes)?;
    let calls = of.graph.indexed()?.nodes().len() - of.inputs.len();
    let sizes = call.shapes.iter().map(|shape| shape.elements().unwrap_or(0).max(0));
    #[allow(clippy::cast_precision_loss)] // an estimate
    let (most, bytes) = sizes.zip(call.dtypes).fold((0.0_f64, 0.0), |(most, bytes), (size, dtype)| {
        (most.max(size as f64), bytes + size as f64 * dtype.map_or(4, DType::size) as f64)
    });
    #[allow(clippy::cast_precision_loss)] // as above
    Ok(Cost::Work { flops: most * calls as f64, bytes })
}
