//! Functions of arrays as users call them.

use crate::interpreter::call::call_with;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use std::ffi::CStr;

/// A function in place of a Python wrapper: a call makes no Python frame, and its errors go to `forgive`.
///
/// ``forgive(name, function, args, kwargs, error)`` returns None to let the error stand, or a tuple of the result.
#[pyclass(module = "weft._core", frozen, dict, weakref, subclass)]
pub(crate) struct ArrayFunction {
    name: Py<PyString>,
    function: Py<PyAny>,
    forgive: Py<PyAny>,
}

/// Adds the class as Python sees it, `ArrayFunction`: with CPython's mark of functions, whose methods are called with the
/// instance as their first argument, and without an object for the pair. pyo3 has no word for that mark.
pub(crate) fn add_array_function(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let (py, base) = (module.py(), module.py().get_type::<ArrayFunction>());
    let mut slots = [
        ffi::PyType_Slot { slot: ffi::Py_tp_doc, pfunc: DOC.as_ptr().cast_mut().cast() },
        ffi::PyType_Slot { slot: 0, pfunc: std::ptr::null_mut() },
    ];
    #[allow(clippy::useless_conversion)] // on Windows, where both have 32 bits
    let flags = u32::try_from(ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_METHOD_DESCRIPTOR).unwrap_or_default();
    let mut spec = ffi::PyType_Spec {
        name: c"weft._core.ArrayFunction".as_ptr(),
        basicsize: 0, // the base's
        itemsize: 0,
        flags,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: attached; CPython copies what it needs of the specification. `__get__` of the base binds as the mark says.
    let class =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpecWithBases(&raw mut spec, base.as_ptr()))? };
    module.add("ArrayFunction", class)
}

const DOC: &CStr = c"ArrayFunction(name, function, forgive)
--

A function in place of a Python wrapper: a call makes no Python frame, and its errors go to `forgive`.";

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
