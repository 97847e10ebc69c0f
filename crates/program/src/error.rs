//! The errors of a program, and of a call of one.

use weft_array::{ArrayError, OutOfMemory};

/// Why a recording became no program, or a program was not run. Nothing was pushed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// An array was refused.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// There is no memory for its intermediate values.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// There is no place for its intermediate values.
    #[error(transparent)]
    Plan(#[from] weft_plan::PlanError),
    /// The recording is none to be made a program of.
    #[error("{0}")]
    Recording(String),
    /// The arguments are not like those that were recorded.
    #[error("{0}")]
    Arguments(String),
}
