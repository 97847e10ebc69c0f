//! Operands as plans and ways classify them.

use crate::array::NDArray;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};
use smallvec::SmallVec;
use weft_array::DType;

/// An array's dtype, or the class of a Python number, which takes the dtype of the arrays beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Array(DType),
    Bool,
    Int,
    Float,
    Complex,
}

pub(super) type Kinds = SmallVec<[Kind; 3]>;

/// An operand at which a walk has looked: an array at home, or another object, such as a number.
#[derive(Clone, Copy)]
pub(super) enum Taken<'a, 'py> {
    Array(&'a Bound<'py, NDArray>),
    Other(&'a Bound<'py, PyAny>),
}

impl<'a, 'py> Taken<'a, 'py> {
    /// None for an array that another handle stands for.
    #[inline]
    pub(super) fn of(operand: &'a Bound<'py, PyAny>) -> Option<Self> {
        let Ok(array) = operand.cast::<NDArray>() else { return Some(Self::Other(operand)) };
        let own = array.get();
        (!own.tape.is_moved() || own.stand_in(operand.py()).is_none()).then_some(Self::Array(array))
    }

    #[inline]
    pub(super) fn array(&self) -> Option<&'a Bound<'py, NDArray>> {
        if let Self::Array(array) = self { Some(array) } else { None }
    }

    #[inline]
    pub(super) fn any(&self) -> &'a Bound<'py, PyAny> {
        match self {
            Self::Array(array) => array.as_any(),
            Self::Other(other) => other,
        }
    }

    /// The operand's kind. None for an operand that must become an array first.
    #[inline]
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Array(array) => Some(Kind::Array(array.get().inner.dtype())),
            Self::Other(other) => Kind::of_number(other),
        }
    }

    /// The operand's shape; a number has no axes.
    #[inline]
    pub(super) fn shape(&self) -> &'a [usize] {
        self.array().map_or(&[], |array| array.get().inner.layout().shape.as_slice())
    }

    /// Whether the tape may know the operand.
    #[inline]
    pub(super) fn is_known(&self) -> bool {
        self.array().is_some_and(|array| array.get().tape.is_known())
    }
}

impl Kind {
    /// The kind of an operand on any device.
    pub(super) fn of(operand: &Bound<'_, PyAny>) -> Option<Self> {
        match operand.cast::<NDArray>() {
            Ok(array) => Some(array.get().at(operand.py(), |own| Self::Array(own.inner.dtype()))),
            Err(_) => Self::of_number(operand),
        }
    }

    #[inline]
    pub(super) fn of_number(operand: &Bound<'_, PyAny>) -> Option<Self> {
        if operand.is_exact_instance_of::<PyFloat>() {
            Some(Self::Float)
        } else if operand.is_exact_instance_of::<PyInt>() {
            Some(Self::Int)
        } else if operand.is_exact_instance_of::<PyBool>() {
            Some(Self::Bool)
        } else if operand.is_exact_instance_of::<PyComplex>() {
            Some(Self::Complex)
        } else {
            None
        }
    }

    pub(super) fn is_array(self) -> bool {
        matches!(self, Self::Array(_))
    }

    /// The kind as a number of five bits.
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Array(dtype) => dtype as u64,
            Self::Bool => 28,
            Self::Int => 29,
            Self::Float => 30,
            Self::Complex => 31,
        }
    }
}

const _: () = assert!(DType::COUNT <= 28);

/// Kinds as one number; None for more operands than any ufunc has.
#[inline]
pub(super) fn packed(kinds: &[Kind]) -> Option<u64> {
    (kinds.len() <= 8).then(|| kinds.iter().fold(1, |packed, kind| packed << 5 | kind.number()))
}
