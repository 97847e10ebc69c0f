//! One value of an attribute.

use super::DType;
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A value that this crate cannot look into: an object of the language that made the node.
pub trait Opaque: Any + Send + Sync + fmt::Debug {
    /// Whether it equals another.
    fn equals(&self, other: &dyn Opaque) -> bool;
    /// A hash that equal values share.
    fn hash(&self) -> u64;
    /// Itself, to be downcast.
    fn as_any(&self) -> &dyn Any;
}

/// A value of an attribute: immutable, compared and hashed by value; floats by their bits.
#[derive(Debug, Clone)]
pub enum Value {
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
    /// Text.
    Text(Arc<str>),
    /// The type of elements.
    DType(DType),
    /// A sequence of values.
    Tuple(Arc<[Value]>),
    /// Start, stop and step.
    Slice(Arc<[Value; 3]>),
    /// The axes that an index leaves out.
    Ellipsis,
    /// In a list of operands, the next input.
    Input,
    /// An object of another language.
    Opaque(Arc<dyn Opaque>),
}

impl Value {
    /// A text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// A sequence of integers.
    pub fn integers(values: impl IntoIterator<Item = i64>) -> Self {
        Self::Tuple(values.into_iter().map(Self::Int).collect())
    }

    /// The integer that it is; a truth value is 0 or 1.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    /// The truth value that it is.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Int(value @ (0 | 1)) => Some(*value == 1),
            _ => None,
        }
    }

    /// The integers that it holds; one integer counts as a sequence of one.
    #[must_use]
    pub fn as_integers(&self) -> Option<Vec<i64>> {
        match self {
            Self::Tuple(values) => values.iter().map(Self::as_int).collect(),
            _ => self.as_int().map(|value| vec![value]),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) | (Self::Ellipsis, Self::Ellipsis) | (Self::Input, Self::Input) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Complex(a, b), Self::Complex(c, d)) => a.to_bits() == c.to_bits() && b.to_bits() == d.to_bits(),
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::DType(a), Self::DType(b)) => a == b,
            (Self::Tuple(a), Self::Tuple(b)) => a == b,
            (Self::Slice(a), Self::Slice(b)) => a == b,
            (Self::Opaque(a), Self::Opaque(b)) => a.equals(&**b),
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::None | Self::Ellipsis | Self::Input => {}
            Self::Bool(value) => value.hash(state),
            Self::Int(value) => value.hash(state),
            Self::Float(value) => value.to_bits().hash(state),
            Self::Complex(real, imaginary) => (real.to_bits(), imaginary.to_bits()).hash(state),
            Self::Text(value) => value.hash(state),
            Self::DType(value) => value.hash(state),
            Self::Tuple(value) => value.hash(state),
            Self::Slice(value) => value.hash(state),
            Self::Opaque(value) => Opaque::hash(&**value).hash(state),
        }
    }
}
