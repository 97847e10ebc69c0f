//! Nodes: ops that the tape has heard.

use super::attributes::Attributes;
use super::family::{Family, Fate};
use super::handle::{Entry, Handle};
use super::listen;
use super::moves::now;
use super::outline::Outline;
use crate::array::NDArray;
use crate::engine::Engine;
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Mutex, PoisonError};
use weft_array::Array;

// On the heap: nodes are moved, and these are large.
pub(crate) type Inputs = Vec<Input>;
pub(crate) type Outputs = Vec<Value>;

/// What a node has read: the entry if it needs a gradient, and what the rule sees of it.
pub(crate) struct Input {
    pub(crate) entry: Option<Entry>,
    pub(crate) value: Value,
}

/// What a rule sees of an input or a result.
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

struct Parts {
    attributes: Attributes,
    inputs: Inputs,
    outputs: Outputs,
}

/// One op that the tape has heard, or a leaf: an array whose gradient is wanted.
#[pyclass(module = "weft._core", frozen, weakref, name = "TapeNode")]
pub(crate) struct TapeNode {
    /// Larger than those of all that it depends on.
    order: u64,
    /// None of a leaf.
    op: Option<Py<PyAny>>,
    place: Location,
    /// A weak reference to the handle of a leaf.
    leaf: Option<Py<PyAny>>,
    /// Gone once its gradient was computed for good.
    parts: Mutex<Option<Parts>>,
}

/// Nodes are numbered in the order of their pushes.
static ORDER: Mutex<u64> = Mutex::new(0);

fn next_order() -> u64 {
    let mut order = ORDER.lock().unwrap_or_else(PoisonError::into_inner);
    *order += 1;
    *order
}

/// What nodes that are being dropped held: chains of nodes are longer than the stack is deep.
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
        if let Some(parts) = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            drop_flat(parts);
        }
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
        Self { order: next_order(), op: Some(op), place: Location::here(py), leaf: None, parts }
    }

    pub(crate) fn of_leaf(py: Python<'_>, outline: Outline) -> Self {
        let outputs = Outputs::from_iter([Value::Outline(outline)]);
        let parts = Mutex::new(Some(Parts { attributes: Attributes::None, inputs: Inputs::new(), outputs }));
        Self { order: next_order(), op: None, place: Location::here(py), leaf: None, parts }
    }

    pub(crate) fn with_handle(mut self, handle: Py<PyAny>) -> Self {
        self.leaf = Some(handle);
        self
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.op.is_none()
    }

    /// Whether it is a leaf that somebody has a handle on by `requires_grad`: no argument of a function under `weft.grad`.
    pub(crate) fn is_own_leaf(&self) -> bool {
        self.is_leaf() && self.leaf.is_some()
    }

    pub(crate) fn order(&self) -> u64 {
        self.order
    }

    /// The nodes of its inputs.
    pub(crate) fn producers(&self, py: Python<'_>) -> Vec<Py<Self>> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let inputs = parts.iter().flat_map(|parts| parts.inputs.iter());
        inputs.filter_map(|input| input.entry.as_ref().map(|entry| entry.node.clone_ref(py))).collect()
    }

    /// What is known of one of its results.
    pub(crate) fn outline_of(&self, py: Python<'_>, index: usize) -> Option<Outline> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.as_ref()?.outputs.get(index)?.outline(py)
    }

    /// An error if its gradient was computed for good.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        let gone = self.parts.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        if gone { Err(self.released(py)) } else { Ok(()) }
    }

    fn name(&self, py: Python<'_>) -> String {
        let name = self.op.as_ref().and_then(|op| op.getattr(py, "name").ok()?.extract(py).ok());
        name.unwrap_or_else(|| "leaf".to_owned())
    }

    fn released(&self, py: Python<'_>) -> PyErr {
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

    /// What a rule sees.
    fn shown(&self, py: Python<'_>, value: &Value, entry: Option<Entry>, what: &str) -> PyResult<Py<PyAny>> {
        match value {
            Value::Other(other) => Ok(other.clone_ref(py)),
            Value::Outline(outline) => Ok(Py::new(py, outline.clone_ref(py))?.into_any()),
            Value::Saved(saved) => {
                if let Fate::Overwritten(place) = saved.family.get().fate(&saved.array, saved.version, saved.written) {
                    return Err(self.overwritten(py, saved, place, what));
                }
                let tape = Handle::of_family(Py::new(py, Family::apart(saved.family.clone_ref(py)))?);
                if let Some(entry) = entry {
                    tape.set(Some((entry, 0)));
                }
                let array = NDArray::with_tape(saved.array.clone(), saved.engine.clone_ref(py), tape);
                Ok(Py::new(py, array)?.into_any())
            }
        }
    }

    fn overwritten(&self, py: Python<'_>, saved: &Saved, place: Option<Location>, what: &str) -> PyErr {
        let at = |place: Location| place.describe(py).unwrap_or_else(|| "an unknown place".to_owned());
        let writer = match place {
            Some(place) => format!("overwritten at {}", at(place)),
            None => "overwritten since, nobody knows where".to_owned(),
        };
        errors::gradient(
            py,
            &format!(
                "the gradient of {}() needs its {what} of shape {} and dtype {}, which was saved at {} and {writer}: \
                 write to a copy instead",
                self.name(py),
                PyTuple::new(py, &saved.array.layout().shape)
                    .map_or_else(|_| "?".to_owned(), |shape| shape.to_string()),
                saved.array.dtype().name(),
                at(self.place),
            ),
        )
    }
}

