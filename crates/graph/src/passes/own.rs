//! The passes that the registry knows from the start: those of this crate that take nothing but a graph, under their names
//! here and in NNVM. A new pass of this kind is a file and a row.
//!
//! Passes with parameters (`infer_shape`, `gradient` ...) are registered in Python, each beside its function
//! (`weft._graph.passes.own_pass`): their parameters are attributes of the graph that are Python's objects.

use super::infer_shape::SHAPE;
use super::infer_type::DTYPE;
use super::plan_memory::{
    STORAGE_ALLOCATED_BYTES, STORAGE_ID, STORAGE_INPLACE_INDEX, STORAGE_OFFSET, STORAGE_PEAK_LIVE_BYTES,
};
use super::registered::{Pass, Passes};
use super::{
    External, eliminate_common, eliminate_dead, eliminate_identity, functionalise, fuse, order_mutation, plan_memory,
};
use crate::error::Result;
use crate::graph::Graph;
use crate::json;
use std::sync::Arc;
use weft_plan::Memory;

/// The attribute that is a graph as text.
const JSON: &str = "json";

/// A pass as a row: its names, its function, whether it answers another graph, the attributes that it requires and
/// provides.
type Own = ([&'static str; 2], fn(&Graph) -> Result<Graph>, bool, &'static [&'static str], &'static [&'static str]);

const OWN: [Own; 8] = [
    (["eliminate_common", "EliminateCommon"], eliminate_common, true, &[], &[]),
    (["eliminate_dead", "EliminateDead"], eliminate_dead, true, &[], &[]),
    (["eliminate_identity", "EliminateIdentity"], eliminate_identity, true, &[SHAPE, DTYPE], &[]),
    (["functionalise", "Functionalise"], |graph| functionalise(graph, false), true, &[], &[]),
    (["fuse", "Fuse"], fuse, true, &[], &[]),
    (["order_mutation", "OrderMutation"], order_mutation, true, &[], &[]),
    (
        ["plan_memory", "PlanMemory"],
        |graph| plan_memory(graph, Memory::Min, &External::None),
        false,
        &[SHAPE, DTYPE],
        &[STORAGE_ID, STORAGE_OFFSET, STORAGE_INPLACE_INDEX, STORAGE_ALLOCATED_BYTES, STORAGE_PEAK_LIVE_BYTES],
    ),
    (["save_json", "SaveJSON"], with_json, false, &[], &[JSON]),
];

fn with_json(graph: &Graph) -> Result<Graph> {
    let mut graph = graph.clone();
    graph.set(JSON, Arc::<str>::from(json::save(&graph)?));
    Ok(graph)
}

/// A registry of these passes.
pub(super) fn own() -> Passes {
    let passes = Passes::default();
    for (names, body, change_graph, requires, provides) in OWN {
        for name in names {
            let pass = Pass {
                name: name.into(),
                body: Arc::new(move |graph| Ok(body(graph)?)),
                change_graph,
                requires: requires.iter().map(ToString::to_string).collect(),
                provides: provides.iter().map(ToString::to_string).collect(),
                op_attributes: Vec::new(),
            };
            passes.add(pass);
        }
    }
    passes
}
