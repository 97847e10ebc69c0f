//! A node as rules and Python see it.

use crate::array::NDArray;
use crate::array::handle::{Handle, save};
use crate::array::moves::now;
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use crate::tape::family::{Family, Fate};
use crate::tape::node::{Entry, Input, Parts, Saved, TapeNode, Value};
use crate::tape::outline::Outline;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

impl TapeNode {
    /// A value as a rule sees it.
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
            None => "overwritten since at an unknown place".to_owned(),
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

    /// Of a leaf, whether walks back yield it by themselves.
    #[getter(stores)]
    fn stores_or_not(&self) -> bool {
        self.stores
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
        let parts = self.parts();
        let Some(parts) = parts.as_ref() else { return Err(self.released(py)) };
        parts.attributes.shown(py, || parts.outputs.first()?.outline(py))
    }

    /// Its inputs: arrays whose values were saved, outlines of others, numbers.
    #[getter]
    fn inputs(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let parts = self.parts();
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
        let parts = own.parts();
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
        let parts = self.parts();
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
        let parts = self.parts();
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
        if !is_saved(&self.parts()) {
            return Ok(());
        }
        let value = Value::Saved(save(py, own)?);
        let mut parts = self.parts();
        let output = parts.as_mut().and_then(|parts| parts.outputs.get_mut(index));
        let before = output.map(|output| std::mem::replace(output, value));
        drop(parts);
        drop(before); // which may run Python
        Ok(())
    }

    /// Whether `found` is one gradient for each input, of its shape and dtype, or None.
    fn takes(&self, found: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let parts = self.parts();
        let Some(parts) = parts.as_ref() else { return Err(self.released(found.py())) };
        let fits = |(input, gradient): (&Input, Bound<'_, PyAny>)| {
            input.entry.is_none() || gradient.is_none() || input.value.is_like(&gradient)
        };
        Ok(found.len() == parts.inputs.len() && parts.inputs.iter().zip(found.iter()).all(fits))
    }

    /// Outlines of its results.
    #[getter]
    fn outlines(&self, py: Python<'_>) -> PyResult<Vec<Outline>> {
        let parts = self.parts();
        let Some(parts) = parts.as_ref() else { return Err(self.released(py)) };
        Ok(parts.outputs.iter().filter_map(|value| value.outline(py)).collect())
    }

    /// Outlines of its inputs; None of what is no array.
    #[getter]
    fn input_outlines(&self, py: Python<'_>) -> PyResult<Vec<Option<Outline>>> {
        let parts = self.parts();
        let Some(parts) = parts.as_ref() else { return Err(self.released(py)) };
        Ok(parts.inputs.iter().map(|input| input.value.outline(py)).collect())
    }

    /// Frees what was saved. Its gradient cannot be computed any more.
    fn release(&self) {
        if !self.is_leaf() {
            self.free();
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let place = self.place.describe(py).map(|place| format!(" at {place}")).unwrap_or_default();
        format!("<weft._core.TapeNode {}{place}>", self.name(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.op)?;
        visit.call(&self.leaf)?;
        // The holder of the lock keeps its contents alive: then nothing is garbage here.
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
        self.free();
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
}
