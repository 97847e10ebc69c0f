//! What the steps of a call are told, and how they run.

use super::program::shifted;
use crate::memory::Lease;
use crate::recorded::Place;
use smallvec::SmallVec;
use std::sync::Arc;
use weft_array::{Access, Arena, Array, Buffer, Opaque, Operands, Portion, granting};
use weft_engine::trace::Note;
use weft_engine::{Cause, Step, StepContext};

/// Where an entry lies in a call.
pub(super) enum Base {
    /// In a buffer, so many bytes from where it was recorded.
    Buffer(Arc<Buffer>, isize),
    /// In the arena, so many bytes from its start.
    Arena(usize),
    /// It has no use.
    Nowhere,
}

/// One call.
pub(super) struct Bindings {
    pub(super) bases: Vec<Base>,
    pub(super) lease: Option<Lease>,
    /// What a trace is to know of the instructions; empty if there is none.
    pub(super) notes: Vec<Note>,
}

impl Bindings {
    /// The first byte of an entry, or what stands for it. Allocates.
    #[inline]
    fn start(&self, entry: u32) -> Result<*mut u8, Cause> {
        match &self.bases[entry as usize] {
            Base::Buffer(buffer, by) => Ok(buffer.start()?.wrapping_offset(*by)),
            Base::Arena(offset) => match &self.lease {
                Some(lease) => {
                    let start = lease.start().map_err(|error| Cause::Error(Box::new(error)))?;
                    Ok(start.wrapping_add(*offset))
                }
                None => unreachable!("a call whose temporaries have places has an arena"),
            },
            Base::Nowhere => unreachable!("what a step touches is somewhere"),
        }
    }
}

/// A native step, or a part of one, and where its operands lie: entries, bytes from their starts.
pub(super) struct NativeStep {
    pub(super) portion: Portion,
    pub(super) operands: Box<[(u32, usize)]>,
    /// The number of its instruction.
    pub(super) instruction: usize,
}

impl Step<Bindings> for NativeStep {
    fn run(&self, bindings: &Bindings, _: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        let mut pointers: SmallVec<[*mut u8; 6]> = SmallVec::new();
        for (entry, offset) in &self.operands {
            pointers.push(bindings.start(*entry)?.wrapping_add(*offset));
        }
        // SAFETY: entries have the layouts that were recorded; who else touches these bytes comes before or after this
        // step, or looks at them as it does: see the module's head.
        unsafe { self.portion.run(&pointers) }
    }

    fn note(&self, bindings: &Bindings) -> Note {
        bindings.notes.get(self.instruction).copied().unwrap_or_default()
    }
}

/// A copy of a constant's values to where the call may change them.
pub(super) struct CopyStep {
    pub(super) from: Array,
    pub(super) to: u32,
}

impl Step<Bindings> for CopyStep {
    fn run(&self, bindings: &Bindings, _: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        let (from, to) = (self.from.buffer().start()?, bindings.start(self.to)?);
        // SAFETY: both have as many bytes, and are distinct; who writes to the copy comes after this step.
        unsafe { from.copy_to_nonoverlapping(to, self.from.buffer().bytes()) };
        Ok(())
    }
}

/// An opaque step, and the places of its arrays.
pub(super) struct OpaqueStep {
    pub(super) step: Arc<dyn Opaque>,
    pub(super) places: Vec<Place>,
    pub(super) instruction: usize,
}

impl OpaqueStep {
    fn operands(&self, bindings: &Bindings) -> Result<Operands, Cause> {
        let operand = |place: &Place| {
            let Base::Buffer(buffer, by) = &bindings.bases[place.entry] else {
                unreachable!("what somebody else's code sees is in no arena")
            };
            let array = Array::on(Arc::clone(buffer), shifted(&place.layout, *by), place.dtype);
            Ok((array.map_err(|error| Cause::Error(Box::new(error)))?, place.access))
        };
        self.places.iter().map(operand).collect()
    }
}

impl Step<Bindings> for OpaqueStep {
    fn run(&self, bindings: &Bindings, context: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        let operands: Vec<(Array, Access)> = self.operands(bindings)?;
        match context.op() {
            Some(context) => granting(&operands, || self.step.run(&operands, context)),
            None => unreachable!("an opaque step has a cell"),
        }
    }

    fn skipped(&self, _: &Bindings) {
        self.step.discard();
    }

    fn note(&self, bindings: &Bindings) -> Note {
        bindings.notes.get(self.instruction).copied().unwrap_or_default()
    }
}
