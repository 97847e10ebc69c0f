//! Names that a function reads elsewhere: the program is another's when one of them was bound anew.

use crate::array::NDArray;
use crate::array::handle;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};
use weft_array::{DType, Layout};

/// Where a name is looked up.
enum Root {
    /// The instance of a bound method.
    Instance,
    /// A module's names, and those of `builtins` behind it.
    Global(Py<PyDict>, Py<PyString>),
    Cell(Py<PyAny>),
    /// The referent of this weak reference.
    Object(Py<PyAny>),
}

/// The value of the name.
enum Expected {
    /// This very object.
    Same(Py<PyAny>),
    /// This very object, which is not kept for it.
    Alive(Py<PyAny>),
    /// A number or a string of the same type, bit for bit.
    Equal(Py<PyAny>),
    /// Nothing.
    Unbound,
}

/// One name, with the attributes read from it.
pub(super) struct Guard {
    root: Root,
    path: Vec<Py<PyString>>,
    expected: Expected,
    seen: Seen,
}

/// The assumptions about an object that stays the same, if it is an array.
#[derive(Default)]
struct Seen {
    /// Whether the tape knew it.
    standing: u64,
    /// Shape, dtype and place of a tensor, which may move: a function may ask for its shape and never for its values.
    shown: Option<(Layout, DType, u16)>,
}

impl Guard {
    /// From `(kind, where, name, path, how, what)`, as `weft._program.guards` writes it.
    pub(super) fn of(written: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (kind, place, name, path, how, what): (
            String,
            Bound<'_, PyAny>,
            Bound<'_, PyString>,
            Bound<'_, PyTuple>,
            String,
            Bound<'_, PyAny>,
        ) = written.extract()?;
        let root = match kind.as_str() {
            "instance" => Root::Instance,
            "global" => Root::Global(place.cast_into::<PyDict>()?.unbind(), name.unbind()),
            "cell" => Root::Cell(place.unbind()),
            _ => Root::Object(place.unbind()),
        };
        let path = path.iter().map(|name| Ok(name.cast_into::<PyString>()?.unbind())).collect::<PyResult<_>>()?;
        let expected = match how.as_str() {
            "same" => Expected::Same(what.unbind()),
            "alive" => Expected::Alive(what.unbind()),
            "equal" => Expected::Equal(what.unbind()),
            _ => Expected::Unbound,
        };
        let seen = match &expected {
            Expected::Same(what) => Seen::of(what.bind(written.py()))?,
            Expected::Alive(reference) => Seen::of(&reference.bind(written.py()).call0()?)?,
            Expected::Equal(_) | Expected::Unbound => Seen::default(),
        };
        Ok(Self { root, path, expected, seen })
    }

    /// Whether the name has the same value still.
    #[inline]
    pub(super) fn holds(&self, py: Python<'_>, instance: Option<&Py<PyAny>>) -> PyResult<bool> {
        let found = self.found(py, instance);
        match (&self.expected, found) {
            (Expected::Unbound, found) => Ok(found.is_none()),
            (_, None) => Ok(false),
            (Expected::Same(expected), Some(found)) => Ok(found.is(expected) && self.seen.holds(&found)?),
            (Expected::Alive(reference), Some(found)) => {
                Ok(reference.bind(py).call0()?.is(&found) && self.seen.holds(&found)?)
            }
            (Expected::Equal(expected), Some(found)) => is_equal(expected.bind(py), &found),
        }
    }

    fn found<'py>(&self, py: Python<'py>, instance: Option<&Py<PyAny>>) -> Option<Bound<'py, PyAny>> {
        let mut found = match &self.root {
            Root::Instance => instance?.bind(py).clone(),
            Root::Global(names, name) => names.bind(py).get_item(name.bind(py)).ok()??,
            Root::Cell(cell) => cell.bind(py).getattr(pyo3::intern!(py, "cell_contents")).ok()?,
            Root::Object(reference) => reference.bind(py).call0().ok().filter(|object| !object.is_none())?,
        };
        for name in &self.path {
            found = found.getattr(name.bind(py)).ok()?;
        }
        Some(found)
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.root {
            Root::Instance => {}
            Root::Global(names, _) => visit.call(names)?,
            Root::Cell(object) | Root::Object(object) => visit.call(object)?,
        }
        match &self.expected {
            Expected::Same(what) | Expected::Alive(what) | Expected::Equal(what) => visit.call(what),
            Expected::Unbound => Ok(()),
        }
    }
}

impl Seen {
    fn of(found: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(array) = found.cast::<NDArray>() else { return Ok(Self::default()) };
        let (py, own) = (array.py(), array.get());
        let look = |own: &NDArray| (own.inner.layout().clone(), own.inner.dtype(), own.inner.device());
        let shown = (!array.is_exact_instance_of::<NDArray>()).then(|| own.at(py, look));
        Ok(Self { standing: handle::standing(py, own)?, shown })
    }

    /// Whether the same object is as it was.
    #[inline]
    fn holds(&self, found: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(array) = found.cast::<NDArray>() else { return Ok(true) };
        let (py, own) = (array.py(), array.get());
        let is_shown = |(layout, dtype, device): &(Layout, DType, u16)| {
            own.at(py, |own| {
                own.inner.layout() == layout && own.inner.dtype() == *dtype && own.inner.device() == *device
            })
        };
        Ok(handle::standing(py, own)? == self.standing && self.shown.as_ref().is_none_or(is_shown))
    }
}

fn is_equal(expected: &Bound<'_, PyAny>, found: &Bound<'_, PyAny>) -> PyResult<bool> {
    if found.is(expected) {
        return Ok(true);
    }
    if found.get_type_ptr() != expected.get_type_ptr() {
        return Ok(false);
    }
    if let (Ok(expected), Ok(found)) = (expected.cast_exact::<PyFloat>(), found.cast_exact::<PyFloat>()) {
        return Ok(expected.value().to_bits() == found.value().to_bits());
    }
    if expected.is_exact_instance_of::<PyBool>() {
        return Ok(false); // there are two of them
    }
    if expected.is_exact_instance_of::<PyInt>() || expected.is_exact_instance_of::<PyString>() {
        return found.eq(expected);
    }
    Ok(false)
}
