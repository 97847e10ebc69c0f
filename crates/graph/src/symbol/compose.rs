//! Composition: a call on symbols, and a symbol in the place of variables.

use super::{Inputs, Symbol};
use crate::error::{GraphError, Result};
use crate::node::{Node, NodeEntry, NodeRef, Rewriter, SetInputAttribute, post_order};
use crate::registry::Op;
use crate::value::Attributes;
use std::collections::HashMap;
use std::sync::Arc;

/// The arguments of a symbol's call.
#[derive(Debug, Default)]
pub struct Arguments {
    /// In the order of inputs.
    pub positional: Vec<Symbol>,
    /// By the names of inputs.
    pub keyword: Vec<(Arc<str>, Symbol)>,
}

impl Symbol {
    /// Composes a call of an op. An input that is not given becomes a variable `<name>_<input>`.
    ///
    /// # Errors
    ///
    /// If an argument has several outputs, comes twice, or belongs to no input.
    pub fn call(
        op: &Arc<Op>,
        name: &Arc<str>,
        attributes: Attributes,
        arguments: &Arguments,
        place: u64,
    ) -> Result<Self> {
        op.check_attributes(name, &attributes)?;
        let mut inputs = inputs_of(op, name, &attributes, arguments)?;
        version(&mut inputs);
        let mutates = op.mutates(&attributes)?;
        let visible = u32::try_from(op.visible_outputs(&attributes)?).unwrap_or(u32::MAX);
        let node = Node::call(op.clone(), name.clone(), attributes, inputs)?.at(place);
        count(&node, &mutates);
        Ok(Self::of_node(&Arc::new(node), visible))
    }

    /// A call without its inputs, which come later by `composed`.
    pub fn atom(op: &Arc<Op>, name: &Arc<str>, attributes: Attributes, place: u64) -> Result<Self> {
        let visible = u32::try_from(op.visible_outputs(&attributes)?).unwrap_or(u32::MAX);
        Ok(Self::of_node(&Arc::new(Node::atom(op.clone(), name.clone(), attributes)?.at(place)), visible))
    }

    /// This symbol with arguments in the place of its variables, or of its inputs if it is an atom. `name` is then the
    /// node's.
    ///
    /// # Errors
    ///
    /// As for `call`; the symbol itself never changes.
    pub fn composed(&self, name: Option<&Arc<str>>, arguments: &Arguments) -> Result<Self> {
        if self.is_atom()?
            && let Some(atom) = self.head()
            && let Some(op) = atom.op()
        {
            let name = name.unwrap_or(atom.name());
            let mut inputs = inputs_of(op, name, atom.attributes(), arguments)?;
            let wanted = op.num_inputs(atom.attributes())?;
            if wanted.is_some_and(|wanted| wanted != inputs.len()) {
                return Err(arity(op, name, wanted, inputs.len()));
            }
            version(&mut inputs);
            let mutates = op.mutates(atom.attributes())?;
            let node = Arc::new(atom.rebuilt(inputs, atom.control().to_vec()).renamed(name.clone()));
            count(&node, &mutates);
            let outputs = self.outputs.iter().map(|entry| NodeEntry { node: node.clone(), ..*entry });
            return Ok(Self::new(outputs.collect()));
        }
        self.substituted(arguments)
    }

    fn substituted(&self, arguments: &Arguments) -> Result<Self> {
        let variables = self.inputs(Inputs::All)?;
        let mut given: HashMap<usize, &Symbol> = HashMap::new();
        if arguments.positional.len() > variables.len() {
            return Err(GraphError::new(format!(
                "the symbol has {} variables, and {} symbols were given: {}",
                variables.len(),
                arguments.positional.len(),
                listed(&variables)
            )));
        }
        for (variable, symbol) in variables.iter().zip(&arguments.positional) {
            given.insert(Arc::as_ptr(variable).addr(), symbol);
        }
        for (name, symbol) in &arguments.keyword {
            let mut found = variables.iter().filter(|variable| variable.name() == name).peekable();
            if found.peek().is_none() {
                return Err(GraphError::new(format!(
                    "no variable is named '{name}': there are {}",
                    listed(&variables)
                )));
            }
            for variable in found {
                if given.insert(Arc::as_ptr(variable).addr(), symbol).is_some() {
                    return Err(GraphError::new(format!("variable '{name}' is given twice, by position and by name")));
                }
            }
        }
        let mut rewriter = Rewriter::default();
        for node in post_order(&self.outputs) {
            match given.get(&Arc::as_ptr(&node).addr()) {
                Some(symbol) => rewriter.replace(&NodeEntry::new(node, 0), symbol.single()?.clone()),
                None => drop(rewriter.follow(&node)),
            }
        }
        Ok(Self::new(self.outputs.iter().map(|entry| rewriter.entry(entry)).collect()))
    }
}

