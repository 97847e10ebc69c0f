//! Python's objects among a graph's values, and its exceptions among a graph's errors.

use crate::interpreter::failures::Thrown;
use pyo3::prelude::*;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use weft_graph::registry::RuleError;
use weft_graph::value::Opaque;

/// An object as the value of an attribute of an op or a graph.
pub(crate) struct Held(pub(crate) Py<PyAny>);

/// The object that is held, if one is.
pub(crate) fn object<'py>(py: Python<'py>, value: &Arc<dyn Any + Send + Sync>) -> Option<Bound<'py, PyAny>> {
    value.downcast_ref::<Held>().map(|held| held.0.bind(py).clone())
}

/// A hashable object as the value of an attribute of a call.
pub(crate) struct Hashed {
    pub(crate) object: Py<PyAny>,
    hash: u64,
}

impl Hashed {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        #[allow(clippy::cast_sign_loss)] // any bits will do
        let hash = object.hash()? as u64;
        Ok(Self { object: object.clone().unbind(), hash })
    }

    /// An object that may have no hash, for a value of which nobody keeps a table.
    pub(crate) fn by_identity(object: &Bound<'_, PyAny>) -> Self {
        Self { object: object.clone().unbind(), hash: object.as_ptr().addr() as u64 }
    }
}

impl Opaque for Hashed {
    fn equals(&self, other: &dyn Opaque) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Self>() else { return false };
        // An object whose comparison fails equals none.
        self.hash == other.hash && Python::attach(|py| self.object.bind(py).eq(other.object.bind(py)).unwrap_or(false))
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Python::attach(|py| match self.object.bind(py).repr() {
            Ok(text) => f.write_str(&text.to_string_lossy()),
            Err(_) => f.write_str("an object"),
        })
    }
}

/// An exception as the refusal of a rule.
pub(crate) fn thrown(error: PyErr) -> RuleError {
    Box::new(Thrown(error))
}
