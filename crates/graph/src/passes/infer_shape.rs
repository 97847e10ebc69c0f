//! `InferShape`: the shape of each entry.

use super::fixed_point::{Spread, call_of, no_rule};
use super::infer_type::DTYPE;
use crate::error::{GraphError, Result};
use crate::graph::{Graph, IndexedGraph};
use crate::registry::SharedShapeRule;
use crate::rules::noted_shape;
use crate::value::{DType, Shape, parse};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The attribute of a graph that has the shapes of all entries.
pub const SHAPE: &str = "shape";
/// The attribute of a graph with the number of entries without a complete shape.
pub const NUM_UNKNOWN_SHAPES: &str = "shape_num_unknown_nodes";
/// The value of `SHAPE`.
pub type Shapes = Vec<Shape>;

/// Finds shapes from those of variables: from `known`, by name, and from the notes on them under `key`, which count
/// where they do not contradict the first.
///
/// # Errors
///
/// If shapes contradict each other, a rule refuses them, or an op has no rule although its inputs are known.
pub fn infer_shape<S: BuildHasher>(graph: &Graph, known: &HashMap<Arc<str>, Shape, S>, key: &str) -> Result<Graph> {
    let indexed = graph.indexed()?;
    let mut facts = vec![Shape::unknown(); indexed.num_entries()];
    if let Some(before) = graph.get::<Shapes>(SHAPE).filter(|before| before.len() == facts.len()) {
        facts.clone_from(&before);
    }
    let mut found = 0;
    for &number in indexed.input_nodes() {
        let node = &indexed.nodes()[number as usize];
        let slot = &mut facts[indexed.entries_of(number).start];
        let contradicted = |whence: &str, new: &Shape, slot: &Shape| GraphError::Shape {
            message: format!("{}: {whence} is {new}, and its shape is {slot}", node.described()),
            place: node.place(),
        };
        let given = known.get(&**node.name());
        if let Some(shape) = given {
            *slot = slot.joined(shape).ok_or_else(|| contradicted("the shape that was given", shape, slot))?;
            found += 1;
        }
        if let Some(text) = node.text(key) {
            let noted = noted_shape(&parse(&text)).map_err(|why| node.error(format!("'{key}' is {text}, {why}")))?;
            match slot.joined(&noted) {
                Some(joined) => *slot = joined,
                None if given.is_some() => {} // what is given wins
                None => return Err(contradicted(&format!("'{key}'"), &noted, slot)),
            }
        }
    }
    if found < known.len() {
        check_names(&indexed, known.keys().map(|name| &**name))?;
    }
    let dtypes = graph.get::<Vec<Option<DType>>>(DTYPE);
    let facts = spread_shapes(&indexed, facts, dtypes.as_ref().map(|dtypes| dtypes.as_slice()))?;
    let unknown = facts.iter().filter(|shape| !shape.is_known()).count();
    let mut result = graph.clone();
    result.set(SHAPE, facts);
    result.set(NUM_UNKNOWN_SHAPES, unknown);
    Ok(result)
}

/// Finds all that follows from the known shapes.
pub(super) fn spread_shapes(indexed: &IndexedGraph, facts: Shapes, dtypes: Option<&[Option<DType>]>) -> Result<Shapes> {
    let mut rules: HashMap<usize, Option<Arc<SharedShapeRule>>> = HashMap::new();
    let mut spread = Spread::new(indexed, facts);
    let mut types: Vec<Option<DType>> = Vec::new();
    spread.run(&mut |number, node, ins, outs| {
        let Some(op) = node.op() else { return Ok(()) };
        let rule = rules.entry(Arc::as_ptr(op).addr()).or_insert_with(|| op.get("infer_shape"));
        let Some(rule) = rule else {
            // Where nothing is known nothing was asked.
            return if ins.iter().any(Shape::is_known) { Err(no_rule(node, "infer_shape", indexed)) } else { Ok(()) };
        };
        types.clear();
        if let Some(dtypes) = dtypes {
            types.extend(indexed.inputs(number).iter().map(|&id| dtypes[indexed.entry_id(id)]));
        }
        match call_of(node, &[], &types) {
            Some(call) => rule.infer(&call, ins, outs),
            None => Ok(()),
        }
    })?;
    Ok(spread.facts)
}

/// Refuses names that no variable has.
pub(super) fn check_names<'a>(indexed: &IndexedGraph, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let all: Vec<&str> =
        indexed.input_nodes().iter().map(|&number| &**indexed.nodes()[number as usize].name()).collect();
    let known: std::collections::HashSet<&str> = all.iter().copied().collect();
    for name in names {
        if !known.contains(name) {
            return Err(GraphError::new(format!("no variable is named '{name}': there are {}", all.join(", "))));
        }
    }
    Ok(())
}
