//! A graph from JSON. The file may say anything: what it says is checked before it is used.

use super::old;
use super::tree::{Json, Object};
use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::node::{Node, NodeEntry, NodeRef, ordered};
use crate::registry::{Op, Registry, TextRule};
use crate::value::{Attributes, DType, Value, parse};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Results that a node of an unknown op may have: more is damage.
const MOST_RESULTS: u32 = 1 << 16;

/// Who wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// This crate.
    Weft,
    /// `MXNet`, of this version: 800 is 0.8, or before.
    Mxnet(u64),
    /// Somebody who does not say.
    Unknown,
}

/// Finds ops by the names that a file has, which mean what its writer means by them.
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

struct Read<'a> {
    op: &'a str,
    name: Arc<str>,
    items: Vec<old::Item>,
    /// What people noted, where a file keeps that apart from the attributes of the call.
    noted: Vec<old::Item>,
    inputs: Vec<(usize, u32, u32)>,
    control: Vec<usize>,
    subgraphs: Option<Arc<str>>,
}

/// Reads a graph.
///
/// # Errors
///
/// If the text is no JSON, or no graph; the message names the node.
pub fn load(text: &str, options: LoadOptions<'_>) -> Result<Graph> {
    let json: Json<'_> = serde_json::from_str(text).map_err(|error| {
        GraphError::new(format!("this is no graph: {error} (line {}, column {})", error.line(), error.column()))
    })?;
    let Json::Object(file) = &json else { return Err(GraphError::new("this is no graph: JSON without 'nodes'")) };
    let nodes = array(file, "nodes", Owner::Part("the graph"))?;
    let read: Vec<Read<'_>> =
        nodes.iter().enumerate().map(|(at, node)| read_node(node, at, nodes.len())).collect::<Result<_>>()?;
    let heads = match file.get("heads") {
        Some(_) => array(file, "heads", Owner::Part("the graph"))?,
        None => return Err(GraphError::new("the graph has no 'heads': which values it computes is not known")),
    };
    let heads = heads
        .iter()
        .map(|head| entry(head, nodes.len(), Owner::Part("the list of heads")))
        .collect::<Result<Vec<_>>>()?;
    check_counts(file, nodes.len())?;
    build(&read, &heads, writer(file, nodes)?, options)
}

