//! Groups: an attribute of a group is one of each member, later ones too.

use super::{Op, RuleError};
use crate::error::{GraphError, Result};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A group's effect on each of its members.
pub type Trigger = Arc<dyn Fn(&Arc<Op>) -> Result<(), RuleError> + Send + Sync>;

#[derive(Default)]
struct State {
    members: Vec<Arc<Op>>,
    triggers: Vec<Trigger>,
}

/// Ops that share attributes.
pub struct Group {
    name: Arc<str>,
    state: Mutex<State>,
}

impl Group {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.into(), state: Mutex::default() }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The members, in their order of arrival.
    #[must_use]
    pub fn members(&self) -> Vec<Arc<Op>> {
        self.lock().members.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does this to each member, and to each that is included later.
    ///
    /// # Errors
    ///
    /// If it fails for a member; then it is not done to later ones.
    pub fn add_trigger(&self, trigger: &Trigger) -> Result<()> {
        let members = {
            let mut state = self.lock();
            state.triggers.push(trigger.clone());
            state.members.clone()
        };
        let done = members.iter().try_for_each(|op| self.pull(trigger, op));
        if done.is_err() {
            self.lock().triggers.retain(|known| !Arc::ptr_eq(known, trigger));
        }
        done
    }

    /// Makes an op a member, once.
    ///
    /// # Errors
    ///
    /// If a trigger fails; then the op is no member.
    pub fn include(&self, op: &Arc<Op>) -> Result<()> {
        let triggers = {
            let mut state = self.lock();
            if state.members.iter().any(|known| Arc::ptr_eq(known, op)) {
                return Ok(());
            }
            state.members.push(op.clone());
            state.triggers.clone()
        };
        let done = triggers.iter().try_for_each(|trigger| self.pull(trigger, op));
        if done.is_err() {
            self.lock().members.retain(|known| !Arc::ptr_eq(known, op));
        }
        done
    }

    fn pull(&self, trigger: &Trigger, op: &Arc<Op>) -> Result<()> {
        let context = || format!("group '{}', op '{}'", self.name, op.name());
        trigger(op).map_err(|source| GraphError::Rule { context: context(), source, place: 0, of_shapes: false })
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("name", &self.name).finish_non_exhaustive()
    }
}
