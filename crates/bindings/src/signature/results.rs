//! The results of a call, made of the results of a replay.

use crate::interpreter::level::Level;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;

/// A result's structure.
pub(super) enum Results {
    /// One of the replay's results.
    Made(usize),
    /// The argument itself.
    Given(usize),
    /// An object that is the same at every call.
    Always(Py<PyAny>),
    /// The object that this callable makes of the parts.
    Built(Py<PyAny>, Vec<Self>),
    List(Vec<Self>),
    Tuple(Vec<Self>),
    Dict(Vec<(Py<PyAny>, Self)>),
}

impl Results {
    /// From a description of `weft._program.trees`.
    pub(super) fn of(written: &Bound<'_, PyAny>) -> PyResult<Self> {
        let _level = Level::enter(written.py())?;
        let written = written.cast::<PyTuple>()?;
        let kind: String = written.get_item(0)?.extract()?;
        let what = written.get_item(1)?;
        let parts = || written.get_item(2)?.try_iter()?.map(|part| Self::of(&part?)).collect::<PyResult<Vec<_>>>();
        Ok(match kind.as_str() {
            "made" => Self::Made(what.extract()?),
            "given" => Self::Given(what.extract()?),
            "always" => Self::Always(what.unbind()),
            "built" => Self::Built(what.unbind(), parts()?),
            "list" => Self::List(parts()?),
            "tuple" => Self::Tuple(parts()?),
            _ => {
                let names = what.try_iter()?.map(|name| Ok(name?.unbind())).collect::<PyResult<Vec<_>>>()?;
                Self::Dict(names.into_iter().zip(parts()?).collect())
            }
        })
    }

    /// The result of a call.
    #[inline]
    pub(super) fn make<'py>(
        &self,
        py: Python<'py>,
        made: &[Bound<'py, PyAny>],
        given: &[Bound<'py, PyAny>],
    ) -> PyResult<Bound<'py, PyAny>> {
        let all = |parts: &[Self]| {
            parts.iter().map(|part| part.make(py, made, given)).collect::<PyResult<SmallVec<[_; 4]>>>()
        };
        Ok(match self {
            Self::Made(at) => made[*at].clone(),
            Self::Given(at) => given[*at].clone(),
            Self::Always(object) => object.bind(py).clone(),
            Self::Built(build, parts) => build.bind(py).call1(PyTuple::new(py, all(parts)?)?)?,
            Self::List(parts) => PyList::new(py, all(parts)?)?.into_any(),
            Self::Tuple(parts) => PyTuple::new(py, all(parts)?)?.into_any(),
            Self::Dict(parts) => {
                let dict = PyDict::new(py);
                for (name, part) in parts {
                    dict.set_item(name, part.make(py, made, given)?)?;
                }
                dict.into_any()
            }
        })
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Made(_) | Self::Given(_) => Ok(()),
            Self::Always(object) => visit.call(object),
            Self::Built(build, parts) => {
                visit.call(build)?;
                parts.iter().try_for_each(|part| part.traverse(visit))
            }
            Self::List(parts) | Self::Tuple(parts) => parts.iter().try_for_each(|part| part.traverse(visit)),
            Self::Dict(parts) => parts.iter().try_for_each(|(_, part)| part.traverse(visit)),
        }
    }
}
