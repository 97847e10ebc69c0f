//! The arguments of the steps of a call, and their execution.

use super::layout_cache::Keeper;
use super::program::shifted;
use crate::memory::Lease;
use crate::recorded::EntryAccess;
use smallvec::SmallVec;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use weft_array::{
    Arena, Array, Blocked, Buffer, Issued, Members, Opaque, Operands, Ownership, Portion, Storage, Together, Versions,
    granting, run_blocked,
};
use weft_engine::trace::Note;
use weft_engine::{Cause, Engine, Step, StepContext};

/// Where an entry lies in a call.
pub(super) enum Base {
    /// In a buffer, so many bytes from where it was recorded.
    Buffer(Arc<Buffer>, isize),
    /// In memory of the host that was made for the call. It does not hold the buffer: the owner of the only handle can
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
    /// The traced facts of the instructions; empty without a trace.
    pub(super) notes: Vec<Note>,
    /// Members of parts, by the numbers of both, that are not to run.
    pub(super) left_out: Mutex<Vec<(usize, usize)>>,
    /// Entries whose versions are noted when the call is pushed, and these.
    pub(super) versions: (SmallVec<[usize; 16]>, OnceLock<Versions>),
}

impl Bindings {
    fn left_out(&self) -> MutexGuard<'_, Vec<(usize, usize)>> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The members of a part that are not to run, as bits.
    pub(super) fn left_out_of(&self, part: usize) -> u64 {
        let of_part = |(known, member): &(usize, usize)| if *known == part { 1 << member } else { 0 };
        self.left_out().iter().map(of_part).fold(0, |all, one: u64| all | one)
    }

    /// Notes that a member of a part is not to run.
    pub(super) fn leave_out(&self, part: usize, member: usize) {
        self.left_out().push((part, member));
    }

    /// The version of an entry's buffer that the call reads, if that was noted.
    pub(super) fn version(&self, entry: usize) -> Option<u64> {
        let (entries, versions) = &self.versions;
        let at = entries.iter().position(|known| *known == entry)?;
        versions.get()?.get(at).copied()
    }

