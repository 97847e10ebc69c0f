//! Attributes in the key of a way: numbers, names, dtypes, and tuples and lists of these. They are compared without
//! Python.

use super::entry::Named;
use crate::interpreter::dtypes;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};
use weft_array::DType;

/// Levels of nested tuples at most; attributes with deeper ones are not remembered.
const DEPTH: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// By its bits: a NaN is the same one, and -0.0 is not 0.0.
    Float(u64),
    Text(Box<str>),
    DType(DType),
    Tuple(Box<[Value]>),
    List(Box<[Value]>),
}

/// Values of attributes, in the order given. Their names come from few call sites, so that mostly the objects are the
/// same.
pub(super) type Values = Box<[(Py<PyString>, Value)]>;

impl Value {
    fn of(x: &Bound<'_, PyAny>, depth: usize) -> Option<Self> {
        if x.is_none() {
            return Some(Self::None);
        }
        if let Ok(number) = x.cast_exact::<PyInt>() {
            return number.extract().ok().map(Self::Int);
        }
        if let Ok(truth) = x.cast_exact::<PyBool>() {
            return Some(Self::Bool(truth.is_true()));
        }
        if let Ok(number) = x.cast_exact::<PyFloat>() {
            return Some(Self::Float(number.value().to_bits()));
        }
        if let Ok(text) = x.cast_exact::<PyString>() {
            return text.to_str().ok().map(|text| Self::Text(text.into()));
        }
        let rest = depth.checked_sub(1)?;
        if let Ok(items) = x.cast_exact::<PyTuple>() {
            return items.iter().map(|item| Self::of(&item, rest)).collect::<Option<_>>().map(Self::Tuple);
        }
        if let Ok(items) = x.cast_exact::<PyList>() {
            return items.iter().map(|item| Self::of(&item, rest)).collect::<Option<_>>().map(Self::List);
        }
        dtypes::known_as(x).ok().flatten().map(Self::DType)
    }
}

/// Attributes as values; None if one is of another class.
pub(super) fn values(attributes: &Named<'_, '_>) -> Option<Values> {
    attributes.iter().map(|(name, value)| Some(((**name).clone().unbind(), Value::of(value, DEPTH)?))).collect()
}

/// Whether the attributes have these values.
#[inline]
pub(super) fn are(attributes: &Named<'_, '_>, known: &Values) -> bool {
    attributes.len() == known.len()
        && attributes.iter().zip(known).all(|((name, value), (known_name, known))| {
            (name.is(known_name)
                || name
                    .to_str()
                    .is_ok_and(|name| known_name.bind(value.py()).to_str().is_ok_and(|known| known == name)))
                && is(value, known)
        })
}

fn is(x: &Bound<'_, PyAny>, known: &Value) -> bool {
    match known {
        Value::None => x.is_none(),
        Value::Bool(known) => x.cast_exact::<PyBool>().is_ok_and(|truth| truth.is_true() == *known),
        Value::Int(known) => {
            x.cast_exact::<PyInt>().is_ok_and(|number| number.extract::<i64>().is_ok_and(|number| number == *known))
        }
        Value::Float(known) => x.cast_exact::<PyFloat>().is_ok_and(|number| number.value().to_bits() == *known),
        Value::Text(known) => {
            x.cast_exact::<PyString>().is_ok_and(|text| text.to_str().is_ok_and(|text| text == &**known))
        }
        Value::DType(known) => dtypes::known_as(x).is_ok_and(|dtype| dtype == Some(*known)),
        Value::Tuple(known) => x.cast_exact::<PyTuple>().is_ok_and(|items| {
            items.len() == known.len() && items.iter().zip(known).all(|(item, known)| is(&item, known))
        }),
        Value::List(known) => x.cast_exact::<PyList>().is_ok_and(|items| {
            items.len() == known.len() && items.iter().zip(known).all(|(item, known)| is(&item, known))
        }),
    }
}
