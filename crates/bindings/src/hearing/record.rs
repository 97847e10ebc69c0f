//! From a push to a node.

use crate::array::handle::{Handle, entry_of, outline, save};
use crate::array::moves::{elsewhere, now, taken};
use crate::array::{NDArray, raised};
use crate::interpreter::errors;
use crate::tape::attributes::Attributes;
use crate::tape::family::Family;
use crate::tape::listen;
use crate::tape::node::{Entry, Input, Inputs, Outputs, TapeNode, Value};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use std::sync::Arc;
use weft_array::{Array, DType, Layout, recording};

pub(super) const RESULTS: usize = 32;

/// Whether a rule looks at an operand, or from `RESULTS` on at a result.
pub(super) fn reads(mask: u64, at: usize) -> bool {
    at < u64::BITS as usize && mask >> at & 1 == 1
}

pub(super) fn has_gradient(dtype: DType) -> bool {
    dtype.is_floating()
}

#[inline]
pub(super) fn value(py: Python<'_>, array: &NDArray, read: bool) -> PyResult<Value> {
    if read {
        return Ok(Value::Saved(save(py, array)?));
    }
    Ok(Value::Outline(outline(py, array, &array.inner.layout().shape, array.inner.dtype())))
}

fn input(py: Python<'_>, operand: &Bound<'_, PyAny>, read: bool) -> PyResult<Input> {
    let Ok(array) = operand.cast::<NDArray>() else {
        if let Ok((node, index)) = operand.extract::<(Py<TapeNode>, usize)>() {
            let value = node.get().outline_of(py, index).map_or_else(|| Value::Other(py.None()), Value::Outline);
            return Ok(Input { entry: Some(Entry { node, index }), value });
        }
        return Ok(Input { entry: None, value: Value::Other(operand.clone().unbind()) });
    };
    array.get().at(py, |own| Ok(Input { entry: entry_of(py, own)?, value: value(py, own, read)? }))
}

/// Whether an op over these operands is to be heard.
#[pyfunction]
pub(crate) fn tape_hears(operands: &Bound<'_, PyTuple>) -> PyResult<bool> {
    let py = operands.py();
    if listen::is_paused() {
        return Ok(false);
    }
    for operand in operands.iter_borrowed() {
        if let Ok(array) = operand.cast::<NDArray>()
            && array.get().tape.is_known()
            && entry_of(py, array.get())?.is_some()
        {
            return listen::listens(py);
        }
    }
    Ok(false)
}

/// What is to become of an op over some operands. Python sees the number; `weft._core` has that of the last by name.
#[derive(Clone, Copy)]
pub(crate) enum Hearing {
    /// It is pushed, and not heard.
    Unheard = 0,
    /// It is heard.
    Heard = 1,
    /// Other handles stand for some operands: those are to be asked.
    Elsewhere = 2,
}

impl<'py> IntoPyObject<'py> for Hearing {
    type Target = PyInt;
    type Output = Bound<'py, PyInt>;
    type Error = std::convert::Infallible;

    #[inline]
    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        (self as u8).into_pyobject(py)
    }
}

/// Whether an op over these operands is to be heard. If it is, this thread pauses until `tape_note_fresh` has noted it.
#[pyfunction]
pub(crate) fn tape_opens(operands: &Bound<'_, PyTuple>) -> PyResult<Hearing> {
    if are_elsewhere(operands) {
        return Ok(Hearing::Elsewhere);
    }
    if !tape_hears(operands)? {
        return Ok(Hearing::Unheard);
    }
    listen::pause();
    Ok(Hearing::Heard)
}

/// Whether an op over these operands and places is to be heard.
#[pyfunction]
pub(crate) fn tape_hears_all(operands: &Bound<'_, PyTuple>) -> PyResult<Hearing> {
    if are_elsewhere(operands) {
        return Ok(Hearing::Elsewhere);
    }
    Ok(if tape_hears(operands)? { Hearing::Heard } else { Hearing::Unheard })
}

fn are_elsewhere(operands: &Bound<'_, PyTuple>) -> bool {
    operands.iter_borrowed().any(|each| elsewhere(&each).is_some())
}

/// Refuses a target outside of the recording: what the tape would know of it from then on has no values.
fn check_recorded(py: Python<'_>, name: &str, target: &NDArray) -> PyResult<()> {
    let records = recording::with(|tape| !tape.tag().keeps()).unwrap_or(false);
    if !records || target.inner.buffer().recording().is_some() {
        return Ok(());
    }
    let message = format!(
        "{name}() writes to an array of shape {} that is no argument, and a gradient would be wanted for it from then on: \
         a recording cannot say so. Write in a block of weft.autograd.no_grad(), return the value, or pass the array",
        PyTuple::new(py, &target.inner.layout().shape)?
    );
    recording::fail(&message);
    Err(errors::capture(py, &message))
}

