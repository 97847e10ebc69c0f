//! Steps: the computations of ops, apart from their memory.

mod blocked;
mod bound;
mod cast;
mod chain;
mod choose;
mod exact;
mod extreme;
mod fused;
mod kernel;
mod lifetimes;
mod lines;
mod matmul;
mod opaque;
mod portion;
mod reduce;
mod sort;
mod strided;
mod trial;
mod walk;

pub use blocked::{Blocked, Lanes};
pub(crate) use bound::{Bound, Plan, Prepared, RunBound};
pub use cast::{cast_loop, is_cast_apart};
pub use choose::choose_loop;
pub(crate) use extreme::Extreme;
pub use extreme::Which;
pub use fused::{Fused, Part, Slots};
pub(crate) use kernel::signed;
pub use kernel::{StridedLoop, copy_loop};
pub(crate) use lifetimes::{Lifetimes, Source};
pub use matmul::Matmul;
pub(crate) use opaque::{Hosted, Native};
pub use opaque::{Issued, Members, Neighbour, Opaque, Together};
pub use portion::Portion;
pub use reduce::Reduce;
pub use sort::{SortLoop, sort_step};
pub use strided::{Operand, Strided};
pub(crate) use walk::{PER_BYTE, Walk};

use crate::{Access, Array, ArrayError, DType};
use std::sync::Arc;

/// What a call runs: as often as it is asked to, on whatever memory has the layouts that it was made for.
#[derive(Clone)]
pub enum Step {
    /// A strided loop, element by element.
    Strided(Arc<Strided>),
    /// A reduction.
    Reduce(Arc<Reduce>),
    /// A product of matrices.
    Matmul(Arc<Matmul>),
    /// Strided loops, block by block.
    Fused(Arc<Fused>),
    /// A kernel of somebody else's, block by block.
    Blocked(Arc<dyn Blocked>),
    /// A callable, a native function: known by its accesses alone.
    Opaque(Arc<dyn Opaque>),
}

impl Step {
    /// The numbers that it was given instead of arrays, as bytes: two steps that differ in them are not the same.
    #[must_use]
    pub fn numbers(&self) -> Vec<[u8; 16]> {
        if let Self::Strided(strided) = self { strided.numbers().copied().collect() } else { Vec::new() }
    }

    /// For each input of a strided loop the number that it was given instead of an array, as bytes of this type.
    #[must_use]
    pub fn operands(&self) -> Option<Vec<Given>> {
        if let Self::Strided(strided) = self { Some(strided.operands()) } else { None }
    }

    /// Whether it runs on any thread, on pointers alone.
    #[must_use]
    #[inline]
    pub fn is_native(&self) -> bool {
        !matches!(self, Self::Opaque(_))
    }

    /// Whether it may fail where its inputs have been made: then it runs though nobody looks at what it makes.
    #[must_use]
    pub fn may_fail(&self) -> bool {
        match self {
            Self::Blocked(step) => step.may_fail(),
            Self::Opaque(step) => step.may_fail(),
            Self::Strided(_) | Self::Reduce(_) | Self::Matmul(_) | Self::Fused(_) => false,
        }
    }

    /// About how many nanoseconds it takes; of what only its author knows, the most that there are.
    #[must_use]
    pub fn nanoseconds(&self) -> usize {
        match self {
            Self::Strided(step) => step.nanoseconds(),
            Self::Reduce(step) => step.nanoseconds(),
            Self::Matmul(step) => step.nanoseconds(),
            Self::Fused(step) => step.nanoseconds(),
            Self::Blocked(_) | Self::Opaque(_) => usize::MAX,
        }
    }

    /// Runs it where its arrays are: inputs first, then outputs.
    ///
    /// # Errors
    ///
    /// Kernels and opaque steps are refused: they are run by ops, which know how they fail.
    ///
    /// # Safety
    ///
    /// Each pointer is to the first element of an operand of the layout that the step was made for, which nobody else
    /// writes to, and of an output which nobody else reads.
    #[inline]
    pub unsafe fn run(&self, arrays: &[*mut u8]) -> Result<(), ArrayError> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Strided(step) => step.run(arrays),
                Self::Reduce(step) => step.run(arrays),
                Self::Matmul(step) => step.run(arrays),
                Self::Fused(step) => step.run(arrays),
                Self::Blocked(_) | Self::Opaque(_) => {
                    let message = "a kernel or an opaque step does not run on pointers alone: push it";
                    return Err(ArrayError::Invalid(message.to_owned()));
                }
            }
        }
        Ok(())
    }
}

/// An input of a strided loop: none if that is an array, else the bytes of a number, and its type.
pub type Given = Option<([u8; 16], DType)>;

/// The operands of a step, each with what is done to it: inputs first.
pub type Operands = Vec<(Array, Access)>;
