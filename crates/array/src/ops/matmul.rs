//! Ops that multiply matrices.

use super::at_once::{self, is_short};
use super::team::{self, Blocks, Crew};
use crate::door::{self, Call, recording};
use crate::step::{Matmul, Step, StridedLoop};
use crate::{Access, Array, ArrayError};
use std::sync::Arc;
use weft_engine::trace::{Kind, Note};
use weft_engine::{Cause, Device, OpContext, Payload, PlaceOffset, PushOptions};

/// Pushes `output = left @ right` for arrays of at least two axes, none of them empty. The axes before those two are
/// broadcast to the output's.
pub fn push_matmul(
    kernel: StridedLoop,
    output: &Array,
    left: &Array,
    right: &Array,
    mut options: PushOptions<'_>,
) -> Result<(), ArrayError> {
    options.note = options.note.or(Kind::Compute);
    let step = Arc::new(Matmul::new(kernel, output, left, right)?);
    let arrays = [(left, Access::Read), (right, Access::Read), (output, Access::Overwrite)];
    let call = Call::on(output.engine(), &arrays, options);
    if recording::is_open() {
        return door::note(Step::Matmul(step), &call);
    }
    // SAFETY: the pointers are those of the arrays that it was made for.
    if is_short(step.nanoseconds()) && at_once::run_step(&call, |pointers| unsafe { step.run(pointers) })? {
        return Ok(());
    }
    if step.blocks() > 1 {
        let output =
            |arrays: &[(&Array, Access)]| arrays.last().map_or_else(|| output.clone(), |(array, _)| (*array).clone());
        let shared = |arrays: &[(&Array, Access)]| Shared {
            step,
            arrays: [left.clone(), right.clone(), output(arrays)],
            note: options.note,
        };
        return door::push_renaming(&call, shared);
    }
    door::push_renaming(&call, |arrays| super::native::on(Step::Matmul(step), arrays))
}

/// Multiplies two matrices or vectors on the calling thread, if that is short and they are ready. The output is new and
/// lacks the axes of vectors. Returns whether it did; if not, the caller pushes the product.
pub fn multiply_here(
    kernel: StridedLoop,
    output: &Array,
    left: &Array,
    right: &Array,
    mut options: PushOptions<'_>,
) -> Result<bool, ArrayError> {
    options.note = options.note.or(Kind::Compute);
    if recording::is_open() {
        return Ok(false);
    }
    let Some(step) = Matmul::of_few_axes(kernel, output, left, right) else { return Ok(false) };
    if !is_short(step.nanoseconds()) {
        return Ok(false);
    }
    let arrays = [(left, Access::Read), (right, Access::Read), (output, Access::Overwrite)];
    let call = Call::on(output.engine(), &arrays, options);
    // SAFETY: the pointers are those of the arrays that the step was made for.
    at_once::run_step(&call, |pointers| unsafe { step.run(pointers) })
}

/// A product made of blocks, as a payload: idle workers help with them.
struct Shared {
    step: Arc<Matmul>,
    /// The two inputs and the output.
    arrays: [Array; 3],
    note: Note,
}

impl Payload for Shared {
    // SAFETY: a note lies at this offset, and in it a number of eight bytes.
    const PLACE: Option<PlaceOffset<Self>> =
        Some(unsafe { PlaceOffset::new(std::mem::offset_of!(Self, note) + Note::PLACE) });

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let mut starts = [0; 3];
        for (start, array) in starts.iter_mut().zip(&self.arrays) {
            *start = array.buffer().start()?.wrapping_add(array.layout().offset).expose_provenance();
        }
        let engine = self.arrays[2].engine().clone();
        let device = Device { index: self.arrays[2].device(), ..Device::default() };
        let crew = Crew { engine, device, note: self.note };
        team::run(Product { starts, of: self }, context, Some(crew))
    }
}

struct Product {
    /// Addresses of the first elements.
    starts: [usize; 3],
    of: Shared,
}

impl Blocks for Product {
    fn count(&self) -> usize {
        self.of.step.blocks()
    }

    fn block(&self, number: usize) {
        let pointers = self.starts.map(std::ptr::with_exposed_provenance_mut);
        // SAFETY: the accesses are granted for as long as the op lasts, and each block is run once.
        unsafe { self.of.step.run_block(&pointers, number) };
    }

    fn finish(&self) -> Result<(), Cause> {
        Ok(())
    }
}