#[pymethods]
impl TapeNode {
    /// The op; None of a leaf.
    #[getter]
    fn op(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.op.as_ref().map(|op| op.clone_ref(py))
    }

    /// A number that is larger than those of all nodes that this one depends on.
    #[getter(order)]
    fn order_number(&self) -> u64 {
        self.order
    }

    /// Whether it is an array whose gradient is wanted.
    #[getter(is_leaf)]
    fn leaf_or_not(&self) -> bool {
        self.is_leaf()
    }

    /// The handle of a leaf, if it is still there.
    #[getter]
    fn leaf(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Some(leaf) = &self.leaf else { return Ok(None) };
        let found = leaf.call0(py)?;
        Ok((!found.is_none(py)).then_some(found))
    }

    /// Where it was pushed: `file.py:12`.
    #[getter]
    fn place(&self, py: Python<'_>) -> Option<String> {
        self.place.describe(py)
    }

    /// The op's attributes.
    #[getter]
    fn attributes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(parts) = parts.as_ref() else { return Err(self.released(py)) };
        parts.attributes.shown(py, || parts.outputs.first()?.outline(py))
    }

    /// Its inputs: arrays whose values were saved, outlines of others, numbers.
    #[getter]
    fn inputs(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(parts) = parts.as_ref() else { return Err(self.released(py)) };
        let shown = parts.inputs.iter().enumerate().map(|(at, input)| {
            let entry = input.entry.as_ref().map(|entry| entry.clone_ref(py));
            self.shown(py, &input.value, entry, &format!("operand {at}"))
        });
        Ok(PyTuple::new(py, shown.collect::<PyResult<Vec<_>>>()?)?.unbind())
    }

    /// Its results: arrays whose values were saved, outlines of others.
    #[getter]
    fn outputs(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let parts = own.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(parts) = parts.as_ref() else { return Err(own.released(py)) };
        let shown = parts.outputs.iter().enumerate().map(|(index, value)| {
            let entry = Entry { node: slf.clone().unbind(), index };
            own.shown(py, value, Some(entry), &format!("result {index}"))
        });
        Ok(PyTuple::new(py, shown.collect::<PyResult<Vec<_>>>()?)?.unbind())
    }

    /// For each input, (node, index) if it needs a gradient, or None.
    #[getter]
    fn entries(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(parts) = parts.as_ref() else { return Err(self.released(py)) };
        let entries = parts.inputs.iter().map(|input| {
            let entry = input.entry.as_ref().map(|entry| (entry.node.clone_ref(py), entry.index));
            Ok(entry.into_pyobject(py)?.unbind())
        });
        Ok(PyTuple::new(py, entries.collect::<PyResult<Vec<Py<PyAny>>>>()?)?.unbind())
    }

    /// How many results it has.
    #[getter]
    fn count(&self, py: Python<'_>) -> PyResult<usize> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.as_ref().map(|parts| parts.outputs.len()).ok_or_else(|| self.released(py))
    }

    /// Lets the rule see `array` in place of a result that was saved: the same values, of the same layout, that are kept anyway.
    fn assume(&self, index: usize, array: &Bound<'_, NDArray>) -> PyResult<()> {
        let array = now(array);
        let (py, own) = (array.py(), array.get());
        let fits = |value: &Value| match value {
            Value::Saved(saved) => {
                let (one, other) = (saved.array.layout(), own.inner.layout());
                saved.array.dtype() == own.inner.dtype() && one.shape == other.shape && one.strides == other.strides
            }
            Value::Outline(_) | Value::Other(_) => false,
        };
        let is_saved =
            |parts: &Option<Parts>| parts.as_ref().and_then(|parts| parts.outputs.get(index)).is_some_and(fits);
        if !is_saved(&self.parts.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        let value = Value::Saved(super::family::save(py, own)?);
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let output = parts.as_mut().and_then(|parts| parts.outputs.get_mut(index));
        let before = output.map(|output| std::mem::replace(output, value));
        drop(parts);
        drop(before); // which may run Python
        Ok(())
    }

    /// Whether `found` is one gradient for each input, of its shape and dtype, or None.
    fn takes(&self, found: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(parts) = parts.as_ref() else { return Err(self.released(found.py())) };
        let fits = |(input, gradient): (&Input, Bound<'_, PyAny>)| {
            input.entry.is_none() || gradient.is_none() || input.value.is_like(&gradient)
        };
        Ok(found.len() == parts.inputs.len() && parts.inputs.iter().zip(found.iter()).all(fits))
    }

    /// Outlines of its results.
    #[getter]
    fn outlines(&self, py: Python<'_>) -> PyResult<Vec<Outline>> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(parts) = parts.as_ref() else { return Err(self.released(py)) };
        Ok(parts.outputs.iter().filter_map(|value| value.outline(py)).collect())
    }

    /// Outlines of its inputs; None of what is no array.
    #[getter]
    fn input_outlines(&self, py: Python<'_>) -> PyResult<Vec<Option<Outline>>> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(parts) = parts.as_ref() else { return Err(self.released(py)) };
        Ok(parts.inputs.iter().map(|input| input.value.outline(py)).collect())
    }

    /// Frees what was saved. Its gradient cannot be computed any more.
    fn release(&self) {
        if self.is_leaf() {
            return;
        }
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(parts) = parts {
            drop_flat(parts);
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let place = self.place.describe(py).map(|place| format!(" at {place}")).unwrap_or_default();
        format!("<weft._core.TapeNode {}{place}>", self.name(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.op)?;
        visit.call(&self.leaf)?;
        // Whoever holds the lock keeps what is in it: then nothing is garbage here.
        let Ok(parts) = self.parts.try_lock() else { return Ok(()) };
        let Some(parts) = parts.as_ref() else { return Ok(()) };
        parts.attributes.traverse(&visit)?;
        for input in &parts.inputs {
            visit.call(input.entry.as_ref().map(|entry| &entry.node))?;
            input.value.traverse(&visit)?;
        }
        for output in &parts.outputs {
            output.traverse(&visit)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(parts) = parts {
            drop_flat(parts);
        }
    }
}

/// Whether two things that rules see are arrays of one shape and dtype, the first with elements.
#[pyfunction]
pub(crate) fn tape_alike(gradient: &Bound<'_, PyAny>, like: &Bound<'_, PyAny>) -> bool {
    let Ok(gradient) = gradient.cast_exact::<NDArray>() else { return false };
    let own = &gradient.get().inner;
    if let Ok(like) = like.cast_exact::<Outline>() {
        let like = like.get();
        return own.dtype() == like.dtype && own.layout().shape == like.shape;
    }
    like.cast::<NDArray>().is_ok_and(|like| {
        let like = now(like);
        let like = &like.get().inner;
        own.dtype() == like.dtype() && own.layout().shape == like.layout().shape
    })
}

impl Value {
    /// Whether a gradient has its shape and dtype.
    fn is_like(&self, gradient: &Bound<'_, PyAny>) -> bool {
        let Ok(gradient) = gradient.cast::<NDArray>() else { return false };
        let gradient = now(gradient);
        let own = &gradient.get().inner;
        match self {
            Self::Saved(saved) => {
                own.dtype() == saved.array.dtype() && own.layout().shape == saved.array.layout().shape
            }
            Self::Outline(outline) => own.dtype() == outline.dtype && own.layout().shape == outline.shape,
            Self::Other(_) => false,
        }
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Saved(saved) => {
                visit.call(&saved.engine)?;
                visit.call(&saved.family)
            }
            Self::Outline(outline) => visit.call(&outline.engine),
            Self::Other(other) => visit.call(other),
        }
    }

    pub(super) fn outline(&self, py: Python<'_>) -> Option<Outline> {
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
