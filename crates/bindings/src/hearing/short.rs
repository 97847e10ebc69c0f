//! Notes of calls whose result is new, from the short ways of pushes: no fact is looked up twice.

use super::record::{RESULTS, has_gradient, note, reads, value};
use crate::array::NDArray;
use crate::array::handle::entry_of;
use crate::array::moves::now;
use crate::array::operator::{self, OPERATORS, Operator};
use crate::tape::attributes::Attributes;
use crate::tape::listen;
use crate::tape::node::{Entry, Input, Inputs, Value};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use std::sync::OnceLock;

/// An op, and for the gradient of each operand, which operands (bit by bit) and results (from bit 32 on) its rule looks at.
struct Rule {
    op: Py<PyAny>,
    reads: [u64; 2],
}

static OPERATOR_RULES: [OnceLock<Rule>; OPERATORS] = [const { OnceLock::new() }; OPERATORS];
/// As what `x ** 2` is heard.
static SQUARE: OnceLock<Rule> = OnceLock::new();

type Entries = SmallVec<[Option<Entry>; 4]>;

/// Lets the operator `name`, or the square, be heard as `op`.
#[pyfunction]
pub(crate) fn tape_operator(name: &str, op: Py<PyAny>, reads: [u64; 2]) -> PyResult<()> {
    let rule = if name == "square" { &SQUARE } else { &OPERATOR_RULES[operator::number_of(name)?] };
    let _ = rule.set(Rule { op, reads }); // who comes second has said the same
    Ok(())
}

/// The entries of operands, if the tape listens and knows one of them.
fn entries(py: Python<'_>, operands: &[&Bound<'_, PyAny>]) -> PyResult<Option<Entries>> {
    if listen::is_paused() {
        return Ok(None);
    }
    let found = entries_of(py, operands)?;
    Ok(if found.iter().any(Option::is_some) && listen::listens(py)? { Some(found) } else { None })
}

fn entries_of(py: Python<'_>, operands: &[&Bound<'_, PyAny>]) -> PyResult<Entries> {
    let entry = |operand: &&Bound<'_, PyAny>| match operand.cast::<NDArray>() {
        Ok(array) => entry_of(py, array.get()),
        Err(_) => Ok(None),
    };
    operands.iter().map(entry).collect()
}

/// What each of two gradients looks at, of those that are wanted.
fn of_wanted(each: impl Iterator<Item = u64>, entries: &Entries) -> u64 {
    entries.iter().zip(each).filter(|(entry, _)| entry.is_some()).fold(0, |mask, (_, reads)| mask | reads)
}

/// What the rule of `op` looks at; None if it has no gradient.
fn reads_of(op: &Bound<'_, PyAny>, entries: &Entries) -> PyResult<Option<u64>> {
    let py = op.py();
    let found = op.getattr(intern!(py, "reads"))?;
    if found.is_none() {
        // A refused gradient is noted: who asks for it is told so, as the op has no rule.
        return Ok(op.getattr(intern!(py, "refused"))?.is_truthy()?.then_some(0));
    }
    let Ok(each) = found.cast_exact::<PyTuple>() else { return found.extract().map(Some) };
    let each = each.iter().map(|each| each.extract()).collect::<PyResult<SmallVec<[u64; 2]>>>()?;
    Ok(Some(of_wanted(each.into_iter(), entries)))
}

fn inputs(py: Python<'_>, operands: &[&Bound<'_, PyAny>], entries: Entries, mask: u64) -> PyResult<Inputs> {
    let mut seen = Inputs::with_capacity(operands.len());
    for (at, (operand, entry)) in operands.iter().zip(entries).enumerate() {
        let value = match operand.cast::<NDArray>() {
            Ok(array) => array.get().at(py, |own| value(py, own, reads(mask, at)))?,
            Err(_) => Value::Other((*operand).clone().unbind()),
        };
        seen.push(Input { entry, value });
    }
    Ok(seen)
}

/// Whether the tape may know something of the value of an operand.
#[inline]
pub(crate) fn is_known(operand: &Bound<'_, PyAny>) -> bool {
    operand.cast::<NDArray>().is_ok_and(|array| array.get().tape.is_known())
}

