//! Nodes: ops that the tape has heard.

use super::attributes::Attributes;
use super::family::Family;
use super::listen;
use super::marks::Why;
use super::outline::Outline;
use crate::engine::Engine;
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_array::Array;

// On the heap: nodes are moved, and these are large.
pub(crate) type Inputs = Vec<Input>;
pub(crate) type Outputs = Vec<Value>;

/// A value: result `index` of a node.
pub(crate) struct Entry {
    pub(crate) node: Py<TapeNode>,
    pub(crate) index: usize,
}

impl Entry {
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self { node: self.node.clone_ref(py), index: self.index }
    }
}

/// An operand of a node: its entry, if it needs a gradient, and the value for the rule.
pub(crate) struct Input {
    pub(crate) entry: Option<Entry>,
    pub(crate) value: Value,
}

/// An input or a result for a rule.
pub(crate) enum Value {
    Saved(Saved),
    Outline(Outline),
    /// No array.
    Other(Py<PyAny>),
}

/// A value that a rule looks at.
pub(crate) struct Saved {
    pub(crate) array: Array,
    pub(crate) engine: Py<Engine>,
    pub(crate) family: Py<Family>,
    pub(crate) version: u64,
    pub(crate) written: u64,
}

impl Drop for Saved {
    fn drop(&mut self) {
        self.family.get().give_up();
    }
}

pub(crate) struct Parts {
    pub(crate) attributes: Attributes,
    pub(crate) inputs: Inputs,
    pub(crate) outputs: Outputs,
}

/// One op that the tape has heard, or a leaf: an array whose gradient is wanted.
#[pyclass(module = "weft._core", frozen, weakref, name = "TapeNode")]
pub(crate) struct TapeNode {
    /// Larger than those of all that it depends on.
    pub(crate) order: u64,
    /// None of a leaf.
    pub(crate) op: Option<Py<PyAny>>,
    pub(crate) place: Location,
    /// A weak reference to the handle of a leaf.
    pub(crate) leaf: Option<Py<PyAny>>,
    /// Of a leaf, whether walks back yield it by themselves: its gradient is stored.
    pub(crate) stores: bool,
    /// Gone once its gradient was computed for good.
    pub(crate) parts: Mutex<Option<Parts>>,
}

/// Nodes are numbered in the order of their pushes.
static ORDER: Mutex<u64> = Mutex::new(0);

fn next_order() -> u64 {
    let mut order = ORDER.lock().unwrap_or_else(PoisonError::into_inner);
    *order += 1;
    *order
}

/// The parts of nodes that are being dropped: chains of nodes are longer than the stack is deep.
static FALLING: Mutex<Vec<Parts>> = Mutex::new(Vec::new());

/// Drops `parts`, and all that only they hold, one after the other.
fn drop_flat(parts: Parts) {
    if listen::begin_dropping() {
        let mut next = Some(parts);
        while let Some(parts) = next {
            drop(parts);
            next = FALLING.lock().unwrap_or_else(PoisonError::into_inner).pop();
        }
        listen::end_dropping();
    } else {
        FALLING.lock().unwrap_or_else(PoisonError::into_inner).push(parts);
    }
}

impl Drop for TapeNode {
    fn drop(&mut self) {
        self.free();
    }
}

impl TapeNode {
    pub(crate) fn of_op(
        py: Python<'_>,
        op: Py<PyAny>,
        attributes: Attributes,
        inputs: Inputs,
        outputs: Outputs,
    ) -> Self {
        let parts = Mutex::new(Some(Parts { attributes, inputs, outputs }));
        Self { order: next_order(), op: Some(op), place: Location::here(py), leaf: None, stores: false, parts }
    }

    pub(crate) fn of_leaf(py: Python<'_>, outline: Outline) -> Self {
        let outputs = Outputs::from_iter([Value::Outline(outline)]);
        let parts = Mutex::new(Some(Parts { attributes: Attributes::None, inputs: Inputs::new(), outputs }));
        Self { order: next_order(), op: None, place: Location::here(py), leaf: None, stores: true, parts }
    }

    pub(crate) fn parts(&self) -> MutexGuard<'_, Option<Parts>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops its inputs and outputs.
    pub(crate) fn free(&self) {
        let parts = self.parts().take();
        if let Some(parts) = parts {
            drop_flat(parts);
        }
    }

    pub(crate) fn with_handle(mut self, handle: Py<PyAny>, stores: bool) -> Self {
        self.leaf = Some(handle);
        self.stores = stores;
        self
    }

    /// Why the memory of its result is marked.
    pub(crate) fn why(&self) -> Why {
        match (self.is_leaf(), self.stores) {
            (true, true) => Why::Leaf,
            (true, false) => Why::Input,
            (false, _) => Why::Written,
        }
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.op.is_none()
    }

    /// Whether it is a leaf by `requires_grad`, with a handle on it: no argument of a function under `weft.grad`.
    pub(crate) fn is_own_leaf(&self) -> bool {
        self.is_leaf() && self.leaf.is_some()
    }

    /// The nodes of its inputs.
    pub(crate) fn producers(&self, py: Python<'_>) -> Vec<Py<Self>> {
        let parts = self.parts();
        let inputs = parts.iter().flat_map(|parts| parts.inputs.iter());
        inputs.filter_map(|input| input.entry.as_ref().map(|entry| entry.node.clone_ref(py))).collect()
    }

    /// The outline of one of its results.
    pub(crate) fn outline_of(&self, py: Python<'_>, index: usize) -> Option<Outline> {
        let parts = self.parts();
        parts.as_ref()?.outputs.get(index)?.outline(py)
    }

    /// An error if its gradient was computed for good.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        let gone = self.parts().is_none();
        if gone { Err(self.released(py)) } else { Ok(()) }
    }

    pub(crate) fn name(&self, py: Python<'_>) -> String {
        let name = self.op.as_ref().and_then(|op| op.getattr(py, "name").ok()?.extract(py).ok());
        name.unwrap_or_else(|| "leaf".to_owned())
    }

    pub(crate) fn released(&self, py: Python<'_>) -> PyErr {
        let name = self.name(py);
        let place = self.place.describe(py).map(|place| format!(" at {place}")).unwrap_or_default();
        errors::gradient(
            py,
            &format!(
                "the gradient of {name}(){place} was computed before, and what it needs was freed: pass retain=True to the \
                 first call to go backward twice"
            ),
        )
    }
}

impl Value {
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Saved(saved) => {
                visit.call(&saved.engine)?;
                visit.call(&saved.family)
            }
            Self::Outline(outline) => visit.call(&outline.engine),
            Self::Other(other) => visit.call(other),
        }
    }

    pub(crate) fn outline(&self, py: Python<'_>) -> Option<Outline> {
        match self {
            Self::Saved(saved) => Some(Outline {
                shape: saved.array.layout().shape.clone(),
                dtype: saved.array.dtype(),
                device: saved.array.device(),
                engine: saved.engine.clone_ref(py),
            }),
            Self::Outline(outline) => Some(outline.clone_ref(py)),
            Self::Other(_) => None,
        }
    }
}
