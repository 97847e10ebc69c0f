//! Ops that run steps made of blocks.

use super::at_once::{attempt, is_short};
use super::team::{self, Blocks, Crew};
use crate::door::{self, Call, recording};
use crate::memory::{Block, Pushing};
use crate::step::{Blocked, Operands, Step};
use crate::{Access, Array, ArrayError, DType};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};
use weft_engine::trace::{Kind, Note};
use weft_engine::{Cause, Device, OpContext, Payload, PlaceOffset, PushOptions};

/// Fewer operations than this are not worth the hand-over to an idle worker.
const WORTH_HELP: usize = 1 << 17;

/// Picoseconds that an operation of such a step takes at most, about: a power, or an exponential.
const OPERATION: usize = 1950;

/// Alignment of scratch memory in bytes.
const ALIGN: usize = 64;

/// Pushes a step made of blocks on dense arrays with their accesses.
///
/// # Safety
///
/// The arrays have the dtypes and the shapes that the step was made for, and are contiguous.
pub unsafe fn push_blocked(
    step: &Arc<dyn Blocked>,
    arrays: &[(&Array, Access)],
    mut options: PushOptions<'_>,
) -> Result<(), ArrayError> {
    options.note = options.note.or(Kind::Compute);
    let Some((last, _)) = arrays.last() else { return Ok(()) };
    for (at, (array, _)) in arrays.iter().enumerate().filter(|(_, (_, access))| *access != Access::Read) {
        array.buffer().check_writable()?;
        if arrays[..at].iter().any(|(other, _)| other.buffer().is_same(array.buffer())) {
            return Err(ArrayError::Invalid("a kernel writes to none of the arrays that it reads".to_owned()));
        }
    }
    let call = Call::on(last.engine(), arrays, options);
    if recording::is_open() {
        return door::note(Step::Blocked(Arc::clone(step)), &call);
    }
    let inputs = arrays.iter().position(|(_, access)| *access == Access::Overwrite).unwrap_or(arrays.len());
    let changes_none = arrays[..inputs].iter().all(|(_, access)| *access == Access::Read);
    if is_short(step.operations().saturating_mul(OPERATION) / 1000) && changes_none {
        let run = |_: &mut Pushing, pointers: &[*mut u8]| {
            // SAFETY: the arrays are those of the step; its outputs have no other user meanwhile.
            unsafe { run_here(step.as_ref(), arrays, pointers) }.is_ok_and(|ran| ran)
        };
        if attempt(&call, inputs, run)? {
            return Ok(());
        }
    }
    door::push(payload(step, &call), &call)
}

/// Runs a step on this thread alone. Returns false for an unaligned operand, because steps take aligned ones.
///
/// # Safety
///
/// As for [`push_blocked`]; the pointers are to the first elements of its arrays, which are ready and have no other
/// writer.
unsafe fn run_here(step: &dyn Blocked, arrays: &[(&Array, Access)], pointers: &[*mut u8]) -> Result<bool, Cause> {
    let is_between = |((array, _), start): (&(&Array, Access), &*mut u8)| {
        !start.expose_provenance().is_multiple_of(array.dtype().size())
    };
    if arrays.iter().zip(pointers).any(is_between) {
        return Ok(false);
    }
    // SAFETY: the caller's promise.
    unsafe { run_aligned(step, pointers) }.map(|()| true)
}

/// Runs a step on this thread alone, on aligned operands.
///
/// # Safety
///
/// As for [`run_here`].
unsafe fn run_aligned(step: &dyn Blocked, pointers: &[*mut u8]) -> Result<(), Cause> {
    let block = if step.scratch() == 0 { None } else { Some(scratch_of(step.scratch())?) };
    let scratch = std::ptr::with_exposed_provenance_mut(block.as_deref().map_or(0, aligned));
    // SAFETY: the caller's promise; the scratch belongs to this call.
    unsafe {
        step.begin_with(pointers, scratch, false)?;
        for block in 0..step.blocks() {
            step.run_block(pointers, scratch, block)?;
        }
        step.finish(pointers, scratch)
    }
}

