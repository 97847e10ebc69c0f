//! Steps: the computations of ops, apart from their memory.

mod blocked;
mod bound;
mod cast;
mod chain;
mod choose;
mod exact;
mod extreme;
mod fused;
mod halves;
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
pub(crate) use bound::{Bound, Prepared, RunBound};
pub use cast::{cast_loop, is_cast_apart};
pub use choose::choose_loop;
pub(crate) use extreme::Extreme;
pub use extreme::Which;
pub use fused::{Fused, Part};
pub use halves::half_loop;
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

/// The computation of a call: it runs many times, on any memory of the layouts that it was made for.
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
    /// A kernel of another crate, block by block.
    Blocked(Arc<dyn Blocked>),
    /// A callable or a native function. Only its accesses are known.
    Opaque(Arc<dyn Opaque>),
}

impl Step {
    /// The numbers among its operands, as bytes: steps with other numbers are other steps.
    #[must_use]
    pub fn numbers(&self) -> Vec<[u8; 16]> {
        if let Self::Strided(strided) = self { strided.numbers().copied().collect() } else { Vec::new() }
    }

    /// For each input of a strided loop the number given in place of an array, as bytes of this type.
    #[must_use]
    pub fn operands(&self) -> Option<Vec<Given>> {
        if let Self::Strided(strided) = self { Some(strided.operands()) } else { None }
    }

    /// Whether it runs on any thread, from pointers alone.
    #[must_use]
    #[inline]
    pub fn is_native(&self) -> bool {
        !matches!(self, Self::Opaque(_))
    }

    /// Whether it may fail on ready inputs: then it runs even if its results are unused.
    #[must_use]
    pub fn may_fail(&self) -> bool {
        match self {
            Self::Blocked(step) => step.may_fail(),
            Self::Opaque(step) => step.may_fail(),
            Self::Strided(_) | Self::Reduce(_) | Self::Matmul(_) | Self::Fused(_) => false,
        }
    }

    /// Its duration in nanoseconds, about; the maximum for an opaque step, as only its author knows.
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

    /// Runs it on these arrays: inputs first, then outputs.
    ///
    /// # Errors
    ///
    /// Kernels and opaque steps are refused: ops run them, which know how they fail.
    ///
    /// # Safety
    ///
    /// Each pointer is to the first element of an operand of the layout that the step was made for. Inputs have no
    /// other writer, and outputs no other user.
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
                    let message = "a kernel or an opaque step does not run on pointers alone: it needs an op";
                    return Err(ArrayError::Invalid(message.to_owned()));
                }
            }
        }
        Ok(())
    }
}

/// An input of a strided loop: None for an array, else the bytes of a number, and its type.
pub type Given = Option<([u8; 16], DType)>;

/// The operands of a step with their accesses, inputs first.
pub type Operands = Vec<(Array, Access)>;
