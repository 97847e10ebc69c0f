//! Any text is a graph or an error. A graph is written and read as itself, and every pass ends with a graph or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use weft_graph::json::{LoadOptions, Writer, load, save};
use weft_graph::passes::{self, External};
use weft_graph::registry::Given;
use weft_graph::{Graph, Op, Result, rules};
use weft_plan::Memory;

/// An op for each rule of shapes, by its name.
static OPS: LazyLock<HashMap<&str, Arc<Op>>> = LazyLock::new(|| {
    let op = |&name: &&'static str| {
        let op = Op::new(name);
        op.set("infer_shape", rules::shape_rule(name).expect("a rule"), 10).expect("a new op");
        op.set("infer_type", rules::type_rule("same").expect("a rule"), 10).expect("a new op");
        op.set("inplace", Given::Fixed(vec![(0_usize, 0_usize)]), 10).expect("a new op");
        (name, op)
    };
    rules::SHAPE_RULES.iter().map(op).collect()
});

fn passed(graph: &Graph) -> Result<()> {
    let _ = passes::dot(graph);
    let _ = passes::fuse(graph);
    let _ = passes::functionalise(graph, true);
    let _ = passes::order_mutation(graph);
    let _ = passes::eliminate_identity(graph);
    let _ = passes::eliminate_dead(graph);
    let _ = passes::eliminate_common(graph);
    let graph = passes::infer_shape(graph, &HashMap::new(), "__shape__")?;
    let graph = passes::infer_type(&graph, &HashMap::new(), "__dtype__")?;
    let _ = passes::print_ir(&graph, &["shape", "dtype"], &[], &|_, _| None);
    let _ = passes::dot(&graph);
    passes::plan_memory(&graph, Memory::Min, &External::None)?;
    Ok(())
}

fuzz_target!(|text: &str| {
    let find = |name: &str, _: Writer| Ok(OPS.get(name).cloned());
    let options = LoadOptions { find: &find };
    let Ok(graph) = load(text, options) else { return };
    let written = save(&graph).expect("a graph that was read can be written");
    let again = load(&written, options).expect("what was written can be read");
    assert_eq!(save(&again).expect("as above"), written);
    let _ = passed(&graph);
});
