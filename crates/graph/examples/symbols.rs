//! A symbol from Rust alone: two ops with rules, shapes that go both ways, a plan of memory, text.
//!
//! `cargo run -p weft-graph --example symbols`

use std::collections::HashMap;
use std::sync::Arc;
use weft_graph::passes::{self, External, STORAGE_ALLOCATED_BYTES};
use weft_graph::registry::Given;
use weft_graph::symbol::Arguments;
use weft_graph::value::{Attributes, Shape};
use weft_graph::{Graph, GraphError, Op, Registry, Symbol, rules};
use weft_plan::Memory;

fn register(name: &str, rule: &str, inputs: &[&str]) -> Result<Arc<Op>, GraphError> {
    let op = Op::new(name);
    if let (Some(shapes), Some(types)) = (rules::shape_rule(rule), rules::type_rule("same")) {
        op.set("infer_shape", shapes, 10)?;
        op.set("infer_type", types, 10)?;
    }
    let names: Vec<Arc<str>> = inputs.iter().map(|&name| name.into()).collect();
    op.set("num_inputs", Given::Fixed(Some(names.len())), 10)?;
    op.set("input_names", Given::Fixed(names), 10)?;
    op.set("inplace", Given::Fixed(vec![(0_usize, 0_usize)]), 10)?;
    Registry::global().register(&op, &[], 10)?;
    Ok(op)
}

fn main() -> Result<(), GraphError> {
    let product = register("product", "matmul", &["left", "right"])?;
    let activation = register("activation", "same", &["data"])?;

    let call = |op: &Arc<Op>, name: &str, inputs: Vec<Symbol>| {
        let arguments = Arguments { positional: inputs, keyword: Vec::new() };
        Symbol::call(op, &name.into(), Attributes::default(), &arguments, 0)
    };
    let hidden = call(&product, "hidden", vec![Symbol::variable("x")])?; // the other input becomes `hidden_right`
    let out = call(&activation, "out", vec![hidden])?;

    let known = HashMap::from([(Arc::from("x"), Shape::new([2, 3])), (Arc::from("hidden_right"), Shape::new([-1, 4]))]);
    let graph = passes::infer_shape(&Graph::of(&out), &known, "__shape__")?;
    let graph = passes::infer_type(&graph, &HashMap::new(), "__dtype__")?;
    let graph = passes::plan_memory(&graph, Memory::Min, &External::None)?;
    print!("{}", passes::print_ir(&graph, &["shape", "storage_id"], &[], &|_, _| None)?);
    if let Some(bytes) = graph.get::<usize>(STORAGE_ALLOCATED_BYTES) {
        println!("arena: {bytes} bytes");
    }
    Ok(())
}