/// States the versions of taken values.
fn version(inputs: &mut [NodeEntry]) {
    for entry in inputs {
        entry.version = entry.node.version();
    }
}

/// Counts a call's mutations: once it is made, as a refused call mutates nothing.
fn count(node: &Node, mutates: &[usize]) {
    mutates.iter().filter_map(|&at| node.inputs().get(at)).for_each(|entry| entry.node.mutate());
}

fn listed(variables: &[NodeRef]) -> String {
    variables.iter().map(|variable| &**variable.name()).collect::<Vec<_>>().join(", ")
}

fn arity(op: &Op, name: &str, wanted: Option<usize>, given: usize) -> GraphError {
    let wanted = wanted.map_or_else(|| "any number of".into(), |count| count.to_string());
    GraphError::new(format!("node '{name}': op '{}' takes {wanted} inputs, and {given} were given", op.name()))
}

fn inputs_of(op: &Arc<Op>, name: &Arc<str>, attributes: &Attributes, arguments: &Arguments) -> Result<Vec<NodeEntry>> {
    let within = |error: GraphError| match error {
        GraphError::Graph { message, place } => {
            GraphError::Graph { message: format!("node '{name}' (op '{}'): {message}", op.name()), place }
        }
        other => other,
    };
    let mut inputs = Vec::with_capacity(arguments.positional.len());
    for symbol in &arguments.positional {
        let entry = symbol.single().map_err(within)?;
        entry.node.check_complete()?;
        inputs.push(entry.clone());
    }
    let wanted = op.num_inputs(attributes).map_err(|error| error.of_node(name))?;
    if wanted == Some(inputs.len()) && arguments.keyword.is_empty() {
        return Ok(inputs);
    }
    if wanted.is_some_and(|wanted| inputs.len() > wanted) {
        return Err(arity(op, name, wanted, inputs.len()));
    }
    let positional = inputs.len();
    let count = wanted.unwrap_or(positional + arguments.keyword.len());
    let names = op.input_names(attributes, count)?;
    let mut slots: Vec<Option<NodeEntry>> =
        inputs.into_iter().map(Some).chain(std::iter::repeat(None)).take(count).collect();
    for (keyword, symbol) in &arguments.keyword {
        let Some(at) = names.iter().position(|known| known == keyword) else {
            return Err(GraphError::new(format!(
                "node '{name}': op '{}' has no input and no attribute '{keyword}': its inputs are {}",
                op.name(),
                names.join(", ")
            )));
        };
        if slots[at].is_some() {
            return Err(GraphError::new(format!(
                "node '{name}': input '{keyword}' of op '{}' is given twice, by position and by name",
                op.name()
            )));
        }
        slots[at] = Some(symbol.single().map_err(within)?.clone());
    }
    let note = op.get::<SetInputAttribute>("set_input_attribute");
    let mut inputs = Vec::with_capacity(count);
    for (at, slot) in slots.into_iter().enumerate() {
        inputs.push(if let Some(entry) = slot {
            entry
        } else {
            let variable = Arc::new(Node::variable(&format!("{name}_{}", names[at])));
            if let Some(note) = &note {
                note(attributes, &variable, at).map_err(|source| GraphError::Rule {
                    context: format!("node '{name}' (op '{}'), input '{}'", op.name(), names[at]),
                    source,
                    place: 0,
                    of_shapes: false,
                })?;
            }
            NodeEntry::new(variable, 0)
        });
    }
    Ok(inputs)
}