/// Runs a step on this thread alone, on operands of these sizes in bytes and types, aligned or not.
///
/// # Safety
///
/// The pointers are to the first elements of dense operands, as the step was made for. The operands have no other
/// writer, and the outputs have no other reader.
pub unsafe fn run_alone(
    step: &dyn Blocked,
    operands: impl Iterator<Item = (usize, DType, Access)>,
    pointers: &mut [*mut u8],
) -> Result<(), Cause> {
    let mut starts: SmallVec<[usize; 6]> = pointers.iter().map(|pointer| pointer.expose_provenance()).collect();
    // SAFETY: the caller's promise.
    let copies = unsafe { align(operands, &mut starts) }?;
    for (pointer, start) in pointers.iter_mut().zip(&starts) {
        *pointer = std::ptr::with_exposed_provenance_mut(*start);
    }
    // SAFETY: as above; copies are as large as their operands.
    unsafe {
        run_aligned(step, pointers)?;
        bring_back(&copies);
    }
    Ok(())
}

/// The payload that runs a step made of blocks on the arrays of a call.
pub(super) fn payload(step: &Arc<dyn Blocked>, call: &Call<'_>) -> impl Payload + use<> {
    let arrays = call.arrays.iter().map(|(array, access)| ((*array).clone(), *access)).collect();
    Shared { step: Arc::clone(step), arrays, note: call.options.note, kept: None }
}

/// Runs a step made of blocks on its operands, inputs first, within an op that was granted them. Idle workers help; the
/// thread that runs the last block ends the op. With a kept layout, the step does not begin again.
///
/// # Safety
///
/// As for [`push_blocked`]; the kept block is of this step, made by [`lay_out`].
pub unsafe fn run_blocked(
    step: &Arc<dyn Blocked>,
    operands: &Operands,
    context: &mut OpContext<'_>,
    note: Note,
    kept: Option<Arc<Block>>,
) -> Result<(), Cause> {
    Shared { step: Arc::clone(step), arrays: operands.iter().cloned().collect(), note, kept }.run(context)
}

/// The block that such a step lays out before its blocks run, to be kept; None for an unaligned operand.
///
/// # Safety
///
/// As for [`push_blocked`].
pub unsafe fn lay_out(step: &dyn Blocked, operands: &Operands) -> Result<Option<Arc<Block>>, Cause> {
    let starts = operands.iter().map(start_of).collect::<Result<SmallVec<[usize; 6]>, Cause>>()?;
    if starts.iter().zip(operands).any(|(start, (array, _))| !start.is_multiple_of(array.dtype().size())) {
        return Ok(None);
    }
    let pointers: SmallVec<[*mut u8; 6]> =
        starts.iter().map(|start| std::ptr::with_exposed_provenance_mut(*start)).collect();
    let block = scratch_of(step.scratch())?;
    // SAFETY: the caller's promise; the block has no other user yet.
    unsafe { step.begin(&pointers, std::ptr::with_exposed_provenance_mut(aligned(&block))) }?;
    Ok(Some(block))
}

fn start_of((array, _): &(Array, Access)) -> Result<usize, Cause> {
    Ok(array.buffer().start()?.wrapping_add(array.layout().offset).expose_provenance())
}

fn scratch_of(bytes: usize) -> Result<Arc<Block>, Cause> {
    let block = Block::new(bytes.saturating_add(ALIGN)).map_err(|error| Cause::Error(Box::new(error)))?;
    Ok(Arc::new(block))
}

/// The start of scratch memory in a block.
fn aligned(block: &Block) -> usize {
    block.start().expose_provenance().next_multiple_of(ALIGN)
}

/// Inputs, then outputs.
type Arrays = SmallVec<[(Array, Access); 6]>;

struct Shared {
    step: Arc<dyn Blocked>,
    arrays: Arrays,
    note: Note,
    /// The block laid out before.
    kept: Option<Arc<Block>>,
}

