//! Facts about entries, spread forwards and backwards until nothing follows any more.

use crate::error::{GraphError, Result};
use crate::graph::IndexedGraph;
use crate::node::Node;
use crate::registry::{Call, RuleError};
use crate::value::{DType, Shape};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Something that is known of an entry, more or less.
pub(super) trait Fact: Clone + PartialEq + Default {
    /// Its name in messages.
    const KIND: &'static str;
    fn joined(&self, other: &Self) -> Option<Self>;
    fn is_known(&self) -> bool;
    fn text(&self) -> String;
}

impl Fact for Shape {
    const KIND: &'static str = "shape";

    fn joined(&self, other: &Self) -> Option<Self> {
        Shape::joined(self, other)
    }

    fn is_known(&self) -> bool {
        Shape::is_known(self)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Fact for Option<DType> {
    const KIND: &'static str = "dtype";

    fn joined(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (None, _) => Some(*other),
            (_, None) => Some(*self),
            (a, b) => (a == b).then_some(*a),
        }
    }

    fn is_known(&self) -> bool {
        self.is_some()
    }

    fn text(&self) -> String {
        self.map_or_else(|| "?".into(), |dtype| dtype.to_string())
    }
}

/// The question to a rule: the call, and the facts of inputs and outputs, for it to complete.
pub(super) type Ask<'a, F> = dyn FnMut(u32, &Node, &mut [F], &mut [F]) -> Result<(), RuleError> + 'a;

pub(super) struct Spread<'a, F> {
    graph: &'a IndexedGraph,
    pub(super) facts: Vec<F>,
    open: Vec<bool>,
    consumers: (Vec<u32>, Vec<u32>),
}

impl<'a, F: Fact> Spread<'a, F> {
    pub(super) fn new(graph: &'a IndexedGraph, facts: Vec<F>) -> Self {
        let count = graph.nodes().len();
        let mut starts = vec![0_u32; count + 1];
        for input in graph.all_inputs() {
            starts[input.node as usize + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut users = vec![0_u32; graph.all_inputs().len()];
        for node in 0..u32::try_from(count).unwrap_or(u32::MAX) {
            for input in graph.inputs(node) {
                let slot = &mut next[input.node as usize];
                users[*slot as usize] = node;
                *slot += 1;
            }
        }
        let open = graph.nodes().iter().map(|node| !node.is_variable()).collect();
        Self { graph, facts, open, consumers: (starts, users) }
    }

    /// Marks all nodes with results of `node` among their inputs, or outputs.
    pub(super) fn touch(&mut self, node: u32) {
        let (starts, users) = &self.consumers;
        for &user in &users[starts[node as usize] as usize..starts[node as usize + 1] as usize] {
            self.open[user as usize] = true;
        }
        if !self.graph.nodes()[node as usize].is_variable() {
            self.open[node as usize] = true;
        }
    }

    /// Sweeps to and fro until nothing is open.
    pub(super) fn run(&mut self, ask: &mut Ask<'_, F>) -> Result<()> {
        let count = u32::try_from(self.graph.nodes().len()).unwrap_or(u32::MAX);
        let mut forwards = true;
        while self.open.contains(&true) {
            if forwards {
                for node in 0..count {
                    self.visit(node, ask)?;
                }
            } else {
                for node in (0..count).rev() {
                    self.visit(node, ask)?;
                }
            }
            forwards = !forwards;
        }
        Ok(())
    }

    /// Asks the rule of one node, if something about it is new.
    pub(super) fn visit(&mut self, number: u32, ask: &mut Ask<'_, F>) -> Result<()> {
        if !std::mem::take(&mut self.open[number as usize]) {
            return Ok(());
        }
        let graph = self.graph;
        let node = &graph.nodes()[number as usize];
        let mut ins: SmallVec<[F; 4]> =
            graph.inputs(number).iter().map(|&id| self.facts[graph.entry_id(id)].clone()).collect();
        let mut outs: SmallVec<[F; 2]> = self.facts[graph.entries_of(number)].iter().cloned().collect();
        ask(number, node, &mut ins, &mut outs).map_err(|source| GraphError::Rule {
            context: {
                let known: Vec<_> =
                    graph.inputs(number).iter().map(|&id| self.facts[graph.entry_id(id)].text()).collect();
                format!("{}, inputs of {}s {}", node.described(), F::KIND, known.join(", "))
            },
            source,
            place: node.place(),
            of_shapes: true,
        })?;
        let mut changed = false;
        for (at, (&id, new)) in graph.inputs(number).iter().zip(&ins).enumerate() {
            if self.learn(graph.entry_id(id), new, node, || Self::input(node, at))? {
                self.touch(id.node);
                changed = true;
            }
        }
        for (at, new) in outs.iter().enumerate() {
            if self.learn(graph.entries_of(number).start + at, new, node, || format!("output {at}"))? {
                self.touch(number);
                changed = true;
            }
        }
        self.open[number as usize] = changed && !(ins.iter().all(F::is_known) && outs.iter().all(F::is_known));
        Ok(())
    }

    fn input(node: &Node, at: usize) -> String {
        let names = node.input_names().unwrap_or_default();
        let name = names.get(at).map(|name| format!(" '{name}'")).unwrap_or_default();
        format!("input {at}{name} ({})", node.inputs().get(at).map_or("", |entry| entry.node.name()))
    }

    fn learn(&mut self, entry: usize, new: &F, node: &Node, which: impl Fn() -> String) -> Result<bool> {
        let known = &mut self.facts[entry];
        if known == new {
            return Ok(false);
        }
        match known.joined(new) {
            Some(joined) if joined == *known => Ok(false),
            Some(joined) => {
                *known = joined;
                Ok(true)
            }
            None => Err(GraphError::Shape {
                message: format!(
                    "{}, {}: {} {} is known, and the op asks for {}",
                    node.described(),
                    which(),
                    F::KIND,
                    known.text(),
                    new.text()
                ),
                place: node.place(),
            }),
        }
    }
}

/// The facts that a rule hears of a node.
pub(super) fn call_of<'a>(node: &'a Node, shapes: &'a [Shape], dtypes: &'a [Option<DType>]) -> Option<Call<'a>> {
    Some(Call { op: node.op()?, attributes: node.attributes(), shapes, dtypes })
}

/// The error for an op that has no rule.
pub(super) fn no_rule(node: &Node, key: &str, graph: &IndexedGraph) -> RuleError {
    if node.op().is_some_and(|op| op.is_registered()) {
        return format!("op '{}' has no '{key}': give it one by set_attribute", node.op_name()).into();
    }
    let unknown: BTreeSet<&str> = graph
        .nodes()
        .iter()
        .filter(|node| node.op().is_some_and(|op| !op.is_registered()))
        .map(|node| node.op_name())
        .collect();
    let names: Vec<&str> = unknown.into_iter().collect();
    match &names[..] {
        [one] => format!("no op '{one}' is registered: it was only read from a file").into(),
        several => format!("no ops '{}' are registered: they were only read from a file", several.join("', '")).into(),
    }
}
