//! Native steps and their arrays, as payloads.

use crate::step::Step;
use crate::{Access, Array};
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