    /// The first byte of an entry, or of its substitute. Allocates.
    #[inline]
    fn start(&self, entry: u32) -> Result<*mut u8, Cause> {
        match &self.bases[entry as usize] {
            Base::Buffer(buffer, by) => Ok(buffer.start()?.wrapping_offset(*by)),
            Base::Made(storage) => storage.start(),
            // SAFETY: the argument is given away, and all its readers in this call come before.
            Base::Given(storage, from) => unsafe { storage.start_in(from) },
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

/// Where operands lie in a call.
#[inline]
pub(super) fn pointers(bindings: &Bindings, operands: &[(u32, usize)]) -> Result<SmallVec<[*mut u8; 6]>, Cause> {
    let mut pointers = SmallVec::new();
    for (entry, offset) in operands {
        pointers.push(bindings.start(*entry)?.wrapping_add(*offset));
    }
    Ok(pointers)
}

impl Step<Bindings> for NativeStep {
    fn run(&self, bindings: &Bindings, _: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        let pointers = pointers(bindings, &self.operands)?;
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
    pub(super) keeper: Option<Keeper>,
    pub(super) places: Places,
    pub(super) instruction: usize,
}

impl Step<Bindings> for BlockedStep {
    fn run(&self, bindings: &Bindings, context: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        let operands = self.places.operands(bindings)?;
        let Some(context) = context.op() else { unreachable!("such a step has a cell") };
        // SAFETY: entries have the layouts that were recorded, as those of the step were.
        unsafe {
            let kept = self.keeper.as_ref().and_then(|keeper| Some((&keeper.step, keeper.kept(bindings, &operands)?)));
            let (step, kept) = kept.map_or((&self.step, None), |(step, kept)| (step, Some(kept)));
            run_blocked(step, &operands, context, self.note(bindings), kept)
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
        // SAFETY: both have as many bytes, and are distinct; writers of the copy come after this step.
        unsafe { from.copy_to_nonoverlapping(to, self.from.buffer().bytes()) };
        Ok(())
    }
}

/// The arrays of a step that is no loop.
pub(super) struct Places {
    pub(super) engine: Engine,
    pub(super) places: Vec<EntryAccess>,
}

impl Places {
    /// A buffer on the arena: for values hidden from foreign code, as long as the step runs.
    fn within(&self, bindings: &Bindings, place: &EntryAccess) -> Result<Arc<Buffer>, Cause> {
        let entry = u32::try_from(place.entry).map_err(|error| Cause::Error(Box::new(error)))?;
        let start = bindings.start(entry)?;
        let Some(start) = NonNull::new(start) else { return Err(Cause::Panic("an arena has memory".to_owned())) };
        // SAFETY: the call holds the arena until the step is done, and only private steps have arrays there, which keep
        // none of them.
        Ok(unsafe { Buffer::foreign(&self.engine, start, place.range.end, false, Ownership::Owned, Box::new(())) })
    }

    fn operands(&self, bindings: &Bindings) -> Result<Operands, Cause> {
        let operand = |place: &EntryAccess| {
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
            // SAFETY: the op was granted them, and they have the layouts that were recorded.
            Some(context) => granting(&operands, || unsafe { self.step.run(&operands, context) }),
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

/// The step that issues the members of a part.
pub(super) struct PartStep {
    pub(super) together: Arc<dyn Together>,
    pub(super) members: Vec<(Arc<dyn Opaque>, Places)>,
    /// The entries whose buffers hold all members' arrays.
    pub(super) entries: Vec<usize>,
    /// Its number.
    pub(super) part: usize,
}

/// The members of a part in a call.
struct Bound<'a>(&'a PartStep, &'a Bindings);

impl Members for Bound<'_> {
    fn count(&self) -> usize {
        self.0.members.len()
    }

    fn step(&self, at: usize) -> &dyn Opaque {
        &*self.0.members[at].0
    }

    fn operands(&self, at: usize) -> Result<Operands, Cause> {
        self.0.members[at].1.operands(self.1)
    }
}

impl PartStep {
    /// Issues the first members together, as far as that goes.
    fn together(&self, bindings: &Bindings) -> Result<Issued, Cause> {
        let mut buffers: SmallVec<[(&Buffer, isize); 8]> = SmallVec::new();
        for entry in &self.entries {
            match &bindings.bases[*entry] {
                Base::Buffer(buffer, by) => buffers.push((buffer, *by)),
                _ => return Ok(Issued { count: 0, refused: None }),
            }
        }
        // SAFETY: the op was granted its buffers, and these are its members.
        unsafe { self.together.run(&buffers, &Bound(self, bindings)) }
    }

    /// Issues a member on its own.
    fn alone(&self, at: usize, bindings: &Bindings, context: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        let (step, places) = &self.members[at];
        let operands = places.operands(bindings)?;
        match context.op() {
            // SAFETY: the op was granted them, and they have the layouts that were recorded.
            Some(context) => granting(&operands, || unsafe { step.run(&operands, context) }),
            None => unreachable!("a part has a cell"),
        }
    }

    /// Says that a member has failed. Answers those that are not to run for that, as bits.
    #[cold]
    fn failed(&self, at: usize, cause: Cause, context: &mut StepContext<'_, '_>) -> u64 {
        let mut behind = 0;
        for member in context.fail(at, cause) {
            self.members[member].0.discard();
            behind |= 1 << member;
        }
        behind
    }
}

impl Step<Bindings> for PartStep {
    fn run(&self, bindings: &Bindings, context: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        let mut left_out = bindings.left_out_of(self.part);
        let mut next = 0;
        if left_out == 0 {
            let issued = self.together(bindings)?;
            next = issued.count;
            if let Some(cause) = issued.refused {
                left_out |= self.failed(next, cause, context);
                next += 1;
            }
        }
        for at in next..self.members.len() {
            if left_out >> at & 1 == 0
                && let Err(cause) = self.alone(at, bindings, context)
            {
                left_out |= self.failed(at, cause, context);
            }
        }
        Ok(())
    }

    fn left_out(&self, bindings: &Bindings, member: usize) {
        bindings.leave_out(self.part, member);
        self.members[member].0.discard();
    }

    fn skipped(&self, _: &Bindings) {
        self.members.iter().for_each(|(step, _)| step.discard());
    }
}
