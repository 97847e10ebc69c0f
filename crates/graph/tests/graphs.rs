//! Graphs from Rust: long chains, files that say anything, facts that spread both ways.

use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use weft_graph::json::{LoadOptions, Writer, load, save};
use weft_graph::registry::Given;
use weft_graph::symbol::Arguments;
use weft_graph::value::{Attributes, Shape};
use weft_graph::{Graph, Op, Symbol, passes, rules};

fn same() -> Arc<Op> {
    let op = Op::new("same");
    op.set("infer_shape", rules::shape_rule("same").unwrap(), 10).unwrap();
    op.set("num_inputs", Given::Fixed(Some(1_usize)), 10).unwrap();
    op
}

fn call(op: &Arc<Op>, name: &str, input: Symbol) -> Symbol {
    let arguments = Arguments { positional: vec![input], keyword: Vec::new() };
    Symbol::call(op, &name.into(), Attributes::default(), &arguments, 0).unwrap()
}

#[test]
fn a_chain_of_100_000_calls_does_not_recurse() {
    let op = same();
    let mut symbol = Symbol::variable("x");
    for _ in 0..100_000 {
        symbol = call(&op, "n", symbol);
    }
    let graph = Graph::of(&symbol);
    let text = save(&graph).unwrap();
    let find = |name: &str, _: Writer| Ok((name == "same").then(|| op.clone()));
    let again = load(&text, LoadOptions { find: &find }).unwrap();
    let known = HashMap::from([(Arc::from("x"), Shape::new([2, 3]))]);
    let done = passes::infer_shape(&again, &known, "__shape__").unwrap();
    assert_eq!(*done.get::<usize>(passes::NUM_UNKNOWN_SHAPES).unwrap(), 0);
    assert_eq!(passes::eliminate_common(&again).unwrap().indexed().unwrap().nodes().len(), 100_001);
}

#[test]
fn a_copy_of_a_graph_keeps_its_own_attributes() {
    let graph = Graph::of(&Symbol::variable("x"));
    let mut other = graph.clone();
    other.set("answer", 42_usize);
    assert!(graph.attribute("answer").is_none());
    assert_eq!(other.get::<usize>("answer").as_deref(), Some(&42));
    assert!(other.wanted::<String>("answer", "nobody").is_err());
}

#[test]
fn results_that_do_not_exist_are_refused_where_the_op_is_unknown_too() {
    let graph = Graph::of(&call(&same(), "n", Symbol::variable("x")));
    let text = save(&graph).unwrap().replace("\"inputs\": [[0, 0, 0]]", "\"inputs\": [[0, 1, 0]]");
    let error = load(&text, LoadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("has 1 results, and result 1 is used"), "{error}");
}

fn lengths() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(-1_i64..4, 0..4)
}

proptest! {
    #[test]
    fn any_text_is_a_graph_or_an_error(text in "\\PC*") {
        let _ = load(&text, LoadOptions::default());
    }

    #[test]
    fn damaged_files_are_graphs_or_errors(at in 0_usize..400, with in "[\\[\\]{}0-9,:\"a-]{0,4}") {
        let graph = Graph::of(&call(&same(), "n", Symbol::variable("x")));
        let mut text = save(&graph).unwrap();
        let at = at % text.len();
        text.replace_range(at..=at, &with);
        if let Ok(graph) = load(&text, LoadOptions::default()) {
            prop_assert!(save(&graph).is_ok());
        }
    }

    #[test]
    fn joining_shapes_is_symmetric_and_keeps_what_is_known(a in lengths(), b in lengths()) {
        let (a, b) = (Shape::new(a), Shape::new(b));
        let joined = a.joined(&b);
        prop_assert_eq!(&joined, &b.joined(&a));
        if let Some(joined) = joined {
            prop_assert_eq!(joined.joined(&a), Some(joined.clone()));
            prop_assert_eq!(joined.joined(&b), Some(joined.clone()));
        }
    }
}
