//! The arguments of an op besides its operands.

use super::outline::Outline;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Attributes as the push had them: a dict is made on demand.
#[derive(Default)]
pub(crate) enum Attributes {
    #[default]
    None,
    Known(Py<PyAny>),
    /// The shape of the result.
    Shape,
    /// Of a part of an array of so many axes.
    Key(Py<PyAny>, usize),
}

impl From<Option<Py<PyAny>>> for Attributes {
    fn from(given: Option<Py<PyAny>>) -> Self {
        given.map_or(Self::None, Self::Known)
    }
}

impl Attributes {
    /// As rules see them, of an op whose result is asked for its outline.
    pub(crate) fn shown(&self, py: Python<'_>, result: impl FnOnce() -> Option<Outline>) -> PyResult<Py<PyAny>> {
        let found = PyDict::new(py);
        match self {
            Self::None => {}
            Self::Known(attributes) => return Ok(attributes.clone_ref(py)),
            Self::Shape => {
                let shape = result().map(|outline| outline.shape);
                found.set_item(intern!(py, "shape"), PyTuple::new(py, shape.unwrap_or_default())?)?;
            }
            Self::Key(key, count) => {
                let encode = py.import("weft._ops.indexing")?.getattr("encode")?;
                found.set_item(intern!(py, "key"), encode.call1((key, count))?)?;
            }
        }
        Ok(found.into_any().unbind())
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Known(object) | Self::Key(object, _) => visit.call(object),
            Self::None | Self::Shape => Ok(()),
        }
    }
}
