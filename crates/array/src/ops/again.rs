//! Recorded steps, pushed on other arrays.

use super::{blocked, elementwise, fused};
use crate::door::{self, Call};
use crate::step::{Operands, Step};
use crate::{Access, Array, ArrayError};
use smallvec::SmallVec;
use weft_engine::{Cause, OpContext, Payload};

/// A native step and its arrays, inputs first, as a payload.
pub(crate) struct On {
    step: Step,
    arrays: SmallVec<[Array; 3]>,
}

/// The payload that runs a native step on these arrays.
pub(crate) fn on(step: Step, arrays: &[(&Array, Access)]) -> On {
    On { step, arrays: arrays.iter().map(|(array, _)| (*array).clone()).collect() }
}

impl Payload for On {
    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        let start = |array: &Array| Ok(array.buffer().start()?.wrapping_add(array.layout().offset));
        let pointers = self.arrays.iter().map(start).collect::<Result<SmallVec<[*mut u8; 3]>, Cause>>()?;
        // SAFETY: the accesses are granted, and the arrays have the layouts that the step was made for.
        unsafe { self.step.run(&pointers) }.map_err(|error| Cause::Error(Box::new(error)))
    }
}

/// Pushes a step once more, on the arrays of the call; a native step's inputs come first. The caller has waited for
/// room.
///
/// # Safety
///
/// The arrays of a native step have the dtypes and, except for the offsets, the layouts that it was made for. They
/// overlap as those did.
pub unsafe fn push_step(step: &Step, call: Call<'_>) -> Result<(), ArrayError> {
    match step {
        Step::Strided(strided) => elementwise::push_again(strided, call),
        Step::Opaque(opaque) => {
            let held: Operands = call.arrays.iter().map(|(array, access)| ((*array).clone(), *access)).collect();
            // SAFETY: the caller's promise.
            unsafe { door::push_opaque(opaque, held, &call) }
        }
        Step::Fused(fused) => fused::push_fused(fused, &call),
        Step::Blocked(blocked) => door::push(blocked::payload(blocked, &call), &call),
        Step::Reduce(_) | Step::Matmul(_) => door::push(on(step.clone(), call.arrays), &call),
    }
}
