//! Functions of arrays as users call them.

use crate::interpreter::call::call_with;
use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

/// A function in place of a Python wrapper: a call makes no Python frame, and its errors go to `forgive`.
///
/// ``forgive(name, function, args, kwargs, error)`` returns None to let the error stand, or a tuple of the result.
#[pyclass(module = "weft._core", frozen, dict, weakref)]
pub(crate) struct ArrayFunction {
    name: Py<PyString>,
    function: Py<PyAny>,
    forgive: Py<PyAny>,
}

#[pymethods]
impl ArrayFunction {
    #[new]
    fn new(name: Py<PyString>, function: Py<PyAny>, forgive: Py<PyAny>) -> Self {
        Self { name, function, forgive }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        let error = match call_with(own.function.bind(py), args, kwargs) {
            Ok(result) => return Ok(result),
            Err(error) if !error.is_instance_of::<PyException>(py) => return Err(error),
            Err(error) => error,
        };
        let kwargs = kwargs.map_or_else(|| PyDict::new(py), Bound::clone);
        let shown = error.value(py);
        shown.setattr(intern!(py, "__traceback__"), error.traceback(py))?;
        let found = own.forgive.bind(py).call1((own.name.bind(py), own.function.bind(py), args, kwargs, shown))?;
        match found.cast::<PyTuple>() {
            Ok(result) => result.get_item(0),
            Err(_) => Err(error),
        }
    }

    /// As a function in a class, it binds to instances.
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        instance: &Bound<'py, PyAny>,
        _class: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static METHOD: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        if instance.is_none() {
            return Ok(slf.clone().into_any());
        }
        METHOD.import(slf.py(), "types", "MethodType")?.call1((slf, instance))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let name: String = slf.getattr(intern!(slf.py(), "__qualname__"))?.extract()?;
        Ok(format!("<function {name} at {:p}>", slf.as_ptr()))
    }

    /// Pickles refer to it by name.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.getattr(intern!(slf.py(), "__qualname__"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.forgive)
    }
}
