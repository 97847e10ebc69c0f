//! Values of attributes, shapes and dtypes, from Python and to Python.

use super::py_values::Hashed;
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use crate::interpreter::level::Level;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyDict, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple};
use std::sync::Arc;
use weft_graph::value::{Attributes, DType, Shape, UNKNOWN, Value};

/// The dtype that an object is, if it is a `numpy.dtype` that graphs know.
fn exact_dtype(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    if let Some(dtype) = dtypes::known_dtype(object)? {
        return Ok(Some(dtype));
    }
    let class = object.py().import("numpy")?.getattr("dtype")?;
    if !object.is_instance(&class)? {
        return Ok(None);
    }
    let name: String = object.getattr("name")?.extract()?;
    Ok(DType::named(&name))
}

/// The dtype that an object names.
pub(crate) fn dtype_from_python(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Some(dtype) = exact_dtype(object)? {
        return Ok(dtype);
    }
    let found = object.py().import("numpy")?.getattr("dtype")?.call1((object,))?;
    exact_dtype(&found)?.ok_or_else(|| errors::argument_type(object.py(), &format!("graphs have no dtype {found}")))
}

/// None where nothing is known.
pub(crate) fn optional_dtype(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    if object.is_none() { Ok(None) } else { dtype_from_python(object).map(Some) }
}

/// A shape: None, or a sequence of lengths and None.
pub(crate) fn shape_from_python(object: &Bound<'_, PyAny>) -> PyResult<Shape> {
    if object.is_none() {
        return Ok(Shape::unknown());
    }
    if object.is_instance_of::<PyInt>() {
        return Ok(Shape::new([length_from_python(object)?]));
    }
    let mut lengths = Vec::new();
    for length in object.try_iter()? {
        let length = length?;
        lengths.push(if length.is_none() { UNKNOWN } else { length_from_python(&length)? });
    }
    Ok(Shape::new(lengths))
}

/// The shape to which all of these broadcast; None if they do not.
#[pyfunction]
pub(crate) fn common_shape(py: Python<'_>, shapes: Vec<Vec<usize>>) -> PyResult<Option<Bound<'_, PyTuple>>> {
    let mut shapes = shapes.into_iter();
    let first = weft_array::Shape::from_vec(shapes.next().unwrap_or_default());
    let found = shapes.try_fold(first, |known, each| weft_array::broadcast_shapes(&known, &each));
    found.map(|shape| PyTuple::new(py, shape)).transpose()
}

fn length_from_python(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    let length: i64 = object.extract()?;
    if length < 0 {
        let message = format!("a length of a shape is {length}: write None for one that is not known");
        return Err(errors::argument_value(object.py(), &message));
    }
    Ok(length)
}

pub(crate) fn shape_to_python<'py>(py: Python<'py>, shape: &Shape) -> PyResult<Bound<'py, PyAny>> {
    match shape.lengths() {
        None => Ok(py.None().into_bound(py)),
        Some(lengths) => {
            let lengths = lengths.iter().map(|&length| (length != UNKNOWN).then_some(length));
            Ok(PyTuple::new(py, lengths.collect::<Vec<_>>())?.into_any())
        }
    }
}

/// The value of an attribute of a call.
pub(crate) fn value_from_python(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let py = object.py();
    if object.is_none() {
        return Ok(Value::None);
    }
    if let Ok(value) = object.cast_exact::<PyInt>() {
        return Ok(match value.extract() {
            Ok(value) => Value::Int(value),
            Err(_) => Value::Opaque(Arc::new(Hashed::new(object)?)),
        });
    }
    if let Ok(value) = object.cast_exact::<PyFloat>() {
        return Ok(Value::Float(value.value()));
    }
    if let Ok(value) = object.cast_exact::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if let Ok(value) = object.cast_exact::<PyString>() {
        return Ok(Value::text(&value.to_string_lossy()));
    }
    if let Ok(values) = object.cast_exact::<PyTuple>() {
        let _level = Level::enter(py)?;
        return values.iter().map(|each| value_from_python(&each)).collect::<PyResult<_>>().map(Value::Tuple);
    }
    if let Ok(values) = object.cast_exact::<PyList>() {
        let _level = Level::enter(py)?;
        return values.iter().map(|each| value_from_python(&each)).collect::<PyResult<_>>().map(Value::Tuple);
    }
    if let Ok(value) = object.cast_exact::<PyComplex>() {
        return Ok(Value::Complex(value.real(), value.imag()));
    }
    if object.is_instance_of::<PySlice>() {
        let _level = Level::enter(py)?;
        let part = |name| value_from_python(&object.getattr(name)?);
        return Ok(Value::Slice(Arc::new([part("start")?, part("stop")?, part("step")?])));
    }
    if object.is(PyEllipsis::get(py)) {
        return Ok(Value::Ellipsis);
    }
    if object.is(operand(py)?) {
        return Ok(Value::Input);
    }
    if let Some(dtype) = exact_dtype(object)? {
        return Ok(Value::DType(dtype));
    }
    let numpy = py.import("numpy")?;
    let generic = numpy.getattr("generic")?;
    if object.is_instance(&generic)? {
        let item = object.call_method0("item")?;
        // A number that Python has no type for, as a longdouble, is its own item.
        if !item.is_instance(&generic)? {
            return value_from_python(&item);
        }
    }
    for (class, of) in
        [(py.get_type::<PyInt>(), "int"), (py.get_type::<PyFloat>(), "float"), (py.get_type::<PyString>(), "str")]
    {
        if object.is_instance(&class)? {
            let _level = Level::enter(py)?;
            return value_from_python(&py.import("builtins")?.getattr(of)?.call1((object,))?);
        }
    }
    let hashed = Hashed::new(object).map_err(|error| {
        errors::argument_type(py, &format!("an attribute of a node is immutable: {object} is not hashable ({error})"))
    })?;
    Ok(Value::Opaque(Arc::new(hashed)))
}

