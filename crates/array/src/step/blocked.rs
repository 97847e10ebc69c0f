//! Steps that others write, as kernels of networks are, and that fall into blocks.

use super::StridedLoop;
use std::sync::Arc;
use weft_engine::Cause;

/// How the elements of `(planes, inner)` lie that do not lie in rows: `width` planes side by side, element by element, and so
/// on. As there are as many of them, a step that does the same to each element may be given either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lanes {
    /// Planes that lie side by side: a divisor of their number.
    pub width: usize,
    /// Elements of a plane.
    pub inner: usize,
}

/// What computes outputs from inputs, of dense layouts alone, block by block. Where blocks end depends on what the step was
/// made for, and so do the bits of the results: not on who runs them, nor on how many.
pub trait Blocked: Send + Sync {
    /// How many blocks may run side by side.
    fn blocks(&self) -> usize;

    /// About how many operations on numbers it takes.
    fn operations(&self) -> usize;

    /// Whether what its inputs hold may make it fail: then it runs though nobody looks at its outputs.
    fn may_fail(&self) -> bool {
        false
    }

    /// How many bytes its blocks share while it runs.
    fn scratch(&self) -> usize {
        0
    }

    /// The step that computes the same and calls this loop with each element of the result, bit for bit; nothing if there is
    /// none. There is one output, and the loop takes nothing else.
    fn then(&self, next: &StridedLoop) -> Option<Arc<dyn Blocked>> {
        let _ = next;
        None
    }

    /// In which lanes it would rather have operands, inputs first, where they lie like this; none for those that are to stay in
    /// rows, as all do that are not named.
    fn likes(&self, operands: &[Option<Lanes>]) -> Vec<Option<Lanes>> {
        let _ = operands;
        Vec::new()
    }

    /// The step that computes the same, bit for bit, of operands that lie in these lanes, or in rows; nothing if there is none.
    fn in_lanes(&self, operands: &[Option<Lanes>]) -> Option<Arc<dyn Blocked>> {
        let _ = operands;
        None
    }

    /// The step that begins by laying out one operand, of this number, in scratch memory which its blocks only read: who knows
    /// that the operand has not changed may keep that from call to call, and need not begin again. Nothing where that is not
    /// worth the memory.
    fn keeping(&self) -> Option<(usize, Arc<dyn Blocked>)> {
        None
    }

    /// Does what comes before all blocks.
    ///
    /// # Safety
    ///
    /// `arrays` point to the first elements of inputs and outputs as the step was made for; nobody else writes to the former
    /// or knows the latter. `scratch` points to so many bytes as it asks for, aligned to 64.
    unsafe fn begin(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        let _ = (arrays, scratch);
        Ok(())
    }

    /// The same, told whether somebody else has nothing to do: what makes blocks is not worth its time for one thread. The bits of
    /// the results do not depend on it.
    ///
    /// # Safety
    ///
    /// As for [`begin`](Self::begin).
    unsafe fn begin_with(&self, arrays: &[*mut u8], scratch: *mut u8, is_helped: bool) -> Result<(), Cause> {
        let _ = is_helped;
        // SAFETY: the caller's promise.
        unsafe { self.begin(arrays, scratch) }
    }

    /// Runs a block. Each is run once.
    ///
    /// # Safety
    ///
    /// As for [`begin`](Self::begin), which was called before.
    unsafe fn run_block(&self, arrays: &[*mut u8], scratch: *mut u8, block: usize) -> Result<(), Cause>;

    /// Does what comes after all blocks.
    ///
    /// # Safety
    ///
    /// As for [`begin`](Self::begin); all blocks were run.
    unsafe fn finish(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        let _ = (arrays, scratch);
        Ok(())
    }
}
