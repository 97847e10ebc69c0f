//! `PrintGraphIR`: a graph as text, which can be read back.
//!
//! Texts are quoted as Python quotes them: what attributes hold, and names that are no plain words. So each line has one
//! meaning, whatever a text says.

use super::derived::{FUSED, SUBGRAPH};
use super::subgraph::Subgraph;
use crate::error::Result;
use crate::graph::{AnyAttribute, Graph};
use crate::node::Node;
use crate::value::{DType, Shape};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

/// The text of one item of an attribute that this crate does not know.
pub type Item<'a> = dyn Fn(&AnyAttribute, usize) -> Option<String> + 'a;

/// The text of item `at` of an attribute.
#[must_use]
pub fn item(value: &AnyAttribute, at: usize, other: &Item<'_>) -> Option<String> {
    if let Some(shapes) = value.downcast_ref::<Vec<Shape>>() {
        return shapes.get(at).map(ToString::to_string);
    }
    if let Some(dtypes) = value.downcast_ref::<Vec<Option<DType>>>() {
        return dtypes.get(at).map(|dtype| dtype.map_or_else(|| "?".into(), |dtype| dtype.to_string()));
    }
    if let Some(numbers) = value.downcast_ref::<Vec<i64>>() {
        return numbers.get(at).map(ToString::to_string);
    }
    if let Some(texts) = value.downcast_ref::<Vec<Option<Arc<str>>>>() {
        return texts.get(at).map(|text| text.as_deref().unwrap_or("-").to_string());
    }
    other(value, at)
}

/// A text between quotes, on one line.
fn quoted(text: &str) -> String {
    let mut found = String::with_capacity(text.len() + 2);
    found.push('\'');
    for each in text.chars() {
        match each {
            '\'' | '\\' => found.extend(['\\', each]),
            '\n' => found.push_str("\\n"),
            '\r' => found.push_str("\\r"),
            _ => found.push(each),
        }
    }
    found.push('\'');
    found
}

/// A name, between quotes unless it is a plain word.
fn word(name: &str) -> Cow<'_, str> {
    let plain = name.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && name.chars().all(|each| each.is_alphanumeric() || matches!(each, '_' | '.' | ':' | '/' | '-'));
    if plain { Cow::Borrowed(name) } else { Cow::Owned(quoted(name)) }
}

/// Prints a graph, a line for each node, with these attributes of entries and of nodes.
///
/// # Errors
///
/// If the graph has no such attribute.
pub fn print_ir(graph: &Graph, entries: &[&str], nodes: &[&str], other: &Item<'_>) -> Result<String> {
    let mut text = String::new();
    print_into(&mut text, "", graph, entries, nodes, other)?;
    text.push('\n');
    Ok(text)
}

fn print_into(
    text: &mut String,
    margin: &str,
    graph: &Graph,
    entries: &[&str],
    nodes: &[&str],
    other: &Item<'_>,
) -> Result<()> {
    let indexed = graph.indexed()?;
    let find = |name: &&str| match graph.attribute(name) {
        Some(value) => Ok((name.to_string(), value)),
        None => Err(crate::error::GraphError::new(format!("the graph has no attribute '{name}' to print"))),
    };
    let entries: Vec<_> = entries.iter().map(find).collect::<Result<_>>()?;
    let nodes: Vec<_> = nodes.iter().map(find).collect::<Result<_>>()?;
    let variables: Vec<_> =
        indexed.input_nodes().iter().map(|&at| format!("%{}", word(indexed.nodes()[at as usize].name()))).collect();
    let _ = writeln!(text, "Graph({}) {{", variables.join(", "));
    let named = |node: u32, index: u32, version: u32| {
        let source = &indexed.nodes()[node as usize];
        let found = match (source.is_variable(), source.outputs()) {
            (true, _) => format!("%{}", word(source.name())),
            (false, 1) => format!("%{node}"),
            _ => format!("%{node}.{index}"),
        };
        if version == 0 { found } else { format!("{found}@{version}") }
    };
    // Writing to a string does not fail.
    for (number, node) in (0_u32..).zip(indexed.nodes()) {
        if node.is_variable() {
            let _ = write!(text, "{margin}  %{}", word(node.name()));
        } else {
            let inputs: Vec<_> = indexed.inputs(number).iter().map(|id| named(id.node, id.index, id.version)).collect();
            let _ = write!(text, "{margin}  %{number} = {}({})", node.op_name(), inputs.join(", "));
            for (key, value) in node.attributes().iter() {
                match inside(node, key) {
                    Some(graph) => {
                        let _ = write!(text, ", {key}=");
                        print_into(text, &format!("{margin}    "), &graph.graph, &[], &[], other)?;
                    }
                    None => drop(write!(text, ", {}={}", word(key), quoted(&value.to_string()))),
                }
            }
        }
        for (key, value) in node.texts() {
            let _ = write!(text, ", {}={}", word(&key), quoted(&value));
        }
        if !indexed.control(number).is_empty() {
            let before: Vec<_> = indexed.control(number).iter().map(|&each| named(each, 0, 0)).collect();
            let _ = write!(text, ", after=[{}]", before.join(", "));
        }
        for (name, value) in &entries {
            let found: Vec<_> =
                indexed.entries_of(number).map(|at| item(value, at, other).unwrap_or_else(|| "?".into())).collect();
            let _ = match found.as_slice() {
                [one] => write!(text, ", {name}={one}"),
                several => write!(text, ", {name}=[{}]", several.join(", ")),
            };
        }
        for (name, value) in &nodes {
            let _ = write!(text, ", {name}={}", item(value, number as usize, other).unwrap_or_else(|| "?".into()));
        }
        if !node.is_variable() {
            let _ = write!(text, "  # {}", word(node.name()));
        }
        text.push('\n');
    }
    let outputs: Vec<_> = indexed.outputs().iter().map(|id| named(id.node, id.index, id.version)).collect();
    let _ = write!(text, "{margin}  ret {}\n{margin}}}", outputs.join(", "));
    Ok(())
}

/// The graph that an attribute of a call holds, if it does.
fn inside(node: &Node, key: &str) -> Option<Arc<Subgraph>> {
    (key == SUBGRAPH && node.op_name() == FUSED).then(|| Subgraph::of(node.attributes()).ok()).flatten()
}
