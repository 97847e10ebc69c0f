//! Steps of other crates, such as kernels of networks, that run in blocks.

use super::StridedLoop;
use std::sync::Arc;
use weft_engine::Cause;

/// The layout of an operand of shape `(planes, inner)` that is not in rows: `width` planes side by side, element by
/// element, then the next ones. The number of elements is the same, so an element-wise step takes either layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lanes {
    /// Planes side by side: a divisor of their number.
    pub width: usize,
    /// Elements of a plane.
    pub inner: usize,
}

/// A computation of outputs from dense inputs, block by block. The ends of blocks depend only on the step, and so do
/// the bits of the results: not on the threads that run them, nor on their number.
pub trait Blocked: Send + Sync {
    /// The number of blocks, which may run side by side.
    fn blocks(&self) -> usize;

    /// The number of arithmetic operations, about.
    fn operations(&self) -> usize;

    /// Whether values of its inputs can make it fail: then it runs even if its outputs are unused.
    fn may_fail(&self) -> bool {
        false
    }

    /// The bytes that its blocks share while it runs.
    fn scratch(&self) -> usize {
        0
    }

    /// The step that computes the same and applies this loop to each element of the result, with the same bits; None if
    /// there is none. The step has one output, and the loop takes no other operand.
    fn then(&self, next: &StridedLoop) -> Option<Arc<dyn Blocked>> {
        let _ = next;
        None
    }

    /// The lanes that it prefers for its operands, inputs first, if these lie as given. None leaves an operand in rows,
    /// as do entries missing at the end.
    fn likes(&self, operands: &[Option<Lanes>]) -> Vec<Option<Lanes>> {
        let _ = operands;
        Vec::new()
    }

    /// The step that computes the same, with the same bits, from operands in these lanes or in rows; None if there is
    /// none.
    fn in_lanes(&self, operands: &[Option<Lanes>]) -> Option<Arc<dyn Blocked>> {
        let _ = operands;
        None
    }

    /// The step that begins by laying out one operand, of this number, in scratch memory that its blocks only read. A
    /// caller that knows the operand to be unchanged may keep the scratch from call to call, and skip the beginning.
    /// None if that is not worth the memory.
    fn keeping(&self) -> Option<(usize, Arc<dyn Blocked>)> {
        None
    }

    /// Runs before all blocks.
    ///
    /// # Safety
    ///
    /// `arrays` point to the first elements of inputs and outputs, as the step was made for. The inputs have no other
    /// writer, the outputs no other user. `scratch` points to as many bytes as `scratch()` says, aligned to 64.
    unsafe fn begin(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        let _ = (arrays, scratch);
        Ok(())
    }

    /// The same, with a hint whether other workers are idle. Without them, a preparation for blocks may not be worth
    /// its time. The bits of the results do not depend on it.
    ///
    /// # Safety
    ///
    /// As for [`begin`](Self::begin).
    unsafe fn begin_with(&self, arrays: &[*mut u8], scratch: *mut u8, is_helped: bool) -> Result<(), Cause> {
        let _ = is_helped;
        // SAFETY: the caller's promise.
        unsafe { self.begin(arrays, scratch) }
    }

    /// Runs a block. Each runs once.
    ///
    /// # Safety
    ///
    /// As for [`begin`](Self::begin), which has run.
    unsafe fn run_block(&self, arrays: &[*mut u8], scratch: *mut u8, block: usize) -> Result<(), Cause>;

    /// Runs after all blocks.
    ///
    /// # Safety
    ///
    /// As for [`begin`](Self::begin); all blocks have run.
    unsafe fn finish(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        let _ = (arrays, scratch);
        Ok(())
    }
}
