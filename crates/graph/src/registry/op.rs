//! One op and its attributes.

use super::rule::Given;
use super::{Argument, RuleError, canonical};
use crate::error::{GraphError, Result};
use crate::value::{Attributes, Value};
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The attribute of a call that has its operands in order, where some are numbers: `Value::Input` stands for an input.
pub const OPERANDS: &str = "operands";

type Anything = Arc<dyn Any + Send + Sync>;

struct Slot {
    level: i32,
    /// The value for passes, by its type.
    value: Anything,
    /// The given object, where a front end has made `value` of it.
    origin: Option<Anything>,
}

#[derive(Default)]
pub(super) struct State {
    slots: HashMap<Box<str>, Slot>,
    pub(super) description: Box<str>,
    pub(super) arguments: Vec<Argument>,
}

/// An op: a name and attributes of any type. The one of the highest level counts.
pub struct Op {
    name: Arc<str>,
    registered: bool,
    state: RwLock<State>,
}

impl Op {
    /// An op that is not found by its name until it is registered.
    #[must_use]
    pub fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), registered: true, state: RwLock::default() })
    }

    /// A placeholder of an op that a file names and that is not registered: it has no rules.
    #[must_use]
    pub fn unknown(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), registered: false, state: RwLock::default() })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether it is more than a name that was read from a file.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.registered
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the op an attribute.
    ///
    /// # Errors
    ///
    /// If it has one of this key at this level.
    pub fn set<T: Any + Send + Sync>(&self, key: &str, value: T, level: i32) -> Result<()> {
        self.set_with_origin(key, Arc::new(value), None, level)
    }

    /// As `set`, with the origin of `value`.
    pub fn set_with_origin(&self, key: &str, value: Anything, origin: Option<Anything>, level: i32) -> Result<()> {
        let key = canonical(key);
        let slot = Slot { level, value, origin };
        let mut state = self.write();
        let replaced = match state.slots.get(key) {
            Some(known) if known.level == level => {
                let name = &self.name;
                let message = format!("op '{name}' has an attribute '{key}' at level {level}: give another level");
                return Err(GraphError::new(message));
            }
            Some(known) if known.level > level => return Ok(()),
            _ => state.slots.insert(key.into(), slot),
        };
        drop(state); // what was replaced may be anything, and dies without the lock
        drop(replaced);
        Ok(())
    }

    /// The attribute of this key, if it is of type `T`.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self, key: &str) -> Option<Arc<T>> {
        let value = self.read().slots.get(canonical(key))?.value.clone();
        value.downcast().ok()
    }

    /// The origin of this key's attribute, or else itself.
    #[must_use]
    pub fn origin(&self, key: &str) -> Option<Anything> {
        let state = self.read();
        let slot = state.slots.get(canonical(key))?;
        Some(slot.origin.as_ref().unwrap_or(&slot.value).clone())
    }

    /// The level of the attribute of this key.
    #[must_use]
    pub fn level(&self, key: &str) -> Option<i32> {
        self.read().slots.get(canonical(key)).map(|slot| slot.level)
    }

    /// Whether there is an attribute of this key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.read().slots.contains_key(canonical(key))
    }

    /// Takes the attribute of this key away if it was set at `level` or below.
    pub fn remove(&self, key: &str, level: i32) {
        let mut state = self.write();
        let key = canonical(key);
        let gone =
            if state.slots.get(key).is_some_and(|slot| slot.level <= level) { state.slots.remove(key) } else { None };
        drop(state);
        drop(gone);
    }

    /// The keys that are set.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.read().slots.keys().map(ToString::to_string).collect()
    }

    fn given<T: Clone + Any + Send + Sync>(&self, key: &str, attributes: &Attributes) -> Result<Option<T>> {
        let Some(found) = self.get::<Given<T>>(key) else { return Ok(None) };
        found.of(attributes).map(Some).map_err(|source| self.refused(key, source))
    }

    fn refused(&self, key: &str, source: RuleError) -> GraphError {
        GraphError::Rule { context: format!("op '{}', {key}", self.name), source, place: 0, of_shapes: false }
    }

    /// The operands that are inputs, where some are numbers that stand among the attributes.
    #[must_use]
    pub fn operands(attributes: &Attributes) -> Option<Vec<usize>> {
        match attributes.get(OPERANDS)? {
            Value::Tuple(all) => {
                Some(all.iter().enumerate().filter(|(_, each)| **each == Value::Input).map(|(at, _)| at).collect())
            }
            _ => None,
        }
    }

    /// A statement on operands as one on inputs.
    fn of_inputs(attributes: &Attributes, operands: Vec<usize>) -> Vec<usize> {
        match Self::operands(attributes) {
            Some(inputs) => operands.iter().filter_map(|each| inputs.iter().position(|at| at == each)).collect(),
            None => operands,
        }
    }

    /// The names of the attributes that its calls may have; None where it does not say.
    pub fn attribute_names(&self, attributes: &Attributes) -> Result<Option<Vec<Arc<str>>>> {
        self.given("attribute_names", attributes)
    }

    /// Refuses attributes that the op does not have, in a call of this name.
    ///
    /// # Errors
    ///
    /// If there is one; the message names those that the op has, and its inputs.
    pub fn check_attributes(&self, call: &str, attributes: &Attributes) -> Result<()> {
        let mut keys = attributes.iter().map(|(key, _)| key).filter(|key| ***key != *OPERANDS).peekable();
        if keys.peek().is_none() {
            return Ok(());
        }
        let Some(known) = self.attribute_names(attributes)? else { return Ok(()) };
        let Some(other) = keys.find(|key| !known.contains(key)) else { return Ok(()) };
        let listed = |names: &[Arc<str>], none: &str| if names.is_empty() { none.into() } else { names.join(", ") };
        let inputs = match self.get::<Given<Vec<Arc<str>>>>("input_names").as_deref() {
            Some(Given::Fixed(names)) => listed(names, "any number of arrays"),
            Some(Given::By(_)) => String::from("its own"),
            None => String::from("any number of arrays"),
        };
        Err(GraphError::new(format!(
            "node '{call}': op '{}' has no attribute '{other}': its attributes are {}, its inputs {inputs}",
            self.name,
            listed(&known, "none"),
        )))
    }

    /// How many inputs it takes; None where any number will do.
    pub fn num_inputs(&self, attributes: &Attributes) -> Result<Option<usize>> {
        if let Some(inputs) = Self::operands(attributes) {
            return Ok(Some(inputs.len()));
        }
        Ok(self.given::<Option<usize>>("num_inputs", attributes)?.flatten())
    }

    /// How many results it has; 1 where it does not say.
    pub fn num_outputs(&self, attributes: &Attributes) -> Result<usize> {
        Ok(self.given("num_outputs", attributes)?.unwrap_or(1))
    }

    /// The number of its results that composition shows, the first ones.
    pub fn visible_outputs(&self, attributes: &Attributes) -> Result<usize> {
        let all = self.num_outputs(attributes)?;
        Ok(self.given("visible_outputs", attributes)?.unwrap_or(all).min(all))
    }

    /// The names of so many inputs.
    pub fn input_names(&self, attributes: &Attributes, count: usize) -> Result<Vec<Arc<str>>> {
        let mut names: Vec<Arc<str>> = self.given("input_names", attributes)?.unwrap_or_default();
        if let Some(inputs) = Self::operands(attributes) {
            names = inputs.iter().filter_map(|&at| names.get(at).cloned()).collect();
        }
        names.truncate(count);
        if count == 1 && names.is_empty() {
            names.push("data".into());
        }
        names.extend((names.len()..count).map(|at| format!("arg{at}").into()));
        Ok(names)
    }

    /// The names of so many results.
    pub fn output_names(&self, attributes: &Attributes, count: usize) -> Result<Vec<Arc<str>>> {
        let mut names: Vec<Arc<str>> = self.given("output_names", attributes)?.unwrap_or_default();
        names.truncate(count);
        if count == 1 && names.is_empty() {
            names.push("output".into());
        }
        names.extend((names.len()..count).map(|at| format!("output{at}").into()));
        Ok(names)
    }

    /// The inputs that it changes.
    pub fn mutates(&self, attributes: &Attributes) -> Result<Vec<usize>> {
        Ok(Self::of_inputs(attributes, self.given("mutates", attributes)?.unwrap_or_default()))
    }

    /// Pairs of an input and an output that may be the same memory.
    pub fn inplace(&self, attributes: &Attributes) -> Result<Vec<(usize, usize)>> {
        let pairs: Vec<(usize, usize)> = self.given("inplace", attributes)?.unwrap_or_default();
        Ok(match Self::operands(attributes) {
            Some(inputs) => {
                let at = |operand: usize| inputs.iter().position(|&each| each == operand);
                pairs.into_iter().filter_map(|(input, output)| Some((at(input)?, output))).collect()
            }
            None => pairs,
        })
    }

    /// For each of these pairs, whether the output is the input, bit for bit, once it is in its place.
    pub fn inplace_identity(&self, attributes: &Attributes) -> Result<Vec<bool>> {
        Ok(self.given("inplace_identity", attributes)?.unwrap_or_default())
    }

    /// The inputs that it needs no values of.
    pub fn ignores(&self, attributes: &Attributes) -> Result<Vec<usize>> {
        Ok(Self::of_inputs(attributes, self.given("ignores", attributes)?.unwrap_or_default()))
    }

    /// The inputs that say where elements lie, or which are meant: the dtypes of the others are not theirs.
    pub fn places(&self, attributes: &Attributes) -> Result<Vec<usize>> {
        Ok(Self::of_inputs(attributes, self.given("places", attributes)?.unwrap_or_default()))
    }

    /// Whether each element of its results is made of those at its place alone, inputs broadcast.
    pub fn is_elementwise(&self, attributes: &Attributes) -> Result<bool> {
        Ok(self.given("elementwise", attributes)?.unwrap_or(false))
    }

    /// Whether calls of it with the same values give the same, mutations aside.
    pub fn draws_nothing(&self, attributes: &Attributes) -> Result<bool> {
        Ok(self.registered && self.given("pure", attributes)?.unwrap_or(true))
    }

    /// Whether calls of it may be merged and dropped.
    pub fn is_pure(&self, attributes: &Attributes) -> Result<bool> {
        Ok(self.draws_nothing(attributes)? && self.mutates(attributes)?.is_empty())
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Op").field("name", &self.name).finish_non_exhaustive()
    }
}
