//! Why nothing was planned.

use std::fmt;

/// Why a plan was refused, or cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The columns that describe the intervals differ in length.
    #[error("lower, upper and size have {lower}, {upper} and {size} elements; each interval needs one element of each")]
    Lengths {
        /// Elements of `lower`.
        lower: usize,
        /// Elements of `upper`.
        upper: usize,
        /// Elements of `size`.
        size: usize,
    },
    /// An interval ends before it begins.
    #[error("interval {index} ends before it begins: lower is {lower}, upper is {upper}")]
    Reversed {
        /// Which one.
        index: usize,
        /// Its begin.
        lower: i64,
        /// Its end.
        upper: i64,
    },
    /// The alignment is no power of two.
    #[error("alignment is {0}; it must be a power of two, and at least 1")]
    Alignment(u64),
    /// The sizes, each rounded up to the alignment, add up to more than 63 bits hold.
    #[error(
        "the sizes up to that of interval {index} add up to more than 2**63 - 1 bytes; divide them by a common unit"
    )]
    TooLarge {
        /// The interval with which the sum was too large.
        index: usize,
    },
    /// The time for the search is no number of seconds.
    #[error("seconds is {0}; it must be a number of at least 0")]
    Seconds(f64),
    /// No placement can fit.
    #[error(
        "capacity is {capacity} bytes, but no placement takes less than {bound} bytes: that many are live at the same time at \
         time {time}"
    )]
    Capacity {
        /// What was asked for.
        capacity: u64,
        /// The lower bound that it is below.
        bound: u64,
        /// When so many bytes are live.
        time: i64,
    },
    /// The search has seen all placements: none fits.
    #[error(
        "no placement fits a capacity of {capacity} bytes, though at most {bound} bytes are live at the same time: the search \
         has ruled all out; the best found takes {best} bytes"
    )]
    Impossible {
        /// What was asked for.
        capacity: u64,
        /// The peak of live bytes, below which nothing can be.
        bound: u64,
        /// The size of the best placement found.
        best: u64,
    },
    /// The search ended before it found a placement that fits, or knew that there is none.
    #[error(
        "no placement found that fits a capacity of {capacity} bytes: the lower bound is {bound} bytes (live at the same time), \
         the best found takes {best} bytes{}; raise the capacity, or seconds", .after
    )]
    NotFound {
        /// What was asked for.
        capacity: u64,
        /// The peak of live bytes, below which nothing can be.
        bound: u64,
        /// The size of the best placement found.
        best: u64,
        /// How far the search went.
        after: Effort,
    },
    /// An op of a graph names a value, or a value an op, that is not there.
    #[error("{what}")]
    Graph {
        /// The fault, with names.
        what: String,
    },
    /// No choice of recomputed ops fits the limit.
    #[error(
        "memory_limit is {limit} bytes, but the least that recomputation reaches is {best} bytes, and no plan takes \
         less than {bound} bytes: op {op} alone needs them"
    )]
    Limit {
        /// What was asked for.
        limit: u64,
        /// The smallest arena found.
        best: u64,
        /// The lower bound: inputs, outputs and workspace of one op, and values that must stay.
        bound: u64,
        /// The op that needs the bound.
        op: String,
    },
    /// The caller gave up.
    #[error("planning was interrupted")]
    Interrupted,
}

/// How far a search went before it gave up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effort {
    /// As long as it was allowed to.
    Seconds(f64),
    /// As many steps as it takes by default.
    Steps(u64),
}

impl fmt::Display for Effort {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(to, " after {seconds} s"),
            Self::Steps(steps) => write!(to, " after {steps} steps"),
        }
    }
}
