//! A graph as JSON.

use crate::error::{GraphError, Result};
use crate::graph::{EntryId, Graph, IndexedGraph};
use crate::node::Node;
use crate::value::Value;
use std::fmt::Write;
use std::sync::Arc;

/// Writes a graph in NNVM's format.
///
/// # Errors
///
/// If an attribute of a node cannot be written as text.
pub fn save(graph: &Graph) -> Result<String> {
    let indexed = graph.indexed()?;
    let mut text = String::with_capacity(indexed.nodes().len() * 112 + 256);
    text.push_str("{\n  \"nodes\": [");
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        text.push_str(if number == 0 { "\n" } else { ",\n" });
        write_node(&mut text, node, number, &indexed)?;
    }
    text.push_str("\n  ],\n  \"arg_nodes\": ");
    numbers(&mut text, indexed.input_nodes().iter().map(|&each| each as usize));
    text.push_str(",\n  \"node_row_ptr\": ");
    let count = u32::try_from(indexed.nodes().len()).unwrap_or(u32::MAX);
    numbers(&mut text, (0..count).map(|node| indexed.entries_of(node).start).chain([indexed.num_entries()]));
    text.push_str(",\n  \"heads\": ");
    entries(&mut text, indexed.outputs());
    text.push_str(",\n  \"attrs\": {\"weft_version\": [\"str\", ");
    string(&mut text, env!("CARGO_PKG_VERSION"));
    text.push(']');
    for (name, value) in graph.attributes() {
        if let Some(value) = value.downcast_ref::<Arc<str>>()
            && &**name != "weft_version"
        {
            text.push_str(", ");
            string(&mut text, name);
            text.push_str(": [\"str\", ");
            string(&mut text, value);
            text.push(']');
        }
    }
    text.push_str("}\n}\n");
    Ok(text)
}

fn string(text: &mut String, value: &str) {
    if value.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        text.push('"');
        text.push_str(value);
        text.push('"');
    } else {
        // A string always serialises.
        text.push_str(&serde_json::to_string(value).unwrap_or_default());
    }
}

fn numbers(text: &mut String, values: impl Iterator<Item = usize>) {
    text.push('[');
    for (at, value) in values.enumerate() {
        let _ = write!(text, "{}{value}", if at == 0 { "" } else { ", " }); // to a string
    }
    text.push(']');
}

fn entries(text: &mut String, values: &[EntryId]) {
    text.push('[');
    for (at, entry) in values.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}[{}, {}, {}]", entry.node, entry.index, entry.version); // to a string
    }
    text.push(']');
}

fn write_node(text: &mut String, node: &Node, number: u32, indexed: &IndexedGraph) -> Result<()> {
    text.push_str("    {\"op\": ");
    string(text, node.op_name());
    text.push_str(", \"name\": ");
    string(text, node.name());
    let texts = node.texts();
    if !node.attributes().is_empty() || !texts.is_empty() {
        text.push_str(", \"attrs\": {");
        let mut comma = "";
        for (key, value) in node.attributes().iter() {
            if contains_opaque(value) {
                return Err(GraphError::Graph {
                    message: format!(
                        "{}: attribute '{key}' is {value}, which no file can hold: use numbers, text, dtypes and tuples of them",
                        node.described()
                    ),
                    place: node.place(),
                });
            }
            text.push_str(comma);
            string(text, key);
            text.push_str(": ");
            string(text, &value.to_string());
            comma = ", ";
        }
        for (key, value) in &texts {
            text.push_str(comma);
            string(text, key);
            text.push_str(": ");
            string(text, value);
            comma = ", ";
        }
        text.push('}');
    }
    text.push_str(", \"inputs\": ");
    entries(text, indexed.inputs(number));
    if !indexed.control(number).is_empty() {
        text.push_str(", \"control_deps\": ");
        numbers(text, indexed.control(number).iter().map(|&each| each as usize));
    }
    if let Some(subgraphs) = node.subgraphs() {
        text.push_str(", \"subgraphs\": ");
        text.push_str(subgraphs);
    }
    text.push('}');
    Ok(())
}

/// Whether a value, or a part of it, is an object that no file can hold.
pub(crate) fn contains_opaque(value: &Value) -> bool {
    match value {
        Value::Opaque(_) => true,
        Value::Tuple(values) => values.iter().any(contains_opaque),
        Value::Slice(parts) => parts.iter().any(contains_opaque),
        _ => false,
    }
}
