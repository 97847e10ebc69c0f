//! `Gradient`: from outputs back to their inputs, by the rules of ops.

use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::node::{Differentiated, Node, NodeEntry, NodeRef, SharedGradient, post_order};
use crate::registry::{Op, Registry, RuleError};
use crate::value::Attributes;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Adds entries up.
pub type Aggregate<'a> = dyn Fn(Vec<NodeEntry>) -> Result<NodeEntry, RuleError> + 'a;
/// Whether a node is computed again for its gradient, instead of kept.
pub type Mirror<'a> = dyn Fn(&NodeRef) -> Result<bool, RuleError> + 'a;
/// Makes an entry of an entry and one that it is like.
pub type Like<'a> = dyn Fn(NodeEntry, &NodeEntry) -> Result<NodeEntry, RuleError> + 'a;

/// How gradients are composed. A missing one is an op of the registry.
#[derive(Default)]
pub struct GradientOptions<'a> {
    /// Adds the gradients of a value up that several calls take; by default the op `add`, from the first to the last.
    pub aggregate: Option<&'a Aggregate<'a>>,
    /// Which nodes are computed again.
    pub mirror: Option<&'a Mirror<'a>>,
    /// The replacement of each gradient, given that and its value.
    pub hint: Option<&'a Like<'a>>,
}

/// The gradients of `ys` with respect to `xs`: a graph with an output for each of these.
///
/// `heads` are the gradients of `ys`; None is ones. A value that comes twice among `ys` counts twice. An unused x has
/// the gradient zeros.
///
/// # Errors
///
/// If an op on the way has no rule, or a rule answers for another number of inputs.
pub fn gradient(
    ys: &[NodeEntry],
    xs: &[NodeEntry],
    heads: &[Option<NodeEntry>],
    options: &GradientOptions<'_>,
) -> Result<Graph> {
    if !heads.is_empty() && heads.len() != ys.len() {
        return refuse(format!("{} outputs have {} gradients", ys.len(), heads.len()));
    }
    let order = post_order(ys);
    let wanted = on_the_way(&order, xs);
    let mut grads: HashMap<(usize, u32), Vec<NodeEntry>> = HashMap::new();
    for (at, y) in ys.iter().enumerate() {
        let head = match heads.get(at).cloned().flatten() {
            Some(head) => head,
            None => like("ones_like", y)?,
        };
        grads.entry(y.key()).or_default().push(head);
    }
    let mirrored = mirror(&order, ys, &wanted, options)?;
    for node in order.iter().rev() {
        let address = Arc::as_ptr(node).addr();
        let Some(op) = node.op() else { continue };
        if !wanted.contains(&address) || !rests(node, &wanted, xs) {
            continue;
        }
        let mut outs = Vec::with_capacity(node.outputs() as usize);
        for index in 0..node.outputs() {
            let key = (address, index);
            let found = match grads.remove(&key) {
                Some(several) => Some(sum(several, options)?),
                None => None,
            };
            if let Some(found) = &found {
                grads.insert(key, vec![found.clone()]); // an x may be in the middle
            }
            outs.push(found);
        }
        if outs.iter().all(Option::is_none) {
            continue;
        }
        let Some(rule) = op.get::<SharedGradient>("gradient") else {
            if op.has("gradient_reads") {
                continue; // it says that there is none
            }
            return Err(GraphError::Gradient {
                message: format!(
                    "{} has no gradient, and it rests on {}: give the op a rule by set_attribute('gradient', rule)",
                    node.described(),
                    listed(xs)
                ),
                place: node.place(),
            });
        };
        let copied = |known: &NodeRef| mirrored.get(&Arc::as_ptr(known).addr()).unwrap_or(known).clone();
        let inputs: Vec<NodeEntry> =
            node.inputs().iter().map(|entry| NodeEntry { node: copied(&entry.node), ..*entry }).collect();
        let outputs: Vec<NodeEntry> = (0..node.outputs()).map(|index| NodeEntry::new(copied(node), index)).collect();
        let needs: Vec<bool> = node.inputs().iter().map(|entry| is_needed(entry, &wanted, xs)).collect();
        let of = Differentiated { node, inputs: &inputs, outputs: &outputs, needs: &needs };
        let found = rule.gradient(&of, &outs).map_err(|source| GraphError::Rule {
            context: format!("the gradient of {}", node.described()),
            source,
            place: node.place(),
            of_shapes: false,
        })?;
        if found.len() != node.inputs().len() {
            return Err(GraphError::Gradient {
                message: format!(
                    "the gradient of {} answers for {} inputs, and there are {}",
                    node.described(),
                    found.len(),
                    node.inputs().len()
                ),
                place: node.place(),
            });
        }
        for (input, grad) in node.inputs().iter().zip(found) {
            if let Some(grad) = grad {
                grads.entry(input.key()).or_default().push(grad);
            }
        }
    }
    let mut outputs = Vec::with_capacity(xs.len());
    for x in xs {
        let grad = match grads.get(&x.key()) {
            Some(several) => {
                let one = sum(several.clone(), options)?;
                grads.insert(x.key(), vec![one.clone()]);
                one
            }
            None => like("zeros_like", x)?,
        };
        outputs.push(match options.hint {
            Some(hint) => hint(grad, x).map_err(|source| of_option("hint", source))?,
            None => grad,
        });
    }
    Ok(Graph::new(outputs))
}

