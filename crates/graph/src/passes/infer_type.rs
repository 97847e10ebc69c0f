//! `InferType`: the dtype of each entry.

use super::fixed_point::{Spread, call_of, no_rule};
use super::infer_shape::{SHAPE, Shapes, check_names};
use crate::error::{GraphError, Result};
use crate::graph::{EntryId, Graph, IndexedGraph};
use crate::node::Node;
use crate::registry::{RuleError, SharedTypeRule};
use crate::value::{DType, Shape, dtype_in_mxnet};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The attribute of a graph that has the dtypes of all entries.
pub const DTYPE: &str = "dtype";
/// How many entries have no dtype.
pub const NUM_UNKNOWN_TYPES: &str = "dtype_num_unknown_nodes";
/// The value of `DTYPE`.
pub type DTypes = Vec<Option<DType>>;

/// Finds dtypes from those of variables: from `known`, by name, and from the notes on them under `key`. A variable
/// without a dtype takes that of its neighbours in a call, or float32; one that says where elements lie is int64, and
/// tells its neighbours nothing.
///
/// # Errors
///
/// As for `infer_shape`.
pub fn infer_type<S: BuildHasher>(graph: &Graph, known: &HashMap<Arc<str>, DType, S>, key: &str) -> Result<Graph> {
    inferred(graph, known, key, true)
}

/// The same without assumptions: the rest stays unknown.
///
/// # Errors
///
/// As for `infer_shape`.
pub fn infer_type_partial<S: BuildHasher>(
    graph: &Graph,
    known: &HashMap<Arc<str>, DType, S>,
    key: &str,
) -> Result<Graph> {
    inferred(graph, known, key, false)
}

fn inferred<S: BuildHasher>(
    graph: &Graph,
    known: &HashMap<Arc<str>, DType, S>,
    key: &str,
    assumes: bool,
) -> Result<Graph> {
    let indexed = graph.indexed()?;
    let mut facts: DTypes = vec![None; indexed.num_entries()];
    let mut found = 0;
    for &number in indexed.input_nodes() {
        let node = &indexed.nodes()[number as usize];
        let slot = &mut facts[indexed.entries_of(number).start];
        if let Some(text) = node.text(key) {
            *slot = Some(named(&text).ok_or_else(|| {
                GraphError::new(format!("{}: '{key}' is {text}, which is no dtype", node.described()))
            })?);
        }
        if let Some(&dtype) = known.get(&**node.name()) {
            *slot = Some(dtype); // what is given wins
            found += 1;
        }
    }
    if found < known.len() {
        check_names(&indexed, known.keys().map(|name| &**name))?;
    }
    let shapes = graph.get::<Shapes>(SHAPE);
    let mut ask = asking(&indexed, shapes.as_ref().map(|shapes| shapes.as_slice()));
    let mut spread = Spread::new(&indexed, facts);
    spread.run(&mut ask)?;
    if assumes && spread.facts.iter().any(Option::is_none) {
        for number in (0_u32..).take(indexed.nodes().len()) {
            let places = assume(&indexed, &mut spread, number)?;
            spread.visit(number, &mut ask)?;
            for input in places {
                assign(&indexed, &mut spread, indexed.inputs(number)[input], DType::Int64);
            }
            spread.visit(number, &mut ask)?;
        }
        for &number in indexed.input_nodes() {
            spread.facts[indexed.entries_of(number).start].get_or_insert(DType::Float32);
        }
        spread.run(&mut ask)?;
    }
    let mut result = graph.clone();
    let facts = spread.facts;
    result.set(NUM_UNKNOWN_TYPES, facts.iter().filter(|dtype| dtype.is_none()).count());
    result.set(DTYPE, facts);
    Ok(result)
}

/// The question to nodes' rules for dtypes.
#[allow(clippy::type_complexity)] // an `Ask`, not boxed
fn asking<'a>(
    indexed: &'a IndexedGraph,
    shapes: Option<&'a [Shape]>,
) -> impl FnMut(u32, &Node, &mut [Option<DType>], &mut [Option<DType>]) -> Result<(), RuleError> + 'a {
    let mut rules: HashMap<usize, Option<Arc<SharedTypeRule>>> = HashMap::new();
    let mut sizes: Vec<Shape> = Vec::new();
    move |number, node, ins, outs| {
        let Some(op) = node.op() else { return Ok(()) };
        let rule = rules.entry(Arc::as_ptr(op).addr()).or_insert_with(|| op.get("infer_type"));
        let Some(rule) = rule else {
            return if ins.iter().any(Option::is_some) { Err(no_rule(node, "infer_type", indexed)) } else { Ok(()) };
        };
        sizes.clear();
        if let Some(shapes) = shapes {
            sizes.extend(indexed.inputs(number).iter().map(|&id| shapes[indexed.entry_id(id)].clone()));
        }
        match call_of(node, &sizes, &[]) {
            Some(call) => rule.infer(&call, ins, outs),
            None => Ok(()),
        }
    }
}

/// Finds all that follows from the known dtypes; the rest stays unknown.
pub(super) fn spread_types(indexed: &IndexedGraph, facts: DTypes, shapes: Option<&[Shape]>) -> Result<DTypes> {
    let mut spread = Spread::new(indexed, facts);
    spread.run(&mut asking(indexed, shapes))?;
    Ok(spread.facts)
}

/// Gives variables of unknown dtype that of the other inputs of their node, or float32; answers the inputs that are places.
fn assume(indexed: &IndexedGraph, spread: &mut Spread<'_, Option<DType>>, number: u32) -> Result<Vec<usize>> {
    let inputs = indexed.inputs(number);
    let places = indexed.nodes()[number as usize].places()?;
    let values = || inputs.iter().enumerate().filter(|(at, _)| !places.contains(at)).map(|(_, &id)| id);
    let met = values().find_map(|id| spread.facts[indexed.entry_id(id)]);
    for id in values() {
        assign(indexed, spread, id, met.unwrap_or(DType::Float32));
    }
    Ok(places.into_iter().filter(|&at| at < inputs.len()).collect())
}

/// Gives a variable this dtype, if it has none.
fn assign(indexed: &IndexedGraph, spread: &mut Spread<'_, Option<DType>>, id: EntryId, dtype: DType) {
    let entry = indexed.entry_id(id);
    if spread.facts[entry].is_none() && indexed.nodes()[id.node as usize].is_variable() {
        spread.facts[entry] = Some(dtype);
        spread.touch(id.node);
    }
}

/// A dtype as files write it: its name, or `MXNet`'s number.
fn named(text: &str) -> Option<DType> {
    let text = text.trim();
    let name = text.strip_prefix("dtype(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
    DType::named(name.trim_matches(['\'', '"'])).or_else(|| dtype_in_mxnet(text.parse().ok()?))
}