fn build(read: &[Read<'_>], heads: &[(usize, u32, u32)], writer: Writer, options: LoadOptions<'_>) -> Result<Graph> {
    let is_old = !matches!(writer, Writer::Weft | Writer::Mxnet(20_000..));
    let before: Vec<Vec<usize>> = read
        .iter()
        .map(|node| node.inputs.iter().map(|input| input.0).chain(node.control.iter().copied()).collect())
        .collect();
    let order = ordered(&before)
        .map_err(|at| GraphError::new(format!("the graph has a cycle: node '{}' rests on itself", read[at].name)))?;
    let mut used = vec![1_u32; read.len()];
    for &(node, index, _) in read.iter().flat_map(|node| &node.inputs).chain(heads) {
        if index >= MOST_RESULTS {
            return Err(GraphError::new(format!(
                "result {index} of node '{}' is used: no op has so many",
                read[node].name
            )));
        }
        used[node] = used[node].max(index + 1);
    }
    let mut made: Vec<Option<NodeRef>> = vec![None; read.len()];
    let mut unknown: HashMap<&str, Arc<Op>> = HashMap::new();
    let mut known: HashMap<&str, Option<Arc<Op>>> = HashMap::new();
    let mut parsed = Parsed::new();
    for at in order {
        let source = &read[at];
        let find = |made: &[Option<NodeRef>], &(node, index, version): &(usize, u32, u32)| {
            let node = made[node].clone().ok_or_else(|| GraphError::new("the graph has a cycle"))?;
            Ok::<_, GraphError>(NodeEntry { node, index, version })
        };
        let inputs: Vec<NodeEntry> = source.inputs.iter().map(|input| find(&made, input)).collect::<Result<_>>()?;
        inputs.iter().try_for_each(|entry| check_index(&entry.node, entry.index))?;
        let control = source
            .control
            .iter()
            .map(|&each| find(&made, &(each, 0, 0)).map(|entry| entry.node))
            .collect::<Result<_>>()?;
        let mut items = source.items.clone();
        let (mut own, mut for_inputs) = if is_old { old::notes(&mut items) } else { Default::default() };
        if !source.noted.is_empty() {
            let mut noted = source.noted.clone();
            let (more, others) = old::notes(&mut noted);
            own.extend(more);
            for_inputs.extend(others);
            own.extend(noted.into_iter().map(|(key, text)| (old::spelled(&key), text)));
        }
        if is_old {
            items.retain_mut(|(key, text)| {
                if &**key != "__shape__" {
                    return true;
                }
                old::shape(text).is_some_and(|now| {
                    *text = now.into();
                    true
                })
            });
        }
        let node = if source.op == "null" {
            if !inputs.is_empty() {
                return Err(GraphError::new(format!("node '{}' is a variable and has inputs", source.name)));
            }
            let node = Node::variable(&source.name);
            items.iter().for_each(|(key, text)| node.set_text(key, text));
            node
        } else {
            let op = match known.get(source.op) {
                Some(op) => op.clone(),
                None => known.entry(source.op).or_insert((options.find)(source.op, writer)?).clone(),
            };
            if let Some(op) = op {
                call(op, source, items, inputs, used[at], writer, &mut parsed)?
            } else {
                let op = unknown.entry(source.op).or_insert_with(|| Op::unknown(source.op)).clone();
                let node = Node::unknown(op, source.name.clone(), inputs, used[at]);
                items.iter().for_each(|(key, text)| node.set_text(key, text));
                node
            }
        };
        own.iter().for_each(|(key, text)| node.set_text(key, text));
        note_inputs(&node, for_inputs)?;
        made[at] = Some(Arc::new(node.after(control).with_subgraphs(source.subgraphs.clone())));
    }
    let outputs = heads.iter().map(|&(node, index, version)| {
        let node = made[node].clone().ok_or_else(|| GraphError::new("the graph has a cycle"))?;
        check_index(&node, index)?;
        Ok(NodeEntry { node, index, version })
    });
    Ok(Graph::new(outputs.collect::<Result<_>>()?))
}

fn check_index(node: &Node, index: u32) -> Result<()> {
    if index < node.outputs() {
        return Ok(());
    }
    let count = node.outputs();
    Err(GraphError::new(format!("{} has {count} results, and result {index} is used", node.described())))
}

/// Attributes by op and texts: many calls have the same.
type Parsed = HashMap<(usize, Vec<old::Item>), Attributes>;

fn call(
    op: Arc<Op>,
    source: &Read<'_>,
    items: Vec<old::Item>,
    mut inputs: Vec<NodeEntry>,
    used: u32,
    writer: Writer,
    parsed: &mut Parsed,
) -> Result<Node> {
    let (notes, given): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|(key, _)| key.len() > 4 && key.starts_with("__") && key.ends_with("__"));
    let key = (Arc::as_ptr(&op).addr(), given);
    let known = parsed.get(&key).cloned();
    let attributes = match (known, op.get::<TextRule>("parse")) {
        (Some(known), _) => known,
        (None, Some(rule)) => rule(&key.1).map_err(|error| GraphError::Rule {
            context: format!("node '{}' (op '{}')", source.name, op.name()),
            source: error,
            place: 0,
            of_shapes: false,
        })?,
        (None, None) => attributes_of_texts(key.1.clone()),
    };
    parsed.entry(key).or_insert_with(|| attributes.clone());
    if matches!(writer, Writer::Mxnet(..900)) {
        old::complete(&op, &source.name, &attributes, &mut inputs)?;
    }
    let node = Node::call(op, source.name.clone(), attributes, inputs)?;
    if used > node.outputs() {
        check_index(&node, used - 1)?;
    }
    notes.iter().for_each(|(key, text)| node.set_text(key, text));
    // Who composes on with what it mutates takes the next version.
    for entry in node.mutates()?.into_iter().filter_map(|at| node.inputs().get(at)) {
        entry.node.mutate_to(entry.version.saturating_add(1));
    }
    Ok(node)
}

/// Attributes from texts as values are written; what an op has no rule for is read so.
pub(crate) fn attributes_of_texts(items: Vec<(Arc<str>, Arc<str>)>) -> Attributes {
    Attributes::new(items.into_iter().map(|(key, text)| {
        let dtype = if &*key == "dtype" { DType::named(&text) } else { None };
        (key, dtype.map_or_else(|| parse(&text), Value::DType))
    }))
}

fn note_inputs(node: &Node, notes: old::ForInputs) -> Result<()> {
    for (input, key, text) in notes {
        let names = node.input_names()?;
        let at = names.iter().position(|name| **name == *input).or_else(|| {
            let wanted = format!("_{input}");
            node.inputs().iter().position(|entry| entry.node.name().ends_with(&wanted))
        });
        match at.and_then(|at| node.inputs().get(at)) {
            Some(entry) if entry.node.is_variable() => entry.node.set_text(&key, &text),
            _ => node.set_text(&format!("__{input}_{}__", key.trim_matches('_')), &text),
        }
    }
    Ok(())
}

/// Of what a message speaks.
#[derive(Clone, Copy)]
enum Owner<'a> {
    Node(usize, &'a str),
    Part(&'static str),
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(at, name) => write!(f, "node {at} ('{name}')"),
            Self::Part(name) => f.write_str(name),
        }
    }
}

fn array<'j, 'a>(object: &'j Object<'a>, key: &str, owner: Owner<'_>) -> Result<&'j [Json<'a>]> {
    match object.get(key) {
        Some(Json::List(values)) => Ok(values),
        Some(_) => Err(GraphError::new(format!("{owner}: '{key}' is no list"))),
        None => Err(GraphError::new(format!("{owner} has no '{key}'"))),
    }
}

fn number(value: &Json<'_>, below: usize, owner: Owner<'_>) -> Result<usize> {
    let found = value.as_u64().and_then(|number| usize::try_from(number).ok());
    match found {
        Some(number) if number < below => Ok(number),
        _ => Err(GraphError::new(format!(
            "{owner} names node {value}: the graph has nodes 0 to {}",
            below.saturating_sub(1)
        ))),
    }
}

fn small(value: &Json<'_>, owner: Owner<'_>) -> Result<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok()).ok_or_else(|| {
        GraphError::new(format!("{owner} has {value} where the number of a result, or a version, belongs"))
    })
}