/// Notes, if the tape listens, that `results` are what `op` has for `operands`: arrays that are new, already pushed.
fn note_call(
    op: &Bound<'_, PyAny>,
    attributes: Attributes,
    operands: &[&Bound<'_, PyAny>],
    results: &[Bound<'_, NDArray>],
) -> PyResult<()> {
    match entries(op.py(), operands)? {
        Some(entries) => note_entries(op, attributes, operands, entries, results),
        None => Ok(()),
    }
}

fn note_entries(
    op: &Bound<'_, PyAny>,
    attributes: Attributes,
    operands: &[&Bound<'_, PyAny>],
    entries: Entries,
    results: &[Bound<'_, NDArray>],
) -> PyResult<()> {
    let py = op.py();
    let Some(mask) = reads_of(op, &entries)? else { return Ok(()) };
    let seen = inputs(py, operands, entries, mask)?;
    note(py, op.clone().unbind(), attributes, seen, results, &|at| reads(mask, RESULTS + at), 0)
}

/// Notes the same, if the tape may know an operand.
#[inline]
pub(crate) fn noted_handle<'py>(
    op: &Bound<'py, PyAny>,
    attributes: impl FnOnce() -> PyResult<Attributes>,
    operands: &[&Bound<'py, PyAny>],
    result: &Bound<'py, NDArray>,
) -> PyResult<()> {
    noted_handles(op, attributes, operands, std::slice::from_ref(result))
}

/// The same of several results.
#[inline]
pub(crate) fn noted_handles<'py>(
    op: &Bound<'py, PyAny>,
    attributes: impl FnOnce() -> PyResult<Attributes>,
    operands: &[&Bound<'py, PyAny>],
    results: &[Bound<'py, NDArray>],
) -> PyResult<()> {
    let differ = |result: &Bound<'_, NDArray>| has_gradient(result.get().inner.dtype());
    if operands.iter().any(|operand| is_known(operand)) && results.iter().any(differ) {
        note_call(op, attributes()?, operands, results)?;
    }
    Ok(())
}

/// Notes the result of an operator, from the type slot.
#[cold]
pub(crate) fn note_operator(
    operator: Operator,
    operands: &[&Bound<'_, PyAny>],
    result: &Bound<'_, NDArray>,
) -> PyResult<()> {
    note_rule(OPERATOR_RULES[operator as usize].get(), operands, result)
}

/// Notes `result = array ** 2`.
#[cold]
pub(crate) fn note_square(array: &Bound<'_, NDArray>, result: &Bound<'_, NDArray>) -> PyResult<()> {
    note_rule(SQUARE.get(), &[array.as_any()], result)
}

fn note_rule(rule: Option<&Rule>, operands: &[&Bound<'_, PyAny>], result: &Bound<'_, NDArray>) -> PyResult<()> {
    let (py, Some(rule)) = (result.py(), rule) else { return Ok(()) };
    if !has_gradient(result.get().inner.dtype()) {
        return Ok(());
    }
    let Some(entries) = entries(py, operands)? else { return Ok(()) };
    let mask = of_wanted(rule.reads.into_iter(), &entries);
    let seen = inputs(py, operands, entries, mask)?;
    note(
        py,
        rule.op.clone_ref(py),
        Attributes::None,
        seen,
        std::slice::from_ref(result),
        &|at| reads(mask, RESULTS + at),
        0,
    )
}

/// Notes, if the tape listens, that `result` is the view of `x` that `op` gives by its attributes; without them, by its shape.
#[pyfunction]
#[pyo3(signature = (op, x, result, attributes=None))]
pub(crate) fn tape_hear_view<'py>(
    op: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    result: Bound<'py, NDArray>,
    attributes: Option<Py<PyAny>>,
) -> PyResult<()> {
    note_view(op, x, result, attributes.map_or(Attributes::Shape, Attributes::Known))
}

/// Notes, if the tape listens, that `result` is the part of `x` that `key` names, and that `op` gives.
#[pyfunction]
pub(crate) fn tape_hear_part<'py>(
    op: &Bound<'py, PyAny>,
    x: &Bound<'py, NDArray>,
    result: Bound<'py, NDArray>,
    key: Py<PyAny>,
) -> PyResult<()> {
    let x = now(x);
    note_view(op, x.as_any(), result, Attributes::Key(key, x.get().inner.layout().shape.len()))
}

fn note_view<'py>(
    op: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    result: Bound<'py, NDArray>,
    attributes: Attributes,
) -> PyResult<()> {
    let py = op.py();
    let operands = [x];
    let Some(entries) = entries(py, &operands)? else { return Ok(()) };
    let seen = inputs(py, &operands, entries, 0)?;
    note(py, op.clone().unbind(), attributes, seen, &[result], &|_| false, 0)
}

/// Lets this thread be heard again, and notes that the new arrays `results` are what `op` has for `operands`: `tape_hears` has
/// said that they are to be.
#[pyfunction]
pub(crate) fn tape_note_fresh<'py>(
    op: &Bound<'py, PyAny>,
    attributes: Option<Py<PyAny>>,
    operands: &Bound<'py, PyTuple>,
    results: &Bound<'py, PyTuple>,
) -> PyResult<()> {
    listen::resume();
    let operands: SmallVec<[_; 4]> = operands.iter().collect();
    let operands: SmallVec<[_; 4]> = operands.iter().collect();
    let results = results.iter().map(|result| Ok(result.cast_into::<NDArray>()?));
    let results = results.collect::<PyResult<SmallVec<[_; 4]>>>()?;
    let entries = entries_of(op.py(), &operands)?;
    note_entries(op, attributes.into(), &operands, entries, &results)
}