impl Payload for Shared {
    // SAFETY: a note lies at this offset, and in it a number of eight bytes.
    const PLACE: Option<PlaceOffset<Self>> =
        Some(unsafe { PlaceOffset::new(std::mem::offset_of!(Self, note) + Note::PLACE) });

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let mut starts = self.arrays.iter().map(start_of).collect::<Result<SmallVec<[usize; 6]>, Cause>>()?;
        let operands = self.arrays.iter().map(|(array, access)| (array.bytes(), array.dtype(), *access));
        // SAFETY: the accesses are granted, and the arrays are dense.
        let copies = unsafe { align(operands, &mut starts) }?;
        let begins = self.kept.is_none();
        let block = match (self.kept, self.step.scratch()) {
            (None, 0) => None,
            (None, bytes) => Some(scratch_of(bytes)?),
            (kept, _) => kept,
        };
        let scratch = block.as_deref().map_or(0, aligned);
        let Some((last, _)) = self.arrays.last() else { return Ok(()) };
        let engine = last.engine().clone();
        let device = Device { index: last.device(), ..Device::default() };
        let is_worth = self.step.operations() >= WORTH_HELP;
        let crew = is_worth.then_some(Crew { engine, device, note: self.note });
        let work =
            Work { starts, scratch, step: self.step, failed: Mutex::default(), copies, _keeps: (self.arrays, block) };
        if begins {
            let is_helped = crew.as_ref().is_some_and(|crew| crew.idle() > 0);
            // SAFETY: the accesses are granted for as long as the op lasts.
            unsafe { work.step.begin_with(&work.pointers(), work.scratch(), is_helped) }?;
        }
        team::run(work, context, crew)
    }
}

/// A copy in place of an unaligned array, as memory from outside may be: steps take aligned ones.
struct Copy {
    block: Block,
    bytes: usize,
    /// The address to write the copy back to, if it is an output.
    back: Option<usize>,
}

impl Copy {
    fn start(&self) -> usize {
        self.block.start().expose_provenance().next_multiple_of(ALIGN)
    }
}

/// # Safety
///
/// There are this many bytes at both, and the target has no other user.
unsafe fn copy(from: usize, to: usize, bytes: usize) {
    let from = std::ptr::with_exposed_provenance::<u8>(from);
    // SAFETY: the caller's promise.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(to).copy_from_nonoverlapping(from, bytes) };
}

/// Copies unaligned operands, given by their sizes in bytes and types.
///
/// # Safety
///
/// There are this many bytes, without a writer meanwhile.
unsafe fn align(
    operands: impl Iterator<Item = (usize, DType, Access)>,
    starts: &mut [usize],
) -> Result<Vec<Copy>, Cause> {
    let mut copies = Vec::new();
    for ((bytes, dtype, access), start) in operands.zip(starts) {
        if start.is_multiple_of(dtype.size()) {
            continue;
        }
        let back = (access != Access::Read).then_some(*start);
        let block = Block::new(bytes + ALIGN).map_err(|error| Cause::Error(Box::new(error)))?;
        let made = Copy { block, bytes, back };
        if access != Access::Overwrite {
            // SAFETY: the caller's promise, and the copy is large enough.
            unsafe { copy(*start, made.start(), bytes) };
        }
        *start = made.start();
        copies.push(made);
    }
    Ok(copies)
}

/// Writes copies of outputs back.
///
/// # Safety
///
/// The originals have no other user, and each copy was written as a whole, or began as the original.
unsafe fn bring_back(copies: &[Copy]) {
    for made in copies {
        if let Some(back) = made.back {
            // SAFETY: the caller's promise; the copy is as large as the array.
            unsafe { copy(made.start(), back, made.bytes) };
        }
    }
}

struct Work {
    /// Addresses of the first elements.
    starts: SmallVec<[usize; 6]>,
    scratch: usize,
    step: Arc<dyn Blocked>,
    failed: Mutex<Option<Cause>>,
    copies: Vec<Copy>,
    _keeps: (Arrays, Option<Arc<Block>>),
}

impl Work {
    fn pointers(&self) -> SmallVec<[*mut u8; 6]> {
        self.starts.iter().map(|start| std::ptr::with_exposed_provenance_mut(*start)).collect()
    }

    fn scratch(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.scratch)
    }
}

impl Blocks for Work {
    fn count(&self) -> usize {
        self.step.blocks()
    }

    fn block(&self, number: usize) {
        // SAFETY: the accesses are granted for as long as the op lasts, and each block is run once.
        if let Err(cause) = unsafe { self.step.run_block(&self.pointers(), self.scratch(), number) } {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
        }
    }

    fn finish(&self) -> Result<(), Cause> {
        if let Some(cause) = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(cause);
        }
        // SAFETY: as above; all blocks were run.
        unsafe { self.step.finish(&self.pointers(), self.scratch()) }?;
        // SAFETY: as above.
        unsafe { bring_back(&self.copies) };
        Ok(())
    }
}