fn refuse<T>(message: String) -> Result<T> {
    Err(GraphError::Gradient { message, place: 0 })
}

/// The names of the xs, in words.
fn listed(xs: &[NodeEntry]) -> String {
    let names: Vec<&str> = xs.iter().map(|x| &**x.node.name()).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

fn of_option(which: &str, source: RuleError) -> GraphError {
    GraphError::Rule { context: format!("the {which} of a gradient"), source, place: 0, of_shapes: false }
}

/// The nodes that make an x, or rest on one.
fn on_the_way(order: &[NodeRef], xs: &[NodeEntry]) -> HashSet<usize> {
    let mut wanted: HashSet<usize> = xs.iter().map(|x| Arc::as_ptr(&x.node).addr()).collect();
    for node in order {
        if node.inputs().iter().any(|entry| wanted.contains(&Arc::as_ptr(&entry.node).addr())) {
            wanted.insert(Arc::as_ptr(node).addr());
        }
    }
    wanted
}

/// Whether a node rests on an x, rather than only makes one.
fn rests(node: &Node, wanted: &HashSet<usize>, xs: &[NodeEntry]) -> bool {
    node.inputs().iter().any(|entry| is_needed(entry, wanted, xs))
}

/// Whether the gradient of an entry is that of an x, or leads to one.
fn is_needed(entry: &NodeEntry, wanted: &HashSet<usize>, xs: &[NodeEntry]) -> bool {
    wanted.contains(&Arc::as_ptr(&entry.node).addr()) || xs.contains(entry)
}

/// Copies of nodes that are computed again, by the addresses of those that they copy.
fn mirror(
    order: &[NodeRef],
    ys: &[NodeEntry],
    wanted: &HashSet<usize>,
    options: &GradientOptions<'_>,
) -> Result<HashMap<usize, NodeRef>> {
    let mut copies: HashMap<usize, NodeRef> = HashMap::new();
    let Some(mirror) = options.mirror else { return Ok(copies) };
    for node in order {
        let address = Arc::as_ptr(node).addr();
        if node.is_variable() || !wanted.contains(&address) {
            continue;
        }
        let again = mirror(node).map_err(|source| of_option("mirror", source))?;
        let pure = node.op().is_some_and(|op| op.is_pure(node.attributes()).unwrap_or(false));
        if !again || !pure || ys.iter().any(|y| Arc::ptr_eq(&y.node, node)) {
            continue;
        }
        let replaced = |entry: &NodeEntry| match copies.get(&Arc::as_ptr(&entry.node).addr()) {
            Some(copy) => NodeEntry { node: copy.clone(), ..*entry },
            None => entry.clone(),
        };
        let inputs: Vec<NodeEntry> = node.inputs().iter().map(replaced).collect();
        let name: Arc<str> = format!("{}_mirror", node.name()).into();
        copies.insert(address, Arc::new(node.rebuilt(inputs, node.control().to_vec()).renamed(name)));
    }
    Ok(copies)
}

fn sum(mut several: Vec<NodeEntry>, options: &GradientOptions<'_>) -> Result<NodeEntry> {
    if several.len() == 1 {
        return Ok(several.remove(0));
    }
    if let Some(aggregate) = options.aggregate {
        return aggregate(several).map_err(|source| of_option("aggregate", source));
    }
    let add = find("add")?;
    let mut rest = several.into_iter();
    let Some(first) = rest.next() else { return refuse("no gradients to add up".into()) };
    rest.try_fold(first, |total, each| {
        let name: Arc<str> = format!("{}_grad_sum", total.node.name()).into();
        Ok(NodeEntry::new(Arc::new(Node::call(add.clone(), name, Attributes::default(), vec![total, each])?), 0))
    })
}

fn like(op: &str, entry: &NodeEntry) -> Result<NodeEntry> {
    let name: Arc<str> = format!("{}_{op}", entry.node.name()).into();
    Ok(NodeEntry::new(Arc::new(Node::call(find(op)?, name, Attributes::default(), vec![entry.clone()])?), 0))
}

fn find(op: &str) -> Result<Arc<Op>> {
    Registry::global().find(op).ok_or_else(|| GraphError::new(format!("gradients need an op '{op}': register one")))
}
