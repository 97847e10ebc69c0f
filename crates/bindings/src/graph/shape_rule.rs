//! Rules of `weft-graph` for calls outside graphs: known shapes in, the shape of the result out.

use super::py_values::Hashed;
use super::values::{shape_from_python, value_from_python};
use crate::interpreter::errors;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;
use std::sync::Arc;
use weft_graph::registry::RuleError;
use weft_graph::rules::{NamedShapes, named_shapes};
use weft_graph::value::{Attributes, Shape, Value};
use weft_graph::{Refusal, rules};

/// A shape rule of `weft-graph`, by its name.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct ShapeRule {
    rule: &'static NamedShapes,
    /// The names of the attributes that it reads.
    reads: Vec<(Arc<str>, Py<PyString>)>,
}

#[pymethods]
impl ShapeRule {
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<Self> {
        let Some(rule) = named_shapes(name) else {
            let names: Vec<_> = rules::SHAPE_RULES.iter().map(|rule| rule.name).collect();
            let message = format!("there is no shape rule '{name}'; there are {}", names.join(", "));
            return Err(errors::argument_value(py, &message));
        };
        let reads = rule.reads.iter().map(|name| (Arc::from(*name), PyString::intern(py, name).unbind()));
        Ok(Self { rule, reads: reads.collect() })
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.rule.name
    }

    /// The shape of the result for operands of these shapes.
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        shapes: &Bound<'py, PyTuple>,
        attributes: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut operands: SmallVec<[Shape; 4]> =
            shapes.iter().map(|shape| shape_from_python(&shape)).collect::<PyResult<_>>()?;
        let mut read: SmallVec<[(Arc<str>, Value); 3]> = SmallVec::new();
        for (name, key) in &self.reads {
            if let Some(value) = attributes.get_item(key)? {
                read.push((name.clone(), value_of(&value)));
            }
        }
        let found = self.rule.result(&Attributes::new(read), &mut operands).map_err(|error| refused(py, &error))?;
        PyTuple::new(py, found.lengths().unwrap_or_default())
    }
}

/// The value of an attribute. One that no node could have is there, and is no number.
fn value_of(object: &Bound<'_, PyAny>) -> Value {
    value_from_python(object).unwrap_or_else(|_| Value::Opaque(Arc::new(Hashed::by_identity(object))))
}

/// The refusal of a rule as the exception to raise.
fn refused(py: Python<'_>, error: &RuleError) -> PyErr {
    match error.downcast_ref::<Refusal>() {
        Some(Refusal::Axis { axis, rank }) => errors::of_class(py, "AxisError", (*axis, *rank)),
        Some(Refusal::Type(message)) => errors::argument_type(py, message),
        _ => errors::argument_value(py, &error.to_string()),
    }
}
