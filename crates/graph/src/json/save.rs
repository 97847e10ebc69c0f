//! A graph as JSON.

use crate::error::{GraphError, Result};
use crate::graph::{EntryId, Graph, IndexedGraph};
use crate::node::Node;
use crate::value::{DType, Value, number_in_mxnet, parse, unquoted};
use std::fmt::Write;
use std::sync::Arc;

/// The key of `MxnetName` among the attributes of an op.
const MXNET_NAME: &str = "mxnet_name";
/// The note on a variable of its shape.
const SHAPE: &str = "__shape__";
/// The attribute of a graph whose file says -1 for lengths that are not known, and 0 for 0.
pub(super) const IS_NP_SHAPE: &str = "is_np_shape";
/// The release whose ops and attributes stand in a file for `MXNet`: 1.9.1.
const MXNET_VERSION: u32 = 10_901;

/// The value of `mxnet_name`: `MXNet`'s name of an op.
#[derive(Debug, Clone)]
pub struct MxnetName(pub Arc<str>);

/// How a file says that a length of a variable is not known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// `None`: in files of this crate alone.
    Named,
    /// 0, and `()` for a shape, as in `MXNet` by default.
    Zero,
    /// -1, as in `MXNet` where shapes are NumPy's.
    Negative,
}

/// Writes a graph in NNVM's format; one of `MXNet`'s ops alone under its names, so that it reads the file, too.
///
/// Such a file has 0 for lengths that are not known. Where that would hide a length of 0 or a scalar, and where the graph
/// has the attribute `is_np_shape`, it has -1, and says so.
///
/// # Errors
///
/// If an attribute of a node cannot be written as text.
pub fn save(graph: &Graph) -> Result<String> {
    let indexed = graph.indexed()?;
    let for_mxnet = is_mxnets(&indexed);
    let unknown = match for_mxnet {
        false => Unknown::Named,
        true if graph.get::<Arc<str>>(IS_NP_SHAPE).is_some() || has_exact_shapes(&indexed) => Unknown::Negative,
        true => Unknown::Zero,
    };
    let mut text = String::with_capacity(indexed.nodes().len() * 112 + 256);
    text.push_str("{\n  \"nodes\": [");
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        text.push_str(if number == 0 { "\n" } else { ",\n" });
        write_node(&mut text, node, number, &indexed, unknown)?;
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
    if for_mxnet {
        let _ = write!(text, ", \"mxnet_version\": [\"int\", {MXNET_VERSION}]"); // to a string
    }
    if unknown == Unknown::Negative {
        let _ = write!(text, ", \"{IS_NP_SHAPE}\": [\"int\", 1]"); // likewise
    }
    for (name, value) in graph.attributes() {
        if let Some(value) = value.downcast_ref::<Arc<str>>()
            && !matches!(&**name, "weft_version" | "mxnet_version" | IS_NP_SHAPE)
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

/// Whether each call is of an op of `MXNet`'s.
fn is_mxnets(indexed: &IndexedGraph) -> bool {
    let mut has_calls = false;
    let known = indexed.nodes().iter().all(|node| match node.op() {
        Some(op) => {
            has_calls = true;
            op.get::<MxnetName>(MXNET_NAME).is_some()
        }
        None => true,
    });
    known && has_calls
}

/// Whether a note is of a scalar, or of a length of 0: by default `MXNet` takes these for unknown.
fn has_exact_shapes(indexed: &IndexedGraph) -> bool {
    let is_exact = |text: &str| match parse(text) {
        Value::Tuple(lengths) => lengths.is_empty() || lengths.iter().any(|length| length.as_int() == Some(0)),
        _ => false,
    };
    indexed.nodes().iter().any(|node| node.text(SHAPE).is_some_and(|text| is_exact(&text)))
}

/// The text of a note as `MXNet` writes it: a dtype is a number, and so is a length that is not known.
fn noted_for_mxnet(key: &str, text: Arc<str>, unknown: Unknown) -> Arc<str> {
    match (key, unknown) {
        ("__dtype__", _) => {
            DType::named(&text).and_then(number_in_mxnet).map_or(text, |number| number.to_string().into())
        }
        (SHAPE, Unknown::Zero) => text.replace("None", "0").into(),
        (SHAPE, Unknown::Negative) => text.replace("None", "-1").into(),
        _ => text,
    }
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

fn write_node(text: &mut String, node: &Node, number: u32, indexed: &IndexedGraph, unknown: Unknown) -> Result<()> {
    let for_mxnet = unknown != Unknown::Named;
    let in_mxnet = node.op().and_then(|op| op.get::<MxnetName>(MXNET_NAME));
    text.push_str("    {\"op\": ");
    match &in_mxnet {
        Some(name) if for_mxnet => string(text, &name.0),
        _ => string(text, node.op_name()),
    }
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
            // The name of an attribute of MXNet's tells its kind: a text needs no quotes to be told from a number.
            string(text, &if in_mxnet.is_some() { unquoted(value) } else { value.to_string() });
            comma = ", ";
        }
        for (key, value) in &texts {
            text.push_str(comma);
            string(text, key);
            text.push_str(": ");
            string(text, &if for_mxnet { noted_for_mxnet(key, value.clone(), unknown) } else { value.clone() });
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
