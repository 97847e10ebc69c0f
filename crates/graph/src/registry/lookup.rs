//! Ops by their names.

use super::{Group, Op};
use crate::error::{GraphError, Result};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

#[derive(Default)]
struct State {
    /// By name and by alias.
    ops: HashMap<Box<str>, (i32, Arc<Op>)>,
    groups: HashMap<Box<str>, Arc<Group>>,
}

/// All ops, by name and alias, and their groups.
#[derive(Default)]
pub struct Registry(RwLock<State>);

impl Registry {
    /// The registry of this process.
    #[must_use]
    pub fn global() -> &'static Self {
        static REGISTRY: OnceLock<Registry> = OnceLock::new();
        REGISTRY.get_or_init(Self::default)
    }

    /// Registers an op under its name and under others. Of two the one of the higher level counts.
    ///
    /// # Errors
    ///
    /// If a name is taken at this level; then nothing has changed.
    pub fn register(&self, op: &Arc<Op>, aliases: &[&str], level: i32) -> Result<()> {
        let names = || std::iter::once(&**op.name()).chain(aliases.iter().copied());
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = names().find(|&name| state.ops.get(name).is_some_and(|(known, _)| *known == level)) {
            return Err(GraphError::new(format!(
                "an op named '{taken}' is registered at level {level} already: choose another name, or another level for \
                 it to count before or after that one"
            )));
        }
        for name in names() {
            if state.ops.get(name).is_none_or(|(known, _)| *known < level) {
                state.ops.insert(name.into(), (level, op.clone()));
            }
        }
        Ok(())
    }

    /// The op of this name or alias.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<Op>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).ops.get(name).map(|(_, op)| op.clone())
    }

    /// All ops, sorted by name, without their aliases.
    #[must_use]
    pub fn ops(&self) -> Vec<Arc<Op>> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut ops: Vec<_> = state.ops.values().map(|(_, op)| op.clone()).collect();
        drop(state);
        ops.sort_by(|a, b| a.name().cmp(b.name()).then(Arc::as_ptr(a).cmp(&Arc::as_ptr(b))));
        ops.dedup_by(|a, b| Arc::ptr_eq(a, b));
        ops
    }

    /// The group of this name, made if there is none.
    pub fn group(&self, name: &str) -> Arc<Group> {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        state.groups.entry(name.into()).or_insert_with(|| Arc::new(Group::new(name))).clone()
    }

    /// The attribute of this key of each op that has one of type `T`.
    #[must_use]
    pub fn attribute_map<T: Any + Send + Sync>(&self, key: &str) -> Vec<(Arc<Op>, Arc<T>)> {
        self.ops().into_iter().filter_map(|op| op.get(key).map(|value| (op, value))).collect()
    }
}
