//! The second operand of an in-place operator.

use crate::array::NDArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyInt};

/// Another operand. For one that is none the slot answers `NotImplemented`, as a method of this type does when its
/// argument is refused, and Python goes on to the operand's reflected method.
pub(super) struct Taken<'py>(pub(super) Bound<'py, PyAny>);

impl<'py> FromPyObject<'_, 'py> for Taken<'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let plain = object.is_exact_instance_of::<NDArray>()
            || object.is_exact_instance_of::<PyFloat>()
            || object.is_exact_instance_of::<PyInt>();
        if plain || object.is_instance(classes(object.py())?)? {
            return Ok(Self(object.to_owned()));
        }
        Err(PyTypeError::new_err("no operand of an array's operator"))
    }
}

/// The classes that operators take, as the package lists them.
#[cold]
fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CLASSES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let classes = CLASSES.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("weft._handle.operators")?.getattr("TAKEN")?.unbind())
    })?;
    Ok(classes.bind(py))
}
