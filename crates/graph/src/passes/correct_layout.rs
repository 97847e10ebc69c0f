//! `CorrectLayout`: each op gets its inputs in the layout that it takes; opposite transforms that meet
//! are removed.

use super::infer_shape::{SHAPE, Shapes, check_names};
use crate::error::{GraphError, Result};
use crate::graph::{Graph, IndexedGraph};
use crate::node::{Node, NodeEntry, NodeRef};
use crate::registry::{Call, Layouts, Registry, SharedLayout};
use crate::rules::{layout_rule, noted_shape};
use crate::value::{Attributes, LayoutAxis, Shape, Value, layout_axes, layout_fits, parse};
use std::collections::HashMap;
use std::sync::Arc;

/// The layout of each entry.
pub const LAYOUT: &str = "layout";
/// Layouts of variables, by name.
pub type LayoutMap = HashMap<String, String>;

type Layout = Option<Arc<str>>;

/// Asks each op for the layouts that it takes and makes, and inserts transforms where others come. A rule may answer other
/// attributes of the call, with which the op computes so. An element-wise op without a rule takes the layout that it gets;
/// any other takes values as the graph was written for them, and so do the outputs. A variable without a layout gets the one
/// that its first reader takes: the graph was written for that.
///
/// # Errors
///
/// If no variable has a name, a text is no layout or one of other axes, a rule refuses, or a transform is needed for which
/// there is no op, or of an input that an op changes in place.
pub fn correct_layout(graph: &Graph, variables: &LayoutMap) -> Result<Graph> {
    let indexed = graph.indexed()?;
    check_names(&indexed, variables.keys().map(String::as_str))?;
    check_layouts(graph, &indexed, variables)?;
    let mut work =
        Work { made: Vec::new(), layouts: HashMap::new(), transforms: HashMap::new(), sources: HashMap::new() };
    // Where the pass has run before, the graph is written for the layouts that it found.
    let before = graph.get::<Vec<Layout>>(LAYOUT).filter(|layouts| layouts.len() == indexed.num_entries());
    let shapes = graph.get::<Shapes>(SHAPE).filter(|shapes| shapes.len() == indexed.num_entries());
    // The layouts that values would have if nothing were done.
    let mut written: Vec<Layout> = vec![None; indexed.num_entries()];
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        let Some(op) = node.op() else {
            let entry = indexed.entries_of(number).start;
            let given: Layout = variables.get(&**node.name()).map(|layout| layout.as_str().into());
            let last = before.as_ref().and_then(|layouts| layouts[entry].clone());
            work.layouts.insert(NodeEntry::new(node.clone(), 0).key(), given.clone().or_else(|| last.clone()));
            written[entry] = last.or(given);
            work.made.push(node.clone());
            continue;
        };
        let ids = indexed.inputs(number);
        let last: Layouts = ids.iter().map(|&id| written[indexed.entry_id(id)].clone()).collect();
        let current: Vec<NodeEntry> = ids.iter().map(|id| work.entry(id.node, id.index, id.version)).collect();
        let have: Layouts = current.iter().map(|entry| work.layout(entry)).collect();
        let none: Layouts = vec![None; node.outputs() as usize];
        let rule = match op.get::<SharedLayout>("layout") {
            Some(rule) => Some((*rule).clone()),
            None if op.is_elementwise(node.attributes())? => layout_rule("elementwise"),
            None => None,
        };
        let sizes: Vec<Shape> =
            shapes.iter().flat_map(|shapes| ids.iter().map(|&id| shapes[indexed.entry_id(id)].clone())).collect();
        let ask = |ins: &Layouts, last: &Layouts| match &rule {
            Some(rule) => {
                let call = Call { op, attributes: node.attributes(), shapes: &sizes, dtypes: &[] };
                let answer = rule.correct(&call, ins, last, &none).map_err(|source| GraphError::Rule {
                    context: format!("the layout of {}", node.described()),
                    source,
                    place: node.place(),
                    of_shapes: false,
                })?;
                if answer.0.len() != ids.len() || answer.1.len() != none.len() {
                    return Err(node.error("its layout rule answers for another number of inputs or outputs"));
                }
                for layout in answer.0.iter().chain(&answer.1).flatten() {
                    let is_wrong = |why| node.error(format!("its layout rule answers {why}"));
                    layout_axes(layout).map_err(is_wrong)?;
                }
                Ok(answer)
            }
            None => Ok((last.clone(), none.clone(), None)),
        };
        let (wanted, outs, attributes) = ask(&have, &last)?;
        let mutated = node.mutates()?;
        let originally = ask(&last, &last)?.1;
        let mut inputs = Vec::with_capacity(ids.len());
        for (at, (entry, wants)) in current.into_iter().zip(&wanted).enumerate() {
            inputs.push(match (work.layout(&entry), wants) {
                (Some(has), Some(wants)) if has != *wants && mutated.contains(&at) => {
                    return Err(change_lost(node, at, &has, wants));
                }
                (Some(has), Some(wants)) if has != *wants => work.transformed(&entry, &has, wants)?,
                (None, Some(wants)) if entry.node.op().is_none() => {
                    let axes = layout_axes(wants).map_err(|why| node.error(why))?;
                    let known = variable_shape(shapes.as_ref(), indexed.entry_id(ids[at]), &entry.node);
                    if layout_fits(&axes, &known) {
                        work.layouts.insert(entry.key(), Some(wants.clone()));
                        written[indexed.entry_id(ids[at])] = Some(wants.clone());
                    }
                    entry
                }
                _ => entry,
            });
        }
        let control: Vec<NodeRef> =
            indexed.control(number).iter().map(|&each| work.made[each as usize].clone()).collect();
        let new = Arc::new(node.rebuilt(inputs, control).with_attributes(attributes)?);
        for (index, (out, before)) in (0_u32..).zip(outs.into_iter().zip(originally)) {
            written[indexed.entries_of(number).start + index as usize] = before;
            work.layouts.insert(NodeEntry::new(new.clone(), index).key(), out);
        }
        work.made.push(new);
    }
    let mut outputs = Vec::new();
    for &id in indexed.outputs() {
        let entry = work.entry(id.node, id.index, id.version);
        outputs.push(match (work.layout(&entry), &written[indexed.entry_id(id)]) {
            (Some(has), Some(wants)) if has != *wants => work.transformed(&entry, &has, wants)?,
            _ => entry,
        });
    }
    let mut result = Graph::new(outputs);
    let made = result.indexed()?;
    let mut layouts: Vec<Layout> = Vec::with_capacity(made.num_entries());
    for node in made.nodes() {
        layouts.extend((0..node.outputs()).map(|index| work.layout(&NodeEntry::new(node.clone(), index))));
    }
    result.set(LAYOUT, layouts);
    Ok(result)
}

