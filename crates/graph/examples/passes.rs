//! Every key that an op may say of itself, and every pass, from Rust alone.
//!
//! `cargo run -p weft-graph --example passes`

use std::collections::HashMap;
use std::sync::Arc;
use weft_graph::node::{Differentiated, SetInputAttribute, SharedGradient};
use weft_graph::passes::{self, DEVICE, External, GradientOptions, LAYOUT, Pass, Passes, SHAPE, Shapes};
use weft_graph::registry::{Call, Cost, Given, Layouts, OpCost, RuleError, SharedLayout, SharedShapeRule, TextRule};
use weft_graph::symbol::{Arguments, Inputs};
use weft_graph::value::{Attributes, Shape, Value};
use weft_graph::{Graph, GraphError, Node, NodeEntry, NodeRef, Op, Registry, Symbol, json, rules};
use weft_plan::Memory;

const LEVEL: i32 = 10;

/// An op with the shapes and dtypes of its operands.
fn elementwise(name: &str, inputs: &[&str]) -> Result<Arc<Op>, GraphError> {
    let op = Op::new(name);
    if let (Some(shapes), Some(types)) = (rules::shape_rule("same"), rules::type_rule("same")) {
        op.set("infer_shape", shapes, LEVEL)?;
        op.set("infer_type", types, LEVEL)?;
    }
    op.set("num_inputs", Given::Fixed(Some(inputs.len())), LEVEL)?;
    op.set("input_names", Given::Fixed(inputs.iter().map(|&name| name.into()).collect::<Vec<Arc<str>>>()), LEVEL)?;
    op.set("inplace", Given::Fixed(vec![(0_usize, 0_usize)]), LEVEL)?;
    op.set("elementwise", Given::Fixed(true), LEVEL)?;
    Registry::global().register(&op, &[], LEVEL)?;
    Ok(op)
}

/// `data` of (n, k) by `weight` of (units, k): each shape that two others determine follows, in all directions.
fn dense_shapes(call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let units = call.attributes.int("units").ok_or("units is wanted: how many results a row has")?;
    let rows =
        |shape: &Shape| shape.lengths().filter(|lengths| lengths.len() == 2).map(|lengths| (lengths[0], lengths[1]));
    let (data, weight, out) = (rows(&ins[0]), rows(&ins[1]), rows(&outs[0]));
    let length = |found: Option<i64>| found.unwrap_or(-1);
    let n = data.map(|data| data.0).filter(|&n| n >= 0).or(out.map(|out| out.0));
    let k = data.map(|data| data.1).filter(|&k| k >= 0).or(weight.map(|weight| weight.1));
    let found = [(length(n), length(k)), (units, length(k)), (length(n), units)];
    for (slot, (first, second)) in ins.iter_mut().chain(outs).zip(found) {
        let follows = Shape::new([first, second]);
        *slot = slot.joined(&follows).ok_or_else(|| format!("shape {slot} is known, and {follows} follows"))?;
    }
    Ok(())
}

fn entry(op: &str, name: &str, attributes: Attributes, inputs: Vec<NodeEntry>) -> Result<NodeEntry, RuleError> {
    let op = Registry::global().find(op).ok_or_else(|| format!("no op is named {op}"))?;
    Ok(NodeEntry::new(Arc::new(Node::call(op, name.into(), attributes, inputs)?), 0))
}

