//! The attributes of a call.

use super::{DType, Value};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
struct Inner {
    items: Vec<(Arc<str>, Value)>,
    hash: u64,
}

/// The attributes of a call, by name: immutable, shared, with a hash that was computed once.
#[derive(Debug, Clone)]
pub struct Attributes(Arc<Inner>);

impl Attributes {
    /// The attributes of these names; of a name that comes twice the last counts.
    pub fn new(items: impl IntoIterator<Item = (Arc<str>, Value)>) -> Self {
        let mut items: Vec<_> = items.into_iter().collect();
        if items.is_empty() {
            return Self::default();
        }
        items.sort_by(|(a, _), (b, _)| a.cmp(b));
        items.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = std::mem::replace(&mut later.1, Value::None);
            }
            same
        });
        Self::of_sorted(items)
    }

    fn of_sorted(items: Vec<(Arc<str>, Value)>) -> Self {
        let mut hasher = DefaultHasher::new();
        items.hash(&mut hasher);
        Self(Arc::new(Inner { items, hash: hasher.finish() }))
    }

    /// The attribute of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        let items = &self.0.items;
        items.binary_search_by(|(known, _)| (**known).cmp(name)).ok().map(|at| &items[at].1)
    }

    /// The integer of this name.
    #[must_use]
    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name)?.as_int()
    }

    /// The truth value of this name; false if there is none.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The integers of this name.
    #[must_use]
    pub fn integers(&self, name: &str) -> Option<Vec<i64>> {
        self.get(name)?.as_integers()
    }

    /// The dtype of this name, or one that a text of this name spells.
    #[must_use]
    pub fn dtype(&self, name: &str) -> Option<DType> {
        match self.get(name)? {
            Value::DType(dtype) => Some(*dtype),
            Value::Text(text) => DType::named(text),
            _ => None,
        }
    }

    /// All of them, by name.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Value)> {
        self.0.items.iter().map(|(name, value)| (name, value))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.items.is_empty()
    }

    /// These and one more, in place of one of that name.
    #[must_use]
    pub fn with(&self, name: &str, value: Value) -> Self {
        Self::new(self.0.items.iter().cloned().chain([(name.into(), value)]))
    }

    /// These but for one name.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        Self::new(self.0.items.iter().filter(|(known, _)| **known != *name).cloned())
    }
}

impl Default for Attributes {
    fn default() -> Self {
        static EMPTY: OnceLock<Attributes> = OnceLock::new();
        EMPTY.get_or_init(|| Self::of_sorted(Vec::new())).clone()
    }
}

impl PartialEq for Attributes {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.hash == other.0.hash && self.0.items == other.0.items)
    }
}

impl Eq for Attributes {}

impl Hash for Attributes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash.hash(state);
    }
}
