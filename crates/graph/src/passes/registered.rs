//! Passes by name, with their requirements and their results.

use super::infer_shape::{SHAPE, Shapes};
use super::infer_type::{DTYPE, DTypes};
use super::place_device::{DEVICE, Devices};
use super::{correct_layout, infer_shape, infer_type, plan_memory};
use crate::error::{GraphError, Result};
use crate::graph::{AnyAttribute, Graph};
use crate::registry::RuleError;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The function of a pass.
pub type Body = Arc<dyn Fn(&Graph) -> Result<Graph, RuleError> + Send + Sync>;

/// A pass: from a graph to a graph.
#[derive(Clone)]
pub struct Pass {
    /// Its name.
    pub name: Arc<str>,
    /// What it does.
    pub body: Body,
    /// Whether it returns another graph, rather than the same one with more attributes.
    pub change_graph: bool,
    /// Attributes of the graph that must be there, and be of the right kind.
    pub requires: Vec<String>,
    /// Attributes of the graph that it leaves.
    pub provides: Vec<String>,
    /// Attributes that each op of the graph must have.
    pub op_attributes: Vec<String>,
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Whether an attribute is of the kind that passes make of this name; any kind is right where no pass of this crate does.
#[must_use]
fn is_of_kind(name: &str, value: &AnyAttribute) -> bool {
    match name {
        SHAPE => value.is::<Shapes>(),
        DTYPE => value.is::<DTypes>(),
        DEVICE | correct_layout::LAYOUT => value.is::<Devices>(),
        plan_memory::STORAGE_ID
        | plan_memory::STORAGE_OFFSET
        | plan_memory::STORAGE_INPLACE_INDEX
        | plan_memory::PLANNED_ORDER => value.is::<Vec<i64>>(),
        infer_shape::NUM_UNKNOWN_SHAPES
        | infer_type::NUM_UNKNOWN_TYPES
        | plan_memory::STORAGE_ALLOCATED_BYTES
        | plan_memory::STORAGE_PEAK_LIVE_BYTES => value.is::<usize>(),
        _ => true,
    }
}

/// Passes by name.
#[derive(Default)]
pub struct Passes(RwLock<BTreeMap<Arc<str>, Pass>>);

impl Passes {
    /// The passes of this process, among them those of this crate that take nothing but a graph.
    #[must_use]
    pub fn global() -> &'static Self {
        static PASSES: OnceLock<Passes> = OnceLock::new();
        PASSES.get_or_init(super::own::own)
    }

    /// Adds a pass.
    ///
    /// # Errors
    ///
    /// If the name is taken.
    pub fn register(&self, pass: Pass) -> Result<()> {
        let mut passes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if passes.contains_key(&pass.name) {
            return Err(GraphError::new(format!(
                "a pass named '{}' is registered already: choose another name",
                pass.name
            )));
        }
        passes.insert(pass.name.clone(), pass);
        Ok(())
    }

    /// Adds a pass in place of one of that name.
    pub(super) fn add(&self, pass: Pass) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(pass.name.clone(), pass);
    }

    /// The pass of this name.
    pub fn find(&self, name: &str) -> Result<Pass> {
        let passes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        passes.get(name).cloned().ok_or_else(|| {
            let known: Vec<_> = passes.keys().map(|name| &**name).collect();
            GraphError::new(format!("no pass is named '{name}': there are {}", known.join(", ")))
        })
    }

    /// The names of all passes, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// The pass that leaves this attribute, if one is known.
    fn provider(&self, attribute: &str) -> Option<Arc<str>> {
        let passes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        passes.values().find(|pass| pass.provides.iter().any(|each| each == attribute)).map(|pass| pass.name.clone())
    }

    /// Applies the pass of this name, if the graph has the required attributes, of the right kind.
    ///
    /// # Errors
    ///
    /// If it has not: the message names the pass that provides it. Or if the pass fails, or does not leave the
    /// attributes that it provides.
    pub fn apply(&self, graph: &Graph, name: &str) -> Result<Graph> {
        let pass = self.find(name)?;
        for attribute in &pass.requires {
            let help = || match self.provider(attribute) {
                Some(provider) => format!("apply the pass '{provider}' first"),
                None => "no pass that is registered provides it".to_owned(),
            };
            match graph.attribute(attribute) {
                None => {
                    let help = help();
                    return Err(GraphError::new(format!(
                        "pass '{name}' requires the attribute '{attribute}' of the graph, which is not there: {help}"
                    )));
                }
                Some(value) if !is_of_kind(attribute, value) => {
                    let help = help();
                    return Err(GraphError::new(format!(
                        "pass '{name}' requires the attribute '{attribute}' of the graph, and what is there is of another kind: {help}"
                    )));
                }
                Some(_) => {}
            }
        }
        if !pass.op_attributes.is_empty() {
            for node in graph.indexed()?.nodes() {
                let Some(op) = node.op() else { continue };
                if let Some(missing) = pass.op_attributes.iter().find(|key| !op.has(key)) {
                    let help = format!("give it one by set_attribute('{missing}', ...)");
                    return Err(node.error(format!("pass '{name}' requires ops to have '{missing}': {help}")));
                }
            }
        }
        let result = (pass.body)(graph).map_err(|source| match source.downcast::<GraphError>() {
            Ok(own) => *own,
            Err(source) => GraphError::Rule { context: format!("pass '{name}'"), source, place: 0, of_shapes: false },
        })?;
        if let Some(missing) = pass.provides.iter().find(|each| result.attribute(each).is_none()) {
            return Err(GraphError::new(format!("pass '{name}' says that it provides '{missing}', and did not")));
        }
        if !pass.change_graph && result.outputs() != graph.outputs() {
            return Err(GraphError::new(format!("pass '{name}' says that it leaves the graph as it is, and did not")));
        }
        Ok(result)
    }
}