/// An op that says all that an op can say.
fn dense() -> Result<Arc<Op>, GraphError> {
    let op = Op::new("dense");
    op.describe("Each row of `data` by each row of `weight`.");
    let shapes: SharedShapeRule = Arc::new(dense_shapes);
    op.set("FInferShape", shapes, LEVEL)?; // NNVM's name of `infer_shape`
    if let Some(types) = rules::type_rule("same") {
        op.set("infer_type", types, LEVEL)?;
    }
    op.set("num_inputs", Given::Fixed(Some(2_usize)), LEVEL)?;
    op.set("num_outputs", Given::Fixed(1_usize), LEVEL)?;
    op.set("visible_outputs", Given::Fixed(1_usize), LEVEL)?;
    op.set("input_names", Given::<Vec<Arc<str>>>::Fixed(vec!["data".into(), "weight".into()]), LEVEL)?;
    op.set("output_names", Given::<Vec<Arc<str>>>::Fixed(vec!["rows".into()]), LEVEL)?;
    let parse: TextRule = Arc::new(|texts| {
        let text = texts.iter().find(|(key, _)| &**key == "units").ok_or("'units' is missing")?;
        let units: i64 = text.1.parse().map_err(|_| format!("units={}: a whole number is wanted", text.1))?;
        Ok(Attributes::new([("units".into(), Value::Int(units))]))
    });
    op.set("parse", parse, LEVEL)?;
    let gradient: SharedGradient = Arc::new(|of: &Differentiated<'_>, grads: &[Option<NodeEntry>]| {
        let Some(grad) = &grads[0] else { return Ok(vec![None, None]) };
        let back = |kind: &str, other: usize| {
            let inputs = vec![grad.clone(), of.inputs[other].clone(), of.inputs[1 - other].clone()];
            entry(kind, &format!("{}_{kind}", of.node.name()), Attributes::default(), inputs).map(Some)
        };
        Ok(vec![back("dense_data", 1)?, back("dense_weight", 0)?])
    });
    op.set("gradient", gradient, LEVEL)?;
    let layout: SharedLayout = Arc::new(|_: &Call<'_>, _: &Layouts, _: &Layouts, outs: &Layouts| {
        Ok((vec![Some("NC".into()), Some("OC".into())], vec![Some("NC".into()); outs.len()]))
    });
    op.set("layout", layout, LEVEL)?;
    let cost: OpCost = Arc::new(|call| {
        let known = |length: i64| i32::try_from(length).map_or(0.0, f64::from).max(0.0);
        let size = |shape: &Shape| shape.lengths().map_or(0.0, |all| all.iter().map(|&length| known(length)).product());
        let units = known(call.attributes.int("units").unwrap_or(0));
        Ok(Cost::Work { flops: 2.0 * units * size(&call.shapes[0]), bytes: 4.0 * size(&call.shapes[1]) })
    });
    op.set("cost", cost, LEVEL)?;
    op.set("workspace", Given::Fixed(256_usize), LEVEL)?;
    op.set("pure", Given::Fixed(true), LEVEL)?;
    let note: SetInputAttribute = Arc::new(|_, variable, index| {
        variable.set_text("__lr_mult__", if index == 1 { "2" } else { "1" });
        Ok(())
    });
    op.set("set_input_attribute", note, LEVEL)?;
    Registry::global().register(&op, &["fully_connected"], LEVEL)?;
    Ok(op)
}

/// What gradients are made of. Of `dense` they take the shape of their last input, whose values they do not need.
fn gradient_ops() -> Result<(), GraphError> {
    for name in ["dense_data", "dense_weight"] {
        let op = Op::new(name);
        let last: SharedShapeRule = Arc::new(|_: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]| {
            outs[0] = outs[0].joined(&ins[2]).ok_or("a gradient has the shape of what it is one of")?;
            Ok(())
        });
        op.set("infer_shape", last, LEVEL)?;
        if let Some(types) = rules::type_rule("same") {
            op.set("infer_type", types, LEVEL)?;
        }
        op.set("num_inputs", Given::Fixed(Some(3_usize)), LEVEL)?;
        op.set("ignores", Given::Fixed(vec![2_usize]), LEVEL)?;
        Registry::global().register(&op, &[], LEVEL)?;
    }
    elementwise("ones_like", &["data"])?.set("ignores", Given::Fixed(vec![0_usize]), LEVEL)?;
    elementwise("zeros_like", &["data"])?.set("ignores", Given::Fixed(vec![0_usize]), LEVEL)?;
    Ok(())
}

fn call(op: &Arc<Op>, name: &str, attributes: Attributes, inputs: Vec<Symbol>) -> Result<Symbol, GraphError> {
    Symbol::call(op, &name.into(), attributes, &Arguments { positional: inputs, keyword: Vec::new() }, 0)
}

fn count(graph: &Graph) -> Result<usize, GraphError> {
    Ok(graph.indexed()?.nodes().len())
}