/// Refuses a target that is a leaf, or part of one.
#[pyfunction]
pub(crate) fn tape_check_target(name: &str, target: &Bound<'_, NDArray>) -> PyResult<()> {
    let target = now(target);
    let (py, own) = (target.py(), target.get());
    check_recorded(py, name, own)?;
    let mut leaf = own.tape.known_family().and_then(|family| family.get().leaf_at(py, &own.inner));
    if leaf.is_none() {
        leaf = entry_of(py, own)?.map(|entry| entry.node).filter(|node| node.get().is_leaf());
    }
    if leaf.is_none() {
        return Ok(());
    }
    Err(errors::gradient(
        py,
        &format!(
            "{name}() would overwrite an array of shape {} whose gradient is wanted: with requires_grad it stays as it is \
             while the tape listens. Write in a block of weft.autograd.no_grad(), or to a copy",
            PyTuple::new(py, &own.inner.layout().shape)?
        ),
    ))
}

/// Notes an op that was pushed over `inputs`, whose results are `outputs`: new arrays, or for `given`, places that were there.
#[pyfunction]
pub(crate) fn tape_note(
    op: Bound<'_, PyAny>,
    attributes: Option<Py<PyAny>>,
    inputs: &Bound<'_, PyTuple>,
    outputs: &Bound<'_, PyTuple>,
    reads: u64,
    given: bool,
) -> PyResult<()> {
    let py = op.py();
    let seen = inputs.iter().enumerate().map(|(at, operand)| input(py, &operand, self::reads(reads, at)));
    let seen = seen.collect::<PyResult<Inputs>>()?;
    let results = outputs.iter().map(|output| Ok(taken(output)?)).collect::<PyResult<Vec<_>>>()?;
    let targets = if given { results.len() } else { 0 };
    note(py, op.unbind(), attributes.into(), seen, &results, &|at| self::reads(reads, RESULTS + at), targets)
}