static OPERAND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The stand-in for the next input in a list of operands.
fn operand(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let made = OPERAND.get_or_try_init(py, || Py::new(py, Operand).map(Py::into_any))?;
    Ok(made.bind(py))
}

/// Stands for the next input among the operands of a node.
#[pyclass(module = "weft.graph", name = "Input", frozen)]
pub(crate) struct Operand;

#[pymethods]
impl Operand {
    #[new]
    #[allow(clippy::new_ret_no_self)] // there is one of it
    fn new(py: Python<'_>) -> PyResult<Py<PyAny>> {
        operand(py).map(|made| made.clone().unbind())
    }

    #[allow(clippy::unused_self)] // Python calls it so
    fn __repr__(&self) -> &'static str {
        "Input()"
    }
}

pub(crate) fn value_to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::None => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Int(value) => value.into_pyobject(py)?.into_any(),
        Value::Float(value) => PyFloat::new(py, *value).into_any(),
        Value::Complex(real, imaginary) => PyComplex::from_doubles(py, *real, *imaginary).into_any(),
        Value::Text(value) => PyString::new(py, value).into_any(),
        Value::DType(dtype) => dtypes::to_python(py, *dtype)?.into_bound(py),
        Value::Tuple(values) => {
            let values: PyResult<Vec<_>> = values.iter().map(|each| value_to_python(py, each)).collect();
            PyTuple::new(py, values?)?.into_any()
        }
        Value::Slice(parts) => {
            let parts: PyResult<Vec<_>> = parts.iter().map(|each| value_to_python(py, each)).collect();
            py.import("builtins")?.getattr("slice")?.call1(PyTuple::new(py, parts?)?)?
        }
        Value::Ellipsis => PyEllipsis::get(py).to_owned().into_any(),
        Value::Input => operand(py)?.clone(),
        Value::Opaque(value) => match value.as_any().downcast_ref::<Hashed>() {
            Some(held) => held.object.bind(py).clone(),
            None => PyString::new(py, &format!("{value:?}")).into_any(),
        },
    })
}

/// The attributes of a call from a dict.
pub(crate) fn attributes_from_python(dict: &Bound<'_, PyDict>) -> PyResult<Attributes> {
    if dict.is_empty() {
        return Ok(Attributes::default());
    }
    let mut items: Vec<(Arc<str>, Value)> = Vec::with_capacity(dict.len());
    for (name, value) in dict {
        items.push((Arc::from(&*name.cast::<PyString>()?.to_string_lossy()), value_from_python(&value)?));
    }
    Ok(Attributes::new(items))
}

pub(crate) fn attributes_to_python<'py>(py: Python<'py>, attributes: &Attributes) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in attributes.iter() {
        dict.set_item(&**name, value_to_python(py, value)?)?;
    }
    Ok(dict)
}

/// A value from the text of a file.
#[pyfunction]
pub(crate) fn parse_value<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    value_to_python(py, &weft_graph::value::parse(text))
}

/// The axes of a layout, each with the length of its blocks if it is their inside.
#[pyfunction]
pub(crate) fn layout_axes(py: Python<'_>, text: &str) -> PyResult<Vec<(char, Option<i64>)>> {
    let axes = weft_graph::value::layout_axes(text).map_err(|why| errors::argument_value(py, &why))?;
    Ok(axes.into_iter().map(|axis| (axis.name, axis.block)).collect())
}

/// The text of a value as files have it.
#[pyfunction]
pub(crate) fn format_value(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(value_from_python(value)?.to_string())
}