/// Runs every pass once.
///
/// # Errors
///
/// If one of them fails.
pub(crate) fn main() -> Result<(), GraphError> {
    let (dense, add) = (dense()?, elementwise("add", &["left", "right"])?);
    let square = elementwise("square", &["data"])?;
    let double: SharedGradient = Arc::new(|of: &Differentiated<'_>, grads: &[Option<NodeEntry>]| {
        let Some(grad) = &grads[0] else { return Ok(vec![None]) };
        let inputs = vec![grad.clone(), of.inputs[0].clone()];
        Ok(vec![Some(entry("twice_times", &format!("{}_grad", of.node.name()), Attributes::default(), inputs)?)])
    });
    square.set("gradient", double, LEVEL)?;
    elementwise("twice_times", &["grad", "data"])?;
    gradient_ops()?;
    let group = Registry::global().group("activations");
    group.add_trigger(&(Arc::new(|op: &Arc<Op>| Ok(op.set("flops_per_item", 1_usize, LEVEL)?)) as _))?;
    group.include(&square)?;
    assert_eq!(square.get::<usize>("flops_per_item").as_deref(), Some(&1));

    let units = Attributes::new([("units".into(), Value::Int(4))]);
    let x = Symbol::variable("x");
    let hidden = call(&dense, "hidden", units.clone(), vec![x.clone()])?; // its weight becomes `hidden_weight`
    let out = call(&square, "out", Attributes::default(), vec![hidden.clone()])?;
    let graph = Graph::of(&out);

    // LoadJSON, SaveJSON.
    let text = json::save(&graph)?;
    let graph = json::load(&text, json::LoadOptions::default())?;
    assert_eq!(json::save(&graph)?, text);

    // InferShape, both ways: rows from the result, the rest from what is known. InferType, PrintGraphIR, PlanMemory.
    let known =
        HashMap::from([(Arc::from("x"), Shape::new([-1, 3])), (Arc::from("hidden_weight"), Shape::new([-1, -1]))]);
    let sized = passes::infer_type(&passes::infer_shape(&graph, &known, "__shape__")?, &HashMap::new(), "__dtype__")?;
    assert_eq!(sized.wanted::<Shapes>(SHAPE, "infer_shape")?[1], Shape::new([4, 3]));
    let known = HashMap::from([(Arc::from("x"), Shape::new([2, 3]))]);
    let sized = passes::infer_type(&passes::infer_shape(&graph, &known, "__shape__")?, &HashMap::new(), "__dtype__")?;
    let planned = passes::plan_memory(&sized, Memory::Balanced, &External::Outputs)?;
    print!("{}", passes::print_ir(&planned, &[SHAPE, "storage_id"], &[], &|_, _| None)?);
    assert!(passes::dot(&planned)?.contains("hidden"));
    assert!(passes::svg(&planned)?.contains("hidden"));

    // Gradient; nothing is kept that can be computed again.
    let argument = |name: &str| -> Result<NodeEntry, GraphError> {
        Ok({
            let found = out.inputs(Inputs::Arguments)?.into_iter().find(|node| &**node.name() == name);
            NodeEntry::new(found.ok_or_else(|| GraphError::new("no such argument"))?, 0)
        })
    };
    let mirror = |node: &NodeRef| Ok(!node.is_variable());
    let options = GradientOptions { mirror: Some(&mirror), ..GradientOptions::default() };
    let grads = passes::gradient(out.outputs(), &[argument("x")?, argument("hidden_weight")?], &[], &options)?;
    let again = passes::infer_shape(&grads, &known, "__shape__")?;
    let indexed = again.indexed()?;
    let shapes = again.wanted::<Shapes>(SHAPE, "infer_shape")?;
    let of_outputs: Vec<_> = indexed.outputs().iter().map(|&id| shapes[indexed.entry_id(id)].clone()).collect();
    assert_eq!(of_outputs, [Shape::new([2, 3]), Shape::new([4, 3])]);

    rewrite(&hidden, &square, &add)?;
    mutate(&square)?;
    place(&hidden, &out, count(&graph)? + 1)?;

    // A pass of one's own, by name: what it requires is checked.
    let body = |graph: &Graph| {
        let mut counted = graph.clone();
        counted.set("num_calls", graph.indexed()?.nodes().iter().filter(|node| !node.is_variable()).count());
        Ok(counted)
    };
    Passes::global().register(Pass {
        name: "CountCalls".into(),
        body: Arc::new(body),
        change_graph: false,
        requires: vec![SHAPE.into()],
        provides: vec!["num_calls".into()],
        op_attributes: vec!["infer_shape".into()],
    })?;
    assert!(Passes::global().apply(&graph, "CountCalls").is_err());
    assert_eq!(Passes::global().apply(&sized, "CountCalls")?.get::<usize>("num_calls").as_deref(), Some(&2));
    Ok(())
}