/// Notes an op of any number of operands: each of `inputs` and `outputs` with whether its rule looks at the value, and each
/// of `inputs` with whether it may have a gradient. The last `targets` of the results are places that were there.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from a list
pub(crate) fn tape_note_call(
    op: Bound<'_, PyAny>,
    inputs: Vec<(Bound<'_, PyAny>, bool, bool)>,
    outputs: Vec<(Bound<'_, NDArray>, bool)>,
    targets: usize,
) -> PyResult<()> {
    let py = op.py();
    let seen = inputs.iter().map(|(operand, read, differentiable)| {
        let seen = input(py, operand, *read)?;
        Ok(if *differentiable { seen } else { Input { entry: None, ..seen } })
    });
    let seen = seen.collect::<PyResult<Inputs>>()?;
    let (results, reads): (Vec<_>, Vec<_>) =
        outputs.into_iter().map(|(output, read)| (output.get().stand_in(py).unwrap_or(output), read)).unzip();
    note(py, op.unbind(), Attributes::None, seen, &results, &|at| reads[at], targets)
}

/// A handle on the same elements of which the tape knows nothing.
#[pyfunction]
pub(crate) fn bare(array: &Bound<'_, NDArray>) -> NDArray {
    array.get().at(array.py(), |own| NDArray::new(own.inner.clone(), own.owner().clone_ref(array.py())))
}

/// All the memory of an array, as bytes.
#[pyfunction]
pub(crate) fn whole(array: &Bound<'_, NDArray>) -> PyResult<NDArray> {
    let array = now(array);
    let (py, own) = (array.py(), array.get());
    let buffer = own.inner.buffer();
    let bytes = Layout::contiguous(&[buffer.bytes()], 1)
        .and_then(|layout| Array::on(Arc::clone(buffer), layout, DType::UInt8))
        .map_err(|error| raised(py, error))?;
    Ok(NDArray::new(bytes, own.owner().clone_ref(py)))
}

pub(super) fn note(
    py: Python<'_>,
    op: Py<PyAny>,
    attributes: Attributes,
    inputs: Inputs,
    results: &[Bound<'_, NDArray>],
    read: &dyn Fn(usize) -> bool,
    targets: usize,
) -> PyResult<()> {
    let mut outputs = Outputs::with_capacity(results.len());
    for (at, result) in results.iter().enumerate() {
        outputs.push(value(py, result.get(), read(at))?);
    }
    let node = Py::new(py, TapeNode::of_op(py, op, attributes, inputs, outputs))?;
    for (index, result) in results.iter().enumerate() {
        let own = result.get();
        if !has_gradient(own.inner.dtype()) {
            continue;
        }
        let entry = Entry { node: node.clone_ref(py), index };
        let generation = if index + targets >= results.len() {
            own.tape.family(py)?.get().add(&own.inner, entry.clone_ref(py))
        } else {
            generation_of(own)
        };
        own.tape.set(Some((entry, generation)));
    }
    Ok(())
}

/// The generation of the memory of a new handle on it.
fn generation_of(array: &NDArray) -> u64 {
    array.tape.known_family().map_or(0, |family| family.get().generation())
}

/// Keeps values for a rule, which finds them in the inputs of the node that this returns, and which `op` names.
#[pyfunction]
pub(crate) fn tape_keep(op: Bound<'_, PyAny>, arrays: &Bound<'_, PyTuple>) -> PyResult<TapeNode> {
    let py = op.py();
    let inputs = arrays.iter().map(|array| input(py, &array, true)).collect::<PyResult<Inputs>>()?;
    Ok(TapeNode::of_op(py, op.unbind(), Attributes::None, inputs, Outputs::new()))
}

/// Notes that a heard or unheard op has written to `array`.
#[inline]
pub(crate) fn wrote(py: Python<'_>, array: &NDArray) {
    if array.tape.is_known()
        && let Some(family) = array.tape.known_family()
    {
        family.get().wrote(py, &array.inner);
    }
}

/// Makes `array` a leaf; the leaf knows it weakly. Walks back yield it by themselves if its gradient is stored.
#[pyfunction]
#[pyo3(signature = (array, handle, stores=true))]
pub(crate) fn tape_leaf(array: &Bound<'_, NDArray>, handle: Py<PyAny>, stores: bool) -> PyResult<Py<TapeNode>> {
    let array = now(array);
    let (py, own) = (array.py(), array.get());
    let outline = outline(py, own, &own.inner.layout().shape, own.inner.dtype());
    let node = Py::new(py, TapeNode::of_leaf(py, outline).with_handle(handle, stores))?;
    let entry = Entry { node: node.clone_ref(py), index: 0 };
    let generation = own.tape.family(py)?.get().add(&own.inner, entry.clone_ref(py));
    own.tape.set(Some((entry, generation)));
    Ok(node)
}

/// Lets `array` be no leaf and no result any more: what is computed from it needs no gradient for that.
#[pyfunction]
pub(crate) fn tape_forget(array: &Bound<'_, NDArray>) -> PyResult<()> {
    let array = now(array);
    let (py, own) = (array.py(), array.get());
    if let Some(entry) = entry_of(py, own)?
        && let Some(family) = own.tape.known_family()
    {
        family.get().remove(&entry.node);
    }
    own.tape.set(None);
    Ok(())
}

/// A handle on the memory of `array` that the tape knows by itself: a leaf of its own, or for `op`, the result of that op
/// over `array`; with None for `op` and `leaf` false, of no gradient.
#[pyfunction]
#[pyo3(signature = (array, op=None, leaf=true))]
pub(crate) fn tape_apart(
    array: &Bound<'_, NDArray>,
    op: Option<Py<PyAny>>,
    leaf: bool,
) -> PyResult<(Py<NDArray>, Option<Py<TapeNode>>)> {
    let array = now(array);
    let (py, own) = (array.py(), array.get());
    let seen = outline(py, own, &own.inner.layout().shape, own.inner.dtype());
    let node = match op {
        Some(op) => {
            let inputs = Inputs::from_iter([Input { entry: entry_of(py, own)?, value: Value::Outline(seen) }]);
            let result = outline(py, own, &own.inner.layout().shape, own.inner.dtype());
            Some(TapeNode::of_op(py, op, Attributes::None, inputs, Outputs::from_iter([Value::Outline(result)])))
        }
        None => leaf.then(|| TapeNode::of_leaf(py, seen)),
    };
    let family = Py::new(py, Family::apart(own.tape.family(py)?.clone_ref(py)))?;
    let tape = Handle::of_family(family.clone_ref(py));
    let node = node.map(|node| Py::new(py, node)).transpose()?;
    if let Some(node) = &node {
        let entry = Entry { node: node.clone_ref(py), index: 0 };
        let generation = family.get().add(&own.inner, entry.clone_ref(py));
        tape.set(Some((entry, generation)));
    }
    Ok((Py::new(py, NDArray::with_tape(own.inner.clone(), own.owner().clone_ref(py), tape))?, node))
}

/// (node, index) of the value that `array` shows, or None.
#[pyfunction]
pub(crate) fn tape_entry(array: &Bound<'_, NDArray>) -> PyResult<Option<(Py<TapeNode>, usize)>> {
    Ok(entry_of(array.py(), array.get())?.map(|entry| (entry.node, entry.index)))
}
