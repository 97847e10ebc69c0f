//! The mistakes of a graph, and their places.

use std::error::Error;
use weft_plan::PlanError;

/// What a rule of an op refuses with.
pub type RuleError = Box<dyn Error + Send + Sync>;

/// Why a named rule refuses a call: the class of the mistake, for callers outside graphs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Shapes, or values of attributes, do not go together.
    #[error("{0}")]
    Value(String),
    /// An attribute is of another class, or operands are too many or too few.
    #[error("{0}")]
    Type(String),
    /// There is no such axis.
    #[error("axis {axis} is out of bounds for array of dimension {rank}")]
    Axis {
        /// The axis as given.
        axis: i64,
        /// The number of axes.
        rank: usize,
    },
}

/// Why a graph cannot be made, read or passed on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The graph, or what was asked of it, is wrong.
    #[error("{message}")]
    Graph {
        /// What is wrong, and what to do.
        message: String,
        /// The place of the node that is meant, as its maker numbers places; 0 is none.
        place: u64,
    },
    /// Shapes, or dtypes, contradict each other.
    #[error("{message}")]
    Shape {
        /// The node, the input and both shapes.
        message: String,
        /// As above.
        place: u64,
    },
    /// A gradient cannot be found.
    #[error("{message}")]
    Gradient {
        /// Which, and what to do.
        message: String,
        /// As above.
        place: u64,
    },
    /// Memory cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A rule of an op refused its node.
    #[error("{context}: {source}")]
    Rule {
        /// The node and its op.
        context: String,
        /// What the rule said.
        source: RuleError,
        /// As above.
        place: u64,
        /// Whether the rule was one for shapes or dtypes.
        of_shapes: bool,
    },
}

impl GraphError {
    /// What a rule said of a call, with the name of the node that it would have been.
    #[must_use]
    pub(crate) fn of_node(self, name: &str) -> Self {
        match self {
            Self::Rule { context, source, place, of_shapes } => {
                Self::Rule { context: format!("node '{name}' ({context})"), source, place, of_shapes }
            }
            other => other,
        }
    }

    /// An error of the graph as such.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Graph { message: message.into(), place: 0 }
    }

    /// The place of the node that is meant; 0 is none.
    #[must_use]
    pub fn place(&self) -> u64 {
        match self {
            Self::Graph { place, .. }
            | Self::Shape { place, .. }
            | Self::Gradient { place, .. }
            | Self::Rule { place, .. } => *place,
            Self::Plan(_) => 0,
        }
    }
}

/// What the functions of this crate return.
pub type Result<T, E = GraphError> = std::result::Result<T, E>;
