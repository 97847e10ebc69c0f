//! The value of memory that several heard ops have written.

use super::attributes::Attributes;
use super::family::Piece;
use super::node::{Entry, Input, TapeNode, Value};
use super::outline::Outline;
use crate::engine::Engine;
use crate::interpreter::dtypes;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};
use weft_array::{Array, DType, Layout};

/// The op of a value that several pieces make up.
static PATCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Names the op of a value that several pieces make up.
#[pyfunction]
pub(crate) fn tape_patch(op: Bound<'_, PyAny>) {
    let _ = PATCH.set(op.py(), op.unbind()); // a second call names the same one
}

fn patch(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let known = PATCH.get(py).map(|op| op.clone_ref(py));
    known.ok_or_else(|| pyo3::exceptions::PyRuntimeError::new_err("the tape knows no op for pieces"))
}

/// The value of an array that shows `base` with `pieces` written over it, as an op of its own.
pub(crate) fn patched(
    py: Python<'_>,
    array: &Array,
    engine: &Py<Engine>,
    base: Option<Entry>,
    pieces: &[Piece],
) -> PyResult<Entry> {
    let describe = |layout: &Layout, dtype: DType| -> PyResult<Py<PyTuple>> {
        let shape = PyTuple::new(py, &layout.shape)?;
        let strides = PyTuple::new(py, &layout.strides)?;
        Ok((shape, strides, layout.offset, dtypes::to_python(py, dtype)?).into_pyobject(py)?.unbind())
    };
    let attributes = PyDict::new(py);
    attributes.set_item("nbytes", array.buffer().bytes())?;
    attributes.set_item("layout", describe(array.layout(), array.dtype())?)?;
    let layouts = pieces.iter().map(|piece| describe(&piece.layout, piece.dtype)).collect::<PyResult<Vec<_>>>()?;
    attributes.set_item("pieces", PyList::new(py, layouts)?.to_tuple())?;
    let outlined = |shape: &[usize], dtype| Value::Outline(Outline::beside(py, array, engine, shape, dtype));
    let mut inputs = vec![Input { entry: base, value: outlined(&array.layout().shape, array.dtype()) }];
    inputs.extend(pieces.iter().map(|piece| Input {
        entry: Some(piece.entry.clone_ref(py)),
        value: outlined(&piece.layout.shape, piece.dtype),
    }));
    let outputs = [outlined(&array.layout().shape, array.dtype())];
    let op = patch(py)?;
    let attributes = Attributes::Known(attributes.into_any().unbind());
    let node = TapeNode::of_op(py, op, attributes, inputs, outputs.into_iter().collect());
    Ok(Entry { node: Py::new(py, node)?, index: 0 })
}