/// Common subexpressions, dead code, fusion, constants.
fn rewrite(hidden: &Symbol, square: &Arc<Op>, add: &Arc<Op>) -> Result<(), GraphError> {
    let twice = || call(square, "again", Attributes::default(), vec![hidden.clone()]);
    let sum = Graph::of(&call(add, "sum", Attributes::default(), vec![twice()?, twice()?])?);
    let merged = passes::eliminate_common(&sum)?;
    assert_eq!(count(&merged)? + 1, count(&sum)?);
    assert_eq!(count(&passes::eliminate_dead(&merged)?)?, count(&merged)?);
    assert!(count(&passes::fuse(&merged)?)? < count(&merged)?);
    let seven = Op::new("seven");
    seven.set("num_inputs", Given::Fixed(Some(0_usize)), LEVEL)?;
    let constant = call(
        square,
        "forty_nine",
        Attributes::default(),
        vec![call(&seven, "seven", Attributes::default(), Vec::new())?],
    )?;
    let folded = passes::fold_constants(&Graph::of(&constant), &mut |node| {
        let known =
            Node::call(seven.clone(), format!("{}_folded", node.name()).into(), Attributes::default(), Vec::new())?;
        Ok(Some(vec![NodeEntry::new(Arc::new(known), 0)]))
    })?;
    assert_eq!(count(&folded)?, 1);

    Ok(())
}

/// `OrderMutation`, and what has no mutations any more.
fn mutate(square: &Arc<Op>) -> Result<(), GraphError> {
    let assign = elementwise("assign_add", &["state", "delta"])?;
    assign.set("mutates", Given::Fixed(vec![0_usize]), LEVEL)?;
    let state = Symbol::variable("state");
    let read = call(square, "read", Attributes::default(), vec![state.clone()])?;
    let write = call(&assign, "write", Attributes::default(), vec![state, Symbol::variable("delta")])?;
    let ordered = passes::order_mutation(&Graph::of(&Symbol::group(&[write, read])))?;
    assert!(ordered.outputs()[0].node.control().iter().any(|before| &**before.name() == "read"));
    let functional = passes::functionalise(&ordered, true)?;
    assert!(functional.indexed()?.nodes().iter().all(|node| node.mutates().is_ok_and(|all| all.is_empty())));

    Ok(())
}

/// `PlaceDevice`: a group has a device, and a value is copied once to each. `CorrectLayout`: a variable of another layout is
/// transposed.
fn place(hidden: &Symbol, out: &Symbol, nodes: usize) -> Result<(), GraphError> {
    let copy = elementwise("copy_to", &["data"])?;
    copy.set("inplace_identity", Given::Fixed(vec![true]), LEVEL)?;
    hidden.outputs()[0].node.set_text("__ctx_group__", "first");
    out.outputs()[0].node.set_text("__ctx_group__", "second");
    let assign = HashMap::from([("first".to_owned(), "cpu:0".to_owned()), ("second".to_owned(), "cpu:1".to_owned())]);
    let placed = passes::place_device(&Graph::of(out), "ctx_group", &assign, &copy, None)?;
    assert!(placed.attribute(DEVICE).is_some());
    assert_eq!(count(&placed)?, nodes);

    let permute = elementwise("permute_dims", &["data"])?;
    permute.remove("infer_shape", LEVEL);
    let corrected = passes::correct_layout(&Graph::of(out), &HashMap::from([("x".to_owned(), "CN".to_owned())]))?;
    assert!(corrected.attribute(LAYOUT).is_some());
    assert!(corrected.indexed()?.nodes().iter().any(|node| node.op_name() == "permute_dims"));
    Ok(())
}
