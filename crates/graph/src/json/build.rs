//! Nodes from the rows of a file.

use super::file::{Nodes, Pair, Row};
use super::links::Link;
use super::load::{LoadOptions, Writer};
use super::old;
use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::node::{Node, NodeEntry, NodeRef, is_note, noted, topological_order};
use crate::registry::{Op, TextRule};
use crate::value::{Attributes, DType, Value, parse};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Results that a node of an unknown op may have: more is damage.
const MOST_RESULTS: u32 = 1 << 16;

/// The meaning of an op's name.
#[derive(Clone)]
enum Callee {
    Variable,
    Known(Arc<Op>),
    Unknown(Arc<Op>),
}

/// The meaning of a node's texts for its op. Many nodes say the same.
struct Meaning {
    attributes: Attributes,
    /// The notes on the node.
    notes: Vec<old::Item>,
    for_inputs: old::ForInputs,
}

/// The number of an op, and texts.
type Said<'f, 'a> = (u32, [&'f [Pair<'a>]; 3]);

/// Makes a graph of the nodes of a file.
pub(super) struct Builder<'f, 'a> {
    nodes: &'f Nodes<'a>,
    writer: Writer,
    /// The library that gave the file its names of ops.
    names_of: Writer,
    /// Whether shapes are NumPy's, whatever the version.
    is_np_shape: bool,
    options: LoadOptions<'f>,
    /// By number, as they are asked for.
    ops: Vec<Option<Callee>>,
    meanings: HashMap<Said<'f, 'a>, Rc<Meaning>>,
    made: Vec<Option<NodeRef>>,
}

impl<'f, 'a> Builder<'f, 'a> {
    pub(super) fn new(
        nodes: &'f Nodes<'a>,
        writer: Writer,
        names_of: Writer,
        is_np_shape: bool,
        options: LoadOptions<'f>,
    ) -> Self {
        let (ops, made) = (vec![None; nodes.ops.len()], vec![None; nodes.rows.len()]);
        Self { nodes, writer, names_of, is_np_shape, options, ops, meanings: HashMap::new(), made }
    }

    pub(super) fn build(mut self, heads: &[Link]) -> Result<Graph> {
        let order = self.order()?;
        let used = self.used(heads)?;
        for at in order {
            let node = self.node(&self.nodes.rows[at], used[at])?;
            self.made[at] = Some(Arc::new(node));
        }
        Ok(Graph::new(heads.iter().map(|head| self.entry(head)).collect::<Result<_>>()?))
    }

    /// An order with each node behind those that come before it: the file's where it will do.
    fn order(&self) -> Result<Vec<usize>> {
        let Nodes { rows, inputs, control, .. } = self.nodes;
        let before = |row: &Row| {
            let links = row.inputs.of(&inputs.all).iter().chain(row.control.of(&control.all));
            links.map(|link| link.node as usize)
        };
        if rows.iter().enumerate().all(|(at, row)| before(row).all(|each| each < at)) {
            return Ok((0..rows.len()).collect());
        }
        topological_order(&rows.iter().map(|row| before(row).collect()).collect::<Vec<_>>())
            .map_err(|at| GraphError::new(format!("the graph has a cycle: node '{}' rests on itself", rows[at].name)))
    }

    /// For each node how many of its results are used, or one.
    fn used(&self, heads: &[Link]) -> Result<Vec<u32>> {
        let Nodes { rows, inputs, .. } = self.nodes;
        let mut used = vec![1_u32; rows.len()];
        for &Link { node, index, .. } in rows.iter().flat_map(|row| row.inputs.of(&inputs.all)).chain(heads) {
            let node = node as usize;
            if index >= MOST_RESULTS {
                let name = &rows[node].name;
                return Err(GraphError::new(format!("result {index} of node '{name}' is used: no op has so many")));
            }
            used[node] = used[node].max(index + 1);
        }
        Ok(used)
    }

    fn entry(&self, link: &Link) -> Result<NodeEntry> {
        let node = self.made_at(link)?;
        check_index(&node, link.index)?;
        Ok(NodeEntry { node, index: link.index, version: link.version })
    }

    fn made_at(&self, link: &Link) -> Result<NodeRef> {
        let made = self.made.get(link.node as usize).and_then(Clone::clone);
        made.ok_or_else(|| GraphError::new("the graph has a cycle"))
    }

    fn node(&mut self, row: &'f Row, used: u32) -> Result<Node> {
        let inputs: Vec<NodeEntry> =
            row.inputs.of(&self.nodes.inputs.all).iter().map(|link| self.entry(link)).collect::<Result<_>>()?;
        let control = row.control.of(&self.nodes.control.all).iter().map(|link| self.made_at(link));
        let control = control.collect::<Result<_>>()?;
        let callee = self.callee(row.op)?;
        let meaning = self.meaning(row, &callee)?;
        let node = match callee {
            Callee::Variable => variable(&row.name, &inputs)?,
            Callee::Known(op) => self.call(op, row, &meaning.attributes, inputs, used)?,
            Callee::Unknown(op) => Node::unknown(op, row.name.clone(), inputs, used),
        };
        meaning.notes.iter().for_each(|(key, text)| node.set_text(key, text));
        note_inputs(&node, &meaning.for_inputs)?;
        Ok(node.after(control).with_subgraphs(row.subgraphs.clone()))
    }

