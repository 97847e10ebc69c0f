//! What the steps of a call are told, and how they run.

use super::program::shifted;
use crate::memory::Lease;
use crate::recorded::Place;
use smallvec::SmallVec;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_array::{Arena, Array, Blocked, Buffer, Opaque, Operands, Portion, Storage, Together, granting, run_blocked};
use weft_engine::trace::Note;
use weft_engine::{Cause, Engine, Step, StepContext};

/// Where an entry lies in a call.
pub(super) enum Base {
    /// In a buffer, so many bytes from where it was recorded.
    Buffer(Arc<Buffer>, isize),
    /// In memory of the host that was made for the call. It does not hold the buffer: who has the one handle on that can
    /// give it away while the call is under way.
    Made(Arc<Storage>),
    /// The same, in the place of an argument that was given away.
    Given(Arc<Storage>, Arc<Storage>),
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
    /// For each part, which of its members are to run.
    pub(super) wanted: Vec<Mutex<u64>>,
}

impl Bindings {
    fn wanted(&self, part: usize) -> MutexGuard<'_, u64> {
        self.wanted[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first byte of an entry, or what stands for it. Allocates.
    #[inline]
    fn start(&self, entry: u32) -> Result<*mut u8, Cause> {
        match &self.bases[entry as usize] {
            Base::Buffer(buffer, by) => Ok(buffer.start()?.wrapping_offset(*by)),
            Base::Made(storage) => storage.start(),
            Base::Given(storage, from) => storage.start_in(from),
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
        unsafe { self.portion.run(&pointers) };
        Ok(())
    }

    fn note(&self, bindings: &Bindings) -> Note {
        bindings.notes.get(self.instruction).copied().unwrap_or_default()
    }
}

/// A step whose blocks share memory: idle workers help with them.
pub(super) struct BlockedStep {
    pub(super) step: Arc<dyn Blocked>,
    pub(super) places: Places,
    pub(super) instruction: usize,
}

impl Step<Bindings> for BlockedStep {
    fn run(&self, bindings: &Bindings, context: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        let operands = self.places.operands(bindings)?;
        match context.op() {
            // SAFETY: entries have the layouts that were recorded, as those of the step were.
            Some(context) => unsafe { run_blocked(&self.step, &operands, context, self.note(bindings)) },
            None => unreachable!("such a step has a cell"),
        }
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

/// The arrays of a step that is no loop.
pub(super) struct Places {
    pub(super) engine: Engine,
    pub(super) places: Vec<Place>,
}

impl Places {
    /// A buffer on the arena: of what nobody else's code sees, for as long as the step runs.
    fn within(&self, bindings: &Bindings, place: &Place) -> Result<Arc<Buffer>, Cause> {
        let entry = u32::try_from(place.entry).map_err(|error| Cause::Error(Box::new(error)))?;
        let start = bindings.start(entry)?;
        let Some(start) = NonNull::new(start) else { return Err(Cause::Panic("an arena has memory".to_owned())) };
        // SAFETY: the call holds the arena until the step is done, and only private steps have arrays there, which keep
        // none of them.
        Ok(unsafe { Buffer::foreign(&self.engine, start, place.range.end, false, Box::new(())) })
    }

    fn operands(&self, bindings: &Bindings) -> Result<Operands, Cause> {
        let operand = |place: &Place| {
            let (buffer, by) = match &bindings.bases[place.entry] {
                Base::Buffer(buffer, by) => (Arc::clone(buffer), *by),
                _ => (self.within(bindings, place)?, 0),
            };
            let array = Array::on(buffer, shifted(&place.layout, by), place.dtype);
            Ok((array.map_err(|error| Cause::Error(Box::new(error)))?, place.access))
        };
        self.places.iter().map(operand).collect()
    }
}

/// An opaque step.
pub(super) struct OpaqueStep {
    pub(super) step: Arc<dyn Opaque>,
    pub(super) places: Places,
    pub(super) instruction: usize,
}

impl Step<Bindings> for OpaqueStep {
    fn run(&self, bindings: &Bindings, context: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        let operands = self.places.operands(bindings)?;
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

/// A member of a part, which says that it is to run.
pub(super) struct MemberStep {
    pub(super) step: Arc<dyn Opaque>,
    pub(super) part: usize,
    /// Its place in the part.
    pub(super) member: usize,
}

impl Step<Bindings> for MemberStep {
    fn run(&self, bindings: &Bindings, _: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        *bindings.wanted(self.part) |= 1 << self.member;
        Ok(())
    }

    fn skipped(&self, _: &Bindings) {
        self.step.discard();
    }
}

/// What issues the members of a part.
pub(super) struct PartStep {
    pub(super) together: Arc<dyn Together>,
    pub(super) members: Vec<(Arc<dyn Opaque>, Places)>,
    pub(super) part: usize,
}

impl Step<Bindings> for PartStep {
    fn run(&self, bindings: &Bindings, _: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        let wanted = *bindings.wanted(self.part);
        let mut steps: Vec<(&dyn Opaque, Operands)> = Vec::with_capacity(self.members.len());
        for (at, (step, places)) in self.members.iter().enumerate() {
            if wanted >> at & 1 == 1 {
                steps.push((&**step, places.operands(bindings)?));
            }
        }
        if steps.is_empty() { Ok(()) } else { self.together.run(&steps, steps.len() == self.members.len()) }
    }
}