/// Refuses the transform of an input that is changed in place.
fn change_lost(node: &Node, at: usize, has: &str, wants: &str) -> GraphError {
    node.error(format!(
        "input {at}, which it changes in place, lies as {has}, and {wants} is wanted: the change would be lost with a \
         transformed copy"
    ))
}

/// Refuses a text that is no layout of a variable.
fn check_layouts(graph: &Graph, indexed: &IndexedGraph, variables: &LayoutMap) -> Result<()> {
    let shapes = graph.get::<Shapes>(SHAPE).filter(|shapes| shapes.len() == indexed.num_entries());
    for &number in indexed.input_nodes() {
        let node = &indexed.nodes()[number as usize];
        let Some(layout) = variables.get(&**node.name()) else { continue };
        let axes = layout_axes(layout).map_err(|why| node.error(why))?;
        let known = variable_shape(shapes.as_ref(), indexed.entries_of(number).start, node);
        if !layout_fits(&axes, &known) {
            return Err(node.error(format!("layout '{layout}' has other axes than its shape {known}")));
        }
    }
    Ok(())
}

/// The shape of a variable, as far as it is inferred or noted.
fn variable_shape(inferred: Option<&Arc<Shapes>>, entry: usize, node: &Node) -> Shape {
    match inferred {
        Some(shapes) => shapes[entry].clone(),
        None => node.text("__shape__").and_then(|text| noted_shape(&parse(&text)).ok()).unwrap_or_default(),
    }
}

struct Work {
    made: Vec<NodeRef>,
    layouts: HashMap<(usize, u32), Layout>,
    transforms: HashMap<((usize, u32), Arc<str>), NodeEntry>,
    /// The entry that a transform was made of.
    sources: HashMap<(usize, u32), NodeEntry>,
}

impl Work {
    fn entry(&self, node: u32, index: u32, version: u32) -> NodeEntry {
        NodeEntry { node: self.made[node as usize].clone(), index, version }
    }

    fn layout(&self, entry: &NodeEntry) -> Layout {
        self.layouts.get(&entry.key()).cloned().flatten()
    }

    /// The entry in another layout: made once, and not of a transform but of its origin.
    fn transformed(&mut self, entry: &NodeEntry, from: &Arc<str>, to: &Arc<str>) -> Result<NodeEntry> {
        if let Some(source) = self.sources.get(&entry.key()).cloned()
            && let Some(before) = self.layout(&source)
        {
            return if before == *to { Ok(source) } else { self.transformed(&source, &before, to) };
        }
        if let Some(known) = self.transforms.get(&(entry.key(), to.clone())) {
            return Ok(known.clone());
        }
        let name: Arc<str> = format!("{}_{from}_to_{to}", entry.node.name()).into();
        let (op, attributes) = transform(from, to).map_err(|why| entry.node.error(why))?;
        let found = Registry::global().find(op).ok_or_else(|| {
            entry.node.error(format!("its layout is {from}, {to} is wanted, and no op '{op}' is registered"))
        })?;
        let made = NodeEntry::new(Arc::new(Node::call(found, name, attributes, vec![entry.clone()])?), 0);
        self.layouts.insert(made.key(), Some(to.clone()));
        self.sources.insert(made.key(), entry.clone());
        self.transforms.insert((entry.key(), to.clone()), made.clone());
        Ok(made)
    }
}

/// The op that brings one layout into another: a permutation where axes alone move.
fn transform(from: &str, to: &str) -> Result<(&'static str, Attributes), String> {
    let (own, wanted) = (layout_axes(from)?, layout_axes(to)?);
    let has = |axes: &[LayoutAxis], name: char| axes.iter().any(|axis| axis.name == name);
    if own.iter().any(|axis| !has(&wanted, axis.name)) || wanted.iter().any(|axis| !has(&own, axis.name)) {
        return Err(format!("its layout {from} cannot become {to}: their axes differ"));
    }
    if own.iter().chain(&wanted).all(|axis| axis.block.is_none()) {
        let order = wanted.iter().filter_map(|axis| own.iter().position(|known| known == axis));
        let order: Vec<i64> = order.filter_map(|at| i64::try_from(at).ok()).collect();
        return Ok(("permute_dims", Attributes::new([("axes".into(), Value::integers(order))])));
    }
    let attributes =
        Attributes::new([("src_layout".into(), Value::text(from)), ("dst_layout".into(), Value::text(to))]);
    Ok(("layout_transform", attributes))
}
