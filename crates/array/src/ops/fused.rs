//! Ops made of several strided loops.

use super::team::{self, Blocks, Crew};
use crate::Array;
use crate::door::{self, Call};
use crate::step::Fused;
use crate::{Access, ArrayError};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};
use weft_engine::trace::Note;
use weft_engine::{Cause, Device, OpContext, Payload};

/// Fused loops and their arrays, as a payload.
struct Run {
    step: Arc<Fused>,
    arrays: SmallVec<[Array; 4]>,
    device: Device,
}

/// Running fused loops.
struct Work {
    step: Arc<Fused>,
    pointers: SmallVec<[*mut u8; 4]>,
    /// Free memory for blocks.
    slots: Mutex<Vec<crate::step::Slots>>,
    /// The inputs and outputs. Dropped after the last block.
    arrays: Mutex<SmallVec<[Array; 4]>>,
}

// SAFETY: it points into the memory of arrays that its op may access; blocks are disjoint.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Blocks for Work {
    fn count(&self) -> usize {
        self.step.blocks()
    }

    fn block(&self, number: usize) {
        let kept = self.slots.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut slots = kept.unwrap_or_else(|| self.step.slots());
        // SAFETY: the accesses are granted, and each block is run once.
        unsafe { self.step.run_block(&self.pointers, number, &mut slots) };
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).push(slots);
    }

    fn finish(&self) -> Result<(), Cause> {
        let arrays = std::mem::take(&mut *self.arrays.lock().unwrap_or_else(PoisonError::into_inner));
        drop(arrays);
        Ok(())
    }
}

impl Payload for Run {
    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let start = |array: &Array| Ok(array.buffer().start()?.wrapping_add(array.layout().offset));
        let pointers = self.arrays.iter().map(start).collect::<Result<SmallVec<[*mut u8; 4]>, Cause>>()?;
        let Some(engine) = self.arrays.first().map(|array| array.engine().clone()) else { return Ok(()) };
        let crew = Crew { engine, device: self.device, note: Note::default() };
        let work = Work { step: self.step, pointers, slots: Mutex::default(), arrays: Mutex::new(self.arrays) };
        team::run(work, context, Some(crew))
    }
}

/// Pushes fused loops on these arrays.
pub(super) fn push_fused(step: &Arc<Fused>, call: &Call<'_>) -> Result<(), ArrayError> {
    let arrays = call.arrays.iter().map(|(array, _): &(&Array, Access)| (*array).clone()).collect();
    door::push(Run { step: Arc::clone(step), arrays, device: call.options.device }, call)
}