    fn callee(&mut self, number: u32) -> Result<Callee> {
        if let Some(known) = &self.ops[number as usize] {
            return Ok(known.clone());
        }
        let name = &*self.nodes.ops[number as usize];
        let found = if name == "null" { None } else { Some((self.options.find)(name, self.names_of)?) };
        let callee = match found {
            None => Callee::Variable,
            Some(Some(op)) => Callee::Known(op),
            Some(None) => Callee::Unknown(Op::unknown(name)),
        };
        self.ops[number as usize] = Some(callee.clone());
        Ok(callee)
    }

    fn meaning(&mut self, row: &Row, callee: &Callee) -> Result<Rc<Meaning>> {
        let said = (row.op, row.texts.map(|span| span.of(&self.nodes.texts)));
        if let Some(known) = self.meanings.get(&said) {
            return Ok(known.clone());
        }
        let meaning = Rc::new(self.read_texts(said.1, callee, &row.name)?);
        self.meanings.insert(said, meaning.clone());
        Ok(meaning)
    }

    fn read_texts(&self, texts: [&[Pair<'_>]; 3], callee: &Callee, name: &str) -> Result<Meaning> {
        let owned = |pairs: &[Pair<'_>]| -> Vec<old::Item> {
            pairs.iter().map(|(key, text)| (Arc::from(&**key), Arc::from(&**text))).collect()
        };
        let [param, attr, attrs] = texts.map(owned);
        // Notes, where a file keeps them apart from the attributes of the call.
        let (mut items, mut apart) = match callee {
            Callee::Known(_) | Callee::Unknown(_) if !param.is_empty() => (param, [attr, attrs].concat()),
            _ => ([param, attr, attrs].concat(), Vec::new()),
        };
        let is_old = !matches!(self.writer, Writer::Weft | Writer::Mxnet(20_000..));
        let (mut own, mut for_inputs) = if is_old { old::notes(&mut items) } else { Default::default() };
        let (more, others) = old::notes(&mut apart);
        own.extend(more);
        for_inputs.extend(others);
        own.extend(apart.into_iter().map(|(key, text)| (noted(&key), text)));
        if !matches!(self.names_of, Writer::Weft) {
            let is_np_shape = self.is_np_shape || matches!(self.names_of, Writer::Mxnet(20_000..));
            items.retain_mut(|(key, text)| {
                if &**key != "__shape__" {
                    return true;
                }
                let now = if is_np_shape { Some(old::numpy_shape(text)) } else { old::shape(text).map(Arc::from) };
                let is_said = now.is_some();
                *text = now.unwrap_or_default();
                is_said
            });
        }
        let (mut notes, attributes) = match callee {
            Callee::Known(op) => {
                let (notes, given): (Vec<_>, Vec<_>) = items.into_iter().partition(|(key, _)| is_note(key));
                (notes, attributes_of(op, given, name)?)
            }
            Callee::Variable | Callee::Unknown(_) => (items, Attributes::default()),
        };
        notes.extend(own);
        Ok(Meaning { attributes, notes, for_inputs })
    }

    fn call(
        &self,
        op: Arc<Op>,
        row: &Row,
        attributes: &Attributes,
        mut inputs: Vec<NodeEntry>,
        used: u32,
    ) -> Result<Node> {
        if matches!(self.writer, Writer::Mxnet(..900)) {
            old::complete(&op, &row.name, attributes, &mut inputs)?;
        }
        let node = Node::call(op, row.name.clone(), attributes.clone(), inputs)?;
        check_index(&node, used - 1)?;
        // A later composition with a mutated input takes its next version.
        for entry in node.mutates()?.into_iter().filter_map(|at| node.inputs().get(at)) {
            entry.node.mutate_to(entry.version.saturating_add(1));
        }
        Ok(node)
    }
}

fn variable(name: &str, inputs: &[NodeEntry]) -> Result<Node> {
    if inputs.is_empty() {
        Ok(Node::variable(name))
    } else {
        Err(GraphError::new(format!("node '{name}' is a variable and has inputs")))
    }
}

fn check_index(node: &Node, index: u32) -> Result<()> {
    if index < node.outputs() {
        return Ok(());
    }
    let count = node.outputs();
    Err(GraphError::new(format!("{} has {count} results, and result {index} is used", node.described())))
}

fn attributes_of(op: &Arc<Op>, given: Vec<old::Item>, name: &str) -> Result<Attributes> {
    match op.get::<TextRule>("parse") {
        None => Ok(attributes_of_texts(given)),
        Some(rule) => rule(&given).map_err(|error| GraphError::Rule {
            context: format!("node '{name}' (op '{}')", op.name()),
            source: error,
            place: 0,
            of_shapes: false,
        }),
    }
}

/// Attributes from texts as values are written, for those that an op has no rule for.
pub(crate) fn attributes_of_texts(items: Vec<(Arc<str>, Arc<str>)>) -> Attributes {
    Attributes::new(items.into_iter().map(|(key, text)| {
        let dtype = if &*key == "dtype" { DType::named(&text) } else { None };
        (key, dtype.map_or_else(|| parse(&text), Value::DType))
    }))
}

fn note_inputs(node: &Node, notes: &old::ForInputs) -> Result<()> {
    for (input, key, text) in notes {
        let names = node.input_names()?;
        let at = names.iter().position(|name| **name == **input).or_else(|| {
            let wanted = format!("_{input}");
            node.inputs().iter().position(|entry| entry.node.name().ends_with(&wanted))
        });
        match at.and_then(|at| node.inputs().get(at)) {
            Some(entry) if entry.node.is_variable() => entry.node.set_text(key, text),
            _ => node.set_text(&format!("__{input}_{}__", key.trim_matches('_')), text),
        }
    }
    Ok(())
}
