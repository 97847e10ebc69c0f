//! Dask's older form of a graph, in which a tuple that begins with a callable is a call, and a key stands for its value.
//!
//! The forms that graphs are full of are read here; Dask's own conversion is asked about the others.

use super::read::Reader;
use super::run::{Argument, Few, Function};
use crate::interpreter::level::Level;
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};

/// Dask's `Dict`, and its conversion of a value that is not read here.
pub(super) struct Conversion<'py> {
    dict: Bound<'py, PyAny>,
    any: Bound<'py, PyAny>,
}

impl<'py> Conversion<'py> {
    pub(super) fn new(dict: Bound<'py, PyAny>, any: Bound<'py, PyAny>) -> Self {
        Self { dict, any }
    }
}

impl<'py> Reader<'_, 'py> {
    /// The meaning of a value of the older form.
    pub(super) fn legacy(&mut self, value: Bound<'py, PyAny>, needs: &mut Few) -> PyResult<Argument> {
        let py = value.py();
        let _level = Level::enter(py)?;
        if let Ok(items) = value.cast_exact::<PyTuple>() {
            if let Ok(callable) = items.get_item(0)
                && callable.is_callable()
            {
                return self.legacy_call(callable, items, needs);
            }
            if self.is_key(&value)? {
                return self.reference(&value, needs);
            }
            let items = self.legacy_items(items.iter(), needs)?;
            if items.iter().all(|item| matches!(item, Argument::Value(_))) {
                return Ok(Argument::Value(value.unbind()));
            }
            let (callable, positional) =
                (PyTuple::type_object(py).into_any().unbind(), smallvec![Argument::List(items)]);
            return Ok(Argument::Call(Box::new(Function { callable, positional, named: Vec::new() })));
        }
        if value.is_exact_instance_of::<PyString>()
            || value.is_exact_instance_of::<PyInt>()
            || value.is_exact_instance_of::<PyFloat>()
        {
            if self.is_key(&value)? {
                return self.reference(&value, needs);
            }
            return Ok(Argument::Value(value.unbind()));
        }
        if let Ok(items) = value.cast_exact::<PyList>() {
            return Ok(Argument::List(self.legacy_items(items.iter(), needs)?));
        }
        let converted = self.conversion.any.call1((value,))?;
        self.argument(converted, needs)
    }

    fn legacy_items(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        needs: &mut Few,
    ) -> PyResult<Vec<Argument>> {
        items.map(|item| self.legacy(item, needs)).collect()
    }

    fn legacy_call(
        &mut self,
        callable: Bound<'py, PyAny>,
        items: &Bound<'py, PyTuple>,
        needs: &mut Few,
    ) -> PyResult<Argument> {
        let mut positional = SmallVec::with_capacity(items.len() - 1);
        for item in items.iter().skip(1) {
            positional.push(if item.is_instance_of::<PyDict>() {
                let converted = self.conversion.dict.call1((item,))?;
                self.argument(converted, needs)?
            } else {
                self.legacy(item, needs)?
            });
        }
        Ok(Argument::Call(Box::new(Function { callable: callable.unbind(), positional, named: Vec::new() })))
    }

    /// Whether a value is a key of the graph; a value without a hash is none.
    fn is_key(&self, value: &Bound<'py, PyAny>) -> PyResult<bool> {
        match self.has(value) {
            Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => Ok(false),
            found => found,
        }
    }
}