/// An entry of two or three numbers.
fn entry(value: &Json<'_>, count: usize, owner: Owner<'_>) -> Result<(usize, u32, u32)> {
    match value.as_list() {
        Some([node, index]) => Ok((number(node, count, owner)?, small(index, owner)?, 0)),
        Some([node, index, version]) => Ok((number(node, count, owner)?, small(index, owner)?, small(version, owner)?)),
        _ => Err(GraphError::new(format!("{owner} has {value} where [node, result, version] belongs"))),
    }
}

fn read_node<'j>(value: &'j Json<'_>, at: usize, count: usize) -> Result<Read<'j>> {
    let Json::Object(node) = value else { return Err(GraphError::new(format!("node {at} is no object"))) };
    let text = |key: &str| match node.get(key) {
        Some(Json::Text(text)) => Ok(&**text),
        Some(_) => Err(GraphError::new(format!("node {at}: '{key}' is no text"))),
        None => Err(GraphError::new(format!("node {at} has no '{key}'"))),
    };
    let (op, name) = (text("op")?, text("name")?);
    let owner = Owner::Node(at, name);
    let (mut items, mut noted) = (Vec::new(), Vec::new());
    let apart = op != "null" && node.get("param").is_some();
    for key in ["param", "attr", "attrs"] {
        match node.get(key) {
            Some(Json::Object(found)) => {
                let list = if apart && key != "param" { &mut noted } else { &mut items };
                list.extend(found.iter().map(|(key, value)| (Arc::from(key), as_text(value))));
            }
            Some(Json::Null) | None => {}
            Some(_) => return Err(GraphError::new(format!("{owner}: '{key}' is no object"))),
        }
    }
    let inputs = match node.get("inputs") {
        Some(_) => {
            array(node, "inputs", owner)?.iter().map(|input| entry(input, count, owner)).collect::<Result<_>>()?
        }
        None if op == "null" => Vec::new(),
        None => return Err(GraphError::new(format!("{owner} has no 'inputs'"))),
    };
    let control = match node.get("control_deps") {
        Some(_) => {
            array(node, "control_deps", owner)?.iter().map(|each| number(each, count, owner)).collect::<Result<_>>()?
        }
        None => Vec::new(),
    };
    let subgraphs = match node.get("subgraphs") {
        Some(found @ Json::List(_)) => Some(found.to_string().into()),
        Some(_) => return Err(GraphError::new(format!("{owner}: 'subgraphs' is no list"))),
        None => None,
    };
    Ok(Read { op, name: name.into(), items, noted, inputs, control, subgraphs })
}

/// The text of an attribute; what is no text is taken as Python would write it.
fn as_text(value: &Json<'_>) -> Arc<str> {
    match value {
        Json::Text(text) => (&**text).into(),
        Json::Bool(value) => Value::Bool(*value).to_string().into(),
        Json::Null => "None".into(),
        other => other.to_string().into(),
    }
}

/// Checks the lists that follow from the nodes, where the file has them.
fn check_counts(file: &Object<'_>, count: usize) -> Result<()> {
    if file.get("arg_nodes").is_some() {
        for each in array(file, "arg_nodes", Owner::Part("the graph"))? {
            number(each, count, Owner::Part("the list of arguments"))?;
        }
    }
    if file.get("node_row_ptr").is_some() {
        let starts = array(file, "node_row_ptr", Owner::Part("the graph"))?;
        if starts.len() != count + 1 || starts.iter().any(|each| each.as_u64().is_none()) {
            return Err(GraphError::new(format!(
                "'node_row_ptr' does not fit {count} nodes: it wants {} counts",
                count + 1
            )));
        }
    }
    Ok(())
}

/// Who wrote the file. `MXNet` says its version since 0.9; before, nodes said which one they are the gradient of.
fn writer(file: &Object<'_>, nodes: &[Json<'_>]) -> Result<Writer> {
    let attributes = match file.get("attrs") {
        Some(Json::Object(attributes)) => Some(attributes),
        Some(Json::Null) | None => None,
        Some(_) => return Err(GraphError::new("the graph: 'attrs' is no object")),
    };
    if attributes.is_some_and(|attributes| attributes.get("weft_version").is_some()) {
        return Ok(Writer::Weft);
    }
    let version = attributes.and_then(|attributes| attributes.get("mxnet_version")?.as_list()?.get(1)?.as_u64());
    let is_first = |node: &Json<'_>| match node {
        Json::Object(node) => node.get("param").is_some() || node.get("backward_source_id").is_some(),
        _ => false,
    };
    Ok(match version {
        Some(version) => Writer::Mxnet(version),
        None if nodes.iter().any(is_first) => Writer::Mxnet(800),
        None => Writer::Unknown,
    })
}
