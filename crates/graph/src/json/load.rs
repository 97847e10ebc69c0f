//! A graph from JSON. The file is untrusted: each of its values is checked before it is used.

use super::build::Builder;
use super::file::{self, File, Nodes, Origin};
use super::links::{Links, Owner};
use super::part::Field;
use super::save::IS_NP_SHAPE;
use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::registry::{Op, Registry};
use std::sync::Arc;

/// The writer of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// This crate.
    Weft,
    /// `MXNet`, of this version: 800 is 0.8, or before.
    Mxnet(u64),
    /// An unknown one.
    Unknown,
}

/// Finds ops by the names that a file has, with their writer's meaning.
pub type FindOp<'a> = dyn Fn(&str, Writer) -> Result<Option<Arc<Op>>> + 'a;

/// How a file is read.
#[derive(Clone, Copy)]
pub struct LoadOptions<'a> {
    /// Finds ops; a name that it does not know becomes an op without rules.
    pub find: &'a FindOp<'a>,
}

impl Default for LoadOptions<'_> {
    fn default() -> Self {
        Self { find: &|name, _| Ok(Registry::global().find(name)) }
    }
}

/// Reads a graph.
///
/// # Errors
///
/// If the text is no JSON, or no graph; the message names the node.
pub fn load(text: &str, options: LoadOptions<'_>) -> Result<Graph> {
    let read = file::read(text).map_err(|error| GraphError::new(format!("this is no graph: {error}")))?;
    let Field::Found(file) = read else { return Err(GraphError::new("this is no graph: JSON without 'nodes'")) };
    let File { nodes, heads, arguments, row_ptr, origin } = file;
    let nodes = wanted(nodes, "nodes")?.ok_or_else(|| GraphError::new("the graph has no 'nodes'"))?;
    check_nodes(&nodes)?;
    let count = nodes.rows.len();
    let heads = wanted(heads, "heads")?
        .ok_or_else(|| GraphError::new("the graph has no 'heads': which values it computes is not known"))?;
    heads.check(heads.span(), count, Owner::Part("the list of heads"))?;
    if let Some(arguments) = wanted(arguments, "arg_nodes")? {
        arguments.check(arguments.span(), count, Owner::Part("the list of arguments"))?;
    }
    if wanted(row_ptr, "node_row_ptr")?.is_some_and(|counts| counts != Some(count + 1)) {
        return Err(GraphError::new(format!(
            "'node_row_ptr' does not fit {count} nodes: it wants {} counts",
            count + 1
        )));
    }
    let origin = match origin {
        Field::Found(origin) => origin,
        Field::Missing => Origin::default(),
        Field::Wrong => return Err(GraphError::new("the graph: 'attrs' is no object")),
    };
    let writer = writer(&origin, &nodes);
    // This crate writes all that MXNet reads under MXNet's names.
    let names_of = origin.mxnet.map_or(writer, Writer::Mxnet);
    let mut graph = Builder::new(&nodes, writer, names_of, origin.is_np_shape, options).build(&heads.all)?;
    if origin.is_np_shape {
        graph.set(IS_NP_SHAPE, Arc::<str>::from("1"));
    }
    for (name, text) in origin.texts {
        graph.set(&name, text);
    }
    Ok(graph)
}

/// The value under a key, if the file has it.
fn wanted<T>(field: Field<T>, key: &str) -> Result<Option<T>> {
    match field {
        Field::Found(value) => Ok(Some(value)),
        Field::Missing => Ok(None),
        Field::Wrong => Err(GraphError::new(format!("the graph: '{key}' is no list"))),
    }
}

fn check_nodes(nodes: &Nodes<'_>) -> Result<()> {
    if let Some(fault) = &nodes.fault {
        return Err(GraphError::new(fault));
    }
    let Nodes { rows, texts, inputs, control, .. } = nodes;
    let longest = rows.len().max(texts.len()).max(inputs.all.len()).max(control.all.len());
    if u32::try_from(longest).is_err() {
        return Err(GraphError::new("the graph has more than 4,294,967,295 nodes, inputs or attributes"));
    }
    let check = |links: &Links<'_>, span, at, name| links.check(span, rows.len(), Owner::Node(at, name));
    for (at, row) in rows.iter().enumerate() {
        check(inputs, row.inputs, at, &row.name)?;
        check(control, row.control, at, &row.name)?;
    }
    Ok(())
}

/// The writer of the file. `MXNet` says its version since 0.9; before, nodes said which one they are the gradient of.
fn writer(origin: &Origin, nodes: &Nodes<'_>) -> Writer {
    match origin.mxnet {
        _ if origin.is_weft => Writer::Weft,
        Some(version) => Writer::Mxnet(version),
        None if nodes.is_first => Writer::Mxnet(800),
        None => Writer::Unknown,
    }
}
