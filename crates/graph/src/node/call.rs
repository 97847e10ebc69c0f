//! A node.

use super::{NodeEntry, noted};
use crate::error::{GraphError, Result};
use crate::registry::Op;
use crate::value::Attributes;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A shared node.
pub type NodeRef = Arc<Node>;

type Texts = BTreeMap<Arc<str>, Arc<str>>;

/// A call of an op, or a variable.
///
/// Its computation is fixed when it is made; the notes on it (`texts`) may change.
pub struct Node {
    pub(super) op: Option<Arc<Op>>,
    pub(super) name: Arc<str>,
    pub(super) attributes: Attributes,
    pub(super) inputs: Vec<NodeEntry>,
    pub(super) control: Vec<NodeRef>,
    outputs: u32,
    place: u64,
    texts: RwLock<Option<Box<Texts>>>,
    /// How often composed calls mutate its value, or its results.
    mutations: Mutex<u32>,
    /// Graphs inside the node, in JSON: kept as they were read.
    subgraphs: Option<Arc<str>>,
}

impl Node {
    /// A variable.
    #[must_use]
    pub fn variable(name: &str) -> Self {
        Self::bare(None, name.into(), Attributes::default(), 1)
    }

    /// A call of an op on entries.
    ///
    /// # Errors
    ///
    /// If the op takes another number of inputs, or has no such attributes.
    pub fn call(op: Arc<Op>, name: Arc<str>, attributes: Attributes, inputs: Vec<NodeEntry>) -> Result<Self> {
        if let Some(wanted) = op.num_inputs(&attributes).map_err(|error| error.of_node(&name))?
            && wanted != inputs.len()
        {
            let given = inputs.len();
            return Err(GraphError::new(format!(
                "node '{name}': op '{}' takes {wanted} inputs, and {given} were given",
                op.name()
            )));
        }
        let mut node = Self::atom(op, name, attributes)?;
        node.inputs = inputs;
        Ok(node)
    }

    /// A call with its inputs still to come.
    ///
    /// # Errors
    ///
    /// If the op has no such attributes.
    pub fn atom(op: Arc<Op>, name: Arc<str>, attributes: Attributes) -> Result<Self> {
        op.check_attributes(&name, &attributes)?;
        let outputs = op.num_outputs(&attributes).map_err(|error| error.of_node(&name))?;
        let outputs =
            u32::try_from(outputs).map_err(|_| GraphError::new(format!("node '{name}' has too many outputs")))?;
        Ok(Self::bare(Some(op), name, attributes, outputs))
    }

    /// A call of an op that has no rules, with so many results.
    #[must_use]
    pub fn unknown(op: Arc<Op>, name: Arc<str>, inputs: Vec<NodeEntry>, outputs: u32) -> Self {
        let mut node = Self::bare(Some(op), name, Attributes::default(), outputs);
        node.inputs = inputs;
        node
    }

    fn bare(op: Option<Arc<Op>>, name: Arc<str>, attributes: Attributes, outputs: u32) -> Self {
        Self {
            op,
            name,
            attributes,
            inputs: Vec::new(),
            control: Vec::new(),
            outputs,
            place: 0,
            texts: RwLock::default(),
            mutations: Mutex::default(),
            subgraphs: None,
        }
    }

    /// Refuses a call with inputs still to come.
    pub fn check_complete(&self) -> Result<()> {
        let Some(op) = self.op.as_ref().filter(|op| self.inputs.is_empty() && op.is_registered()) else {
            return Ok(());
        };
        match op.num_inputs(&self.attributes)? {
            None | Some(0) => Ok(()),
            Some(_) => {
                Err(self.error("its inputs are still to come: call the symbol with them, and use what that returns"))
            }
        }
    }

    /// The same call on other inputs and after other nodes, under the same name and with a copy of its texts.
    #[must_use]
    pub fn rebuilt(&self, inputs: Vec<NodeEntry>, control: Vec<NodeRef>) -> Self {
        Self {
            op: self.op.clone(),
            name: self.name.clone(),
            attributes: self.attributes.clone(),
            inputs,
            control,
            outputs: self.outputs,
            place: self.place,
            mutations: Mutex::new(self.version()),
            texts: RwLock::new(self.texts.read().unwrap_or_else(PoisonError::into_inner).clone()),
            subgraphs: self.subgraphs.clone(),
        }
    }

    /// The same under another name.
    #[must_use]
    pub fn renamed(mut self, name: Arc<str>) -> Self {
        self.name = name;
        self
    }

    /// The same with other attributes; None leaves those that it has.
    ///
    /// # Errors
    ///
    /// If the op has no such attributes, or has another number of results with them.
    pub fn with_attributes(mut self, attributes: Option<Attributes>) -> Result<Self> {
        let Some(attributes) = attributes else { return Ok(self) };
        let Some(op) = &self.op else { return Err(self.error("a variable has no attributes of a call")) };
        op.check_attributes(&self.name, &attributes)?;
        let outputs = op.num_outputs(&attributes).map_err(|error| error.of_node(&self.name))?;
        if u32::try_from(outputs).ok() != Some(self.outputs) {
            return Err(self.error("with these attributes it has another number of results"));
        }
        self.attributes = attributes;
        Ok(self)
    }

