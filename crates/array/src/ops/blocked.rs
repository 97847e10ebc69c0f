//! Ops that run steps which fall into blocks.

use super::team::{self, Blocks};
use crate::door::{self, Call, recording};
use crate::memory::Block;
use crate::step::{Blocked, Operands, Step};
use crate::{Access, Array, ArrayError};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};
use weft_engine::trace::{Kind, Note};
use weft_engine::{Cause, Device, OpContext, Payload, PushOptions};

/// Fewer operations than this are not worth the hand-over to an idle worker.
const WORTH_HELP: usize = 1 << 17;

/// Scratch begins at a multiple of this.
const ALIGN: usize = 64;

/// Pushes a step that falls into blocks on dense arrays.
///
/// # Safety
///
/// The arrays have the dtypes and the shapes that the step was made for, row after row.
pub unsafe fn push_blocked(
    step: &Arc<dyn Blocked>,
    outputs: &[&Array],
    inputs: &[&Array],
    mut options: PushOptions<'_>,
) -> Result<(), ArrayError> {
    options.note = options.note.or(Kind::Compute);
    let Some(first) = outputs.first() else { return Ok(()) };
    for output in outputs {
        output.buffer().check_writable()?;
        if inputs.iter().any(|input| input.buffer().is_same(output.buffer())) {
            return Err(ArrayError::Invalid("a kernel writes to none of the arrays that it reads".to_owned()));
        }
    }
    let reads = inputs.iter().map(|array| (*array, Access::Read));
    let arrays: SmallVec<[(&Array, Access); 6]> =
        reads.chain(outputs.iter().map(|array| (*array, Access::Overwrite))).collect();
    let call = Call::on(first.engine(), &arrays, options);
    if recording::is_open() {
        return door::note(Step::Blocked(Arc::clone(step)), &call);
    }
    door::push(payload(step, &call), &call)
}

/// The payload that runs such a step on the arrays of a call.
pub(super) fn payload(step: &Arc<dyn Blocked>, call: &Call<'_>) -> impl Payload + use<> {
    let arrays = call.arrays.iter().map(|(array, _)| (*array).clone()).collect();
    Shared { step: Arc::clone(step), arrays, note: call.options.note }
}

/// Runs such a step on its operands, inputs first, within an op to which they are granted. Idle workers help; who runs the
/// last block ends the op.
///
/// # Safety
///
/// As for [`push_blocked`].
pub unsafe fn run_blocked(
    step: &Arc<dyn Blocked>,
    operands: &Operands,
    context: &mut OpContext<'_>,
    note: Note,
) -> Result<(), Cause> {
    let arrays = operands.iter().map(|(array, _)| array.clone()).collect();
    Shared { step: Arc::clone(step), arrays, note }.run(context)
}

struct Shared {
    step: Arc<dyn Blocked>,
    /// Inputs, then outputs.
    arrays: SmallVec<[Array; 6]>,
    note: Note,
}

impl Payload for Shared {
    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let start = |array: &Array| {
            let start = array.buffer().start()?;
            Ok(start.wrapping_add(array.layout().offset).expose_provenance())
        };
        let mut starts = self.arrays.iter().map(start).collect::<Result<SmallVec<[usize; 6]>, Cause>>()?;
        let copies = align(&self.arrays, &mut starts)?;
        let block = match self.step.scratch() {
            0 => None,
            bytes => Some(Block::new(bytes.saturating_add(ALIGN)).map_err(|error| Cause::Error(Box::new(error)))?),
        };
        let scratch = block.as_ref().map_or(0, |block| block.start().expose_provenance().next_multiple_of(ALIGN));
        let Some(last) = self.arrays.last() else { return Ok(()) };
        let engine = last.engine().clone();
        let device = Device { index: last.device(), ..Device::default() };
        let (blocks, note) = (self.step.blocks(), self.note);
        let helpers = if self.step.operations() < WORTH_HELP {
            0
        } else {
            engine.idle_workers(device).min(blocks.saturating_sub(1))
        };
        let work =
            Work { starts, scratch, step: self.step, failed: Mutex::default(), _keeps: (self.arrays, block, copies) };
        // SAFETY: the accesses are granted for as long as the op lasts.
        unsafe { work.step.begin(&work.pointers(), work.scratch()) }?;
        team::run(work, context, helpers, || engine, (device, note))
    }
}

/// Copies arrays that begin between two elements, as memory from outside may: steps take aligned ones.
fn align(arrays: &[Array], starts: &mut [usize]) -> Result<Vec<Block>, Cause> {
    let mut copies = Vec::new();
    for (array, start) in arrays.iter().zip(starts) {
        if start.is_multiple_of(array.dtype().size()) {
            continue;
        }
        let copy = Block::new(array.bytes() + ALIGN).map_err(|error| Cause::Error(Box::new(error)))?;
        let to = copy.start().expose_provenance().next_multiple_of(ALIGN);
        let pointer = std::ptr::with_exposed_provenance_mut::<u8>;
        // SAFETY: the access is granted, the array is dense, and the copy is large enough.
        unsafe { pointer(*start).copy_to_nonoverlapping(pointer(to), array.bytes()) };
        *start = to;
        copies.push(copy);
    }
    Ok(copies)
}

struct Work {
    /// Addresses of the first elements.
    starts: SmallVec<[usize; 6]>,
    scratch: usize,
    step: Arc<dyn Blocked>,
    failed: Mutex<Option<Cause>>,
    _keeps: (SmallVec<[Array; 6]>, Option<Block>, Vec<Block>),
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
        unsafe { self.step.finish(&self.pointers(), self.scratch()) }
    }
}
