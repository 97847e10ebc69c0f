//! The statements of an op about itself, as types.

use super::Op;
use crate::error::RuleError;
use crate::value::{Attributes, DType, Shape};
use std::fmt;
use std::sync::Arc;

/// A call that a rule is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The op.
    pub op: &'a Arc<Op>,
    /// Its attributes.
    pub attributes: &'a Attributes,
    /// The shapes of inputs, as far as they are known.
    pub shapes: &'a [Shape],
    /// The dtypes of inputs, as far as they are known.
    pub dtypes: &'a [Option<DType>],
}

/// Finds shapes from shapes, forwards and backwards.
pub trait ShapeRule: Send + Sync {
    /// Writes what follows into `ins` and `outs`; leaves what does not.
    fn infer(&self, call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError>;
}

/// Finds dtypes from dtypes, forwards and backwards.
pub trait TypeRule: Send + Sync {
    /// Writes what follows into `ins` and `outs`; leaves what does not.
    fn infer(&self, call: &Call<'_>, ins: &mut [Option<DType>], outs: &mut [Option<DType>]) -> Result<(), RuleError>;
}

impl<F> ShapeRule for F
where
    F: Fn(&Call<'_>, &mut [Shape], &mut [Shape]) -> Result<(), RuleError> + Send + Sync,
{
    fn infer(&self, call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
        self(call, ins, outs)
    }
}

impl<F> TypeRule for F
where
    F: Fn(&Call<'_>, &mut [Option<DType>], &mut [Option<DType>]) -> Result<(), RuleError> + Send + Sync,
{
    fn infer(&self, call: &Call<'_>, ins: &mut [Option<DType>], outs: &mut [Option<DType>]) -> Result<(), RuleError> {
        self(call, ins, outs)
    }
}

/// The value of `infer_shape`.
pub type SharedShapeRule = Arc<dyn ShapeRule>;
/// The value of `infer_type`.
pub type SharedTypeRule = Arc<dyn TypeRule>;

/// Layouts of inputs and outputs: "NCHW", "`NCHW16c`"; None is any.
pub type Layouts = Vec<Option<Arc<str>>>;

/// Layouts of inputs and of outputs, and all attributes with which the op takes and makes these, where it needs others than
/// it has.
pub type Corrected = (Layouts, Layouts, Option<Attributes>);

/// The value of `layout`: from the layouts that inputs and outputs have, those that the op takes and makes.
pub trait LayoutRule: Send + Sync {
    /// Layouts of inputs and of outputs. `ins` are those wanted, `last_ins` those that the values have.
    fn correct(
        &self,
        call: &Call<'_>,
        ins: &Layouts,
        last_ins: &Layouts,
        outs: &Layouts,
    ) -> Result<Corrected, RuleError>;
}

impl<F> LayoutRule for F
where
    F: Fn(&Call<'_>, &Layouts, &Layouts, &Layouts) -> Result<(Layouts, Layouts), RuleError> + Send + Sync,
{
    fn correct(
        &self,
        call: &Call<'_>,
        ins: &Layouts,
        last_ins: &Layouts,
        outs: &Layouts,
    ) -> Result<Corrected, RuleError> {
        self(call, ins, last_ins, outs).map(|(ins, outs)| (ins, outs, None))
    }
}

/// The value of `layout`, shared.
pub type SharedLayout = Arc<dyn LayoutRule>;

/// How much an op costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost {
    /// So long.
    Seconds(f64),
    /// So many operations on numbers, so many bytes to move.
    Work {
        /// Operations.
        flops: f64,
        /// Bytes.
        bytes: f64,
    },
}

/// The value of `identity`: when the result of an op is its first input, bit for bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// Where both have one shape and one dtype.
    Like,
    /// Where that is real.
    Real,
}

/// The value of `cost`.
pub type OpCost = Arc<dyn Fn(&Call<'_>) -> Result<Cost, RuleError> + Send + Sync>;

/// The value of `workspace`: bytes that a call needs while it runs.
pub type OpWorkspace = Arc<dyn Fn(&Call<'_>) -> Result<u64, RuleError> + Send + Sync>;

/// The value of `parse`: attributes from the texts of a file.
pub type TextRule = Arc<dyn Fn(&[(Arc<str>, Arc<str>)]) -> Result<Attributes, RuleError> + Send + Sync>;

/// An op's answer for some attributes.
pub type Saying<T> = Arc<dyn Fn(&Attributes) -> Result<T, RuleError> + Send + Sync>;

/// Something that an op says once for all, or for each set of attributes.
#[derive(Clone)]
pub enum Given<T> {
    /// The same for all attributes.
    Fixed(T),
    /// It depends on the attributes.
    By(Saying<T>),
}

impl<T: Clone> Given<T> {
    /// The value for these attributes.
    pub fn of(&self, attributes: &Attributes) -> Result<T, RuleError> {
        match self {
            Self::Fixed(value) => Ok(value.clone()),
            Self::By(function) => function(attributes),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Given<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(value) => value.fmt(f),
            Self::By(_) => f.write_str("by attributes"),
        }
    }
}