    /// The same, made at this place.
    #[must_use]
    pub fn at(mut self, place: u64) -> Self {
        self.place = place;
        self
    }

    /// The same, after these nodes.
    #[must_use]
    pub fn after(mut self, control: Vec<NodeRef>) -> Self {
        self.control = control;
        self
    }

    /// The same, with graphs inside, in JSON.
    #[must_use]
    pub fn with_subgraphs(mut self, subgraphs: Option<Arc<str>>) -> Self {
        self.subgraphs = subgraphs;
        self
    }

    /// The op; a variable has none.
    #[must_use]
    pub fn op(&self) -> Option<&Arc<Op>> {
        self.op.as_ref()
    }

    /// The op's name in messages.
    #[must_use]
    pub fn op_name(&self) -> &str {
        self.op.as_ref().map_or("null", |op| op.name())
    }

    /// Whether it is a variable.
    #[must_use]
    pub fn is_variable(&self) -> bool {
        self.op.is_none()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The attributes of the call.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The inputs.
    #[must_use]
    pub fn inputs(&self) -> &[NodeEntry] {
        &self.inputs
    }

    /// The nodes that come before although nothing of theirs is used.
    #[must_use]
    pub fn control(&self) -> &[NodeRef] {
        &self.control
    }

    /// The number of results.
    #[must_use]
    pub fn outputs(&self) -> u32 {
        self.outputs
    }

    /// Where it was made, as its maker numbers places; 0 is nowhere.
    #[must_use]
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Graphs inside the node, in JSON.
    #[must_use]
    pub fn subgraphs(&self) -> Option<&Arc<str>> {
        self.subgraphs.as_ref()
    }

    /// How often calls that were composed mutate this variable, or results of this call.
    #[must_use]
    pub fn version(&self) -> u32 {
        *self.mutations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more mutation.
    pub fn mutate(&self) {
        self.mutate_to(self.version().saturating_add(1));
    }

    /// Notes that there have been so many mutations, or more.
    pub fn mutate_to(&self, version: u32) {
        let mut mutations = self.mutations.lock().unwrap_or_else(PoisonError::into_inner);
        *mutations = version.max(*mutations);
    }

    /// Whether keys of notes have underscores around them here, as beside them files have attributes of the call.
    fn is_among_attributes(&self) -> bool {
        self.op.as_ref().is_some_and(|op| op.is_registered())
    }

    /// The note on the node under this key; a call's key may be given without its underscores.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<Arc<str>> {
        let texts = self.texts.read().unwrap_or_else(PoisonError::into_inner);
        let texts = texts.as_ref()?;
        let found = texts.get(key);
        if found.is_none() && self.is_among_attributes() { texts.get(&noted(key)) } else { found }.cloned()
    }

    /// Notes something on the node. The key of a note on a call gets underscores around it.
    pub fn set_text(&self, key: &str, value: &str) {
        let key = if self.is_among_attributes() { noted(key) } else { key.into() };
        let mut texts = self.texts.write().unwrap_or_else(PoisonError::into_inner);
        texts.get_or_insert_default().insert(key, value.into());
    }

    /// All that is noted on the node, by key.
    #[must_use]
    pub fn texts(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let texts = self.texts.read().unwrap_or_else(PoisonError::into_inner);
        texts.iter().flat_map(|texts| texts.iter().map(|(key, value)| (key.clone(), value.clone()))).collect()
    }

    /// The names of its inputs, as its op has them.
    pub fn input_names(&self) -> Result<Vec<Arc<str>>> {
        match &self.op {
            Some(op) => op.input_names(&self.attributes, self.inputs.len()),
            None => Ok(Vec::new()),
        }
    }

    /// The name of a result: the node's, and for a call the result's behind it.
    pub fn output_name(&self, index: u32) -> Result<String> {
        let Some(op) = &self.op else { return Ok(self.name.to_string()) };
        let names = op.output_names(&self.attributes, self.outputs as usize)?;
        Ok(match names.get(index as usize) {
            Some(name) => format!("{}_{name}", self.name),
            None => format!("{}_output{index}", self.name),
        })
    }

    /// The inputs that say where elements lie, or which are meant.
    pub fn places(&self) -> Result<Vec<usize>> {
        match &self.op {
            Some(op) => op.places(&self.attributes),
            None => Ok(Vec::new()),
        }
    }

    /// The inputs that it changes.
    pub fn mutates(&self) -> Result<Vec<usize>> {
        match &self.op {
            Some(op) => op.mutates(&self.attributes),
            None => Ok(Vec::new()),
        }
    }

    /// An error about this node.
    pub fn error(&self, message: impl Into<String>) -> GraphError {
        GraphError::Graph { message: format!("{}: {}", self.described(), message.into()), place: self.place }
    }

    /// The node as messages name it.
    #[must_use]
    pub fn described(&self) -> String {
        match &self.op {
            Some(op) => format!("node '{}' (op '{}')", self.name, op.name()),
            None => format!("variable '{}'", self.name),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its inputs only by name: a chain may be long.
        let inputs: Vec<_> = self.inputs.iter().map(|entry| &entry.node.name).collect();
        f.debug_struct("Node")
            .field("op", &self.op_name())
            .field("name", &self.name)
            .field("inputs", &inputs)
            .finish_non_exhaustive()
    }
}
