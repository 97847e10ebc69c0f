//! Products of matrices by NumPy's loop, which calls BLAS.

use super::kernel::StridedLoop;
use super::walk::{Walk, signed};
use crate::{Array, ArrayError};
use smallvec::SmallVec;
use std::sync::Arc;

/// A product of stacks of matrices of certain layouts.
pub struct Matmul {
    kernel: StridedLoop,
    /// Over the matrices of the stacks.
    stack: Walk,
    /// Rows, the length that is summed over, columns.
    lengths: [isize; 3],
    /// Bytes from row to row and from column to column: of the left one, the right one, the output.
    steps: [isize; 6],
}

impl Matmul {
    /// `output = left @ right` for arrays of at least two axes, none of them empty; the axes before those two are
    /// broadcast to the output's.
    pub(crate) fn new(kernel: StridedLoop, output: &Array, left: &Array, right: &Array) -> Result<Self, ArrayError> {
        kernel.check([left.dtype(), right.dtype()].into_iter(), [output.dtype()].into_iter())?;
        output.buffer().check_writable()?;
        let shapes = [left, right, output].map(|array| &array.layout().shape);
        let refuse = || {
            let [left, right, output] = shapes;
            ArrayError::Invalid(format!("matmul: cannot multiply {left:?} by {right:?} into {output:?}"))
        };
        if shapes.iter().any(|shape| shape.len() < 2 || shape.contains(&0)) {
            return Err(refuse());
        }
        let core = |which: usize, back: usize| shapes[which][shapes[which].len() - back];
        let fits = core(0, 1) == core(1, 2) && core(2, 2) == core(0, 2) && core(2, 1) == core(1, 1);
        let overlap = [left, right].iter().any(|input| Arc::ptr_eq(input.buffer(), output.buffer()));
        if !fits || overlap {
            return Err(refuse());
        }
        let stacks = &shapes[2][..shapes[2].len() - 2];
        let mut strides: SmallVec<[_; 3]> = SmallVec::new();
        let mut steps: SmallVec<[isize; 6]> = SmallVec::new();
        for array in [left, right, output] {
            let mut layout = array.layout().clone();
            steps.extend_from_slice(&layout.strides[layout.strides.len() - 2..]);
            layout.shape.truncate(layout.shape.len() - 2);
            layout.strides.truncate(layout.shape.len());
            strides.push(layout.broadcast(stacks)?);
        }
        let stack = Walk::new(stacks, &[&strides[0], &strides[1], &strides[2]]);
        let lengths = [signed(core(0, 2)), signed(core(0, 1)), signed(core(1, 1))];
        let steps = [steps[0], steps[1], steps[2], steps[3], steps[4], steps[5]];
        Ok(Self { kernel, stack, lengths, steps })
    }

    /// How many products of numbers it adds up.
    #[must_use]
    pub fn operations(&self) -> usize {
        let core: usize = self.lengths.iter().map(|length| length.unsigned_abs()).product();
        core.saturating_mul(self.stack.size())
    }

    /// Runs it from the first elements of the two inputs to the output's.
    ///
    /// # Safety
    ///
    /// There are three pointers, as [`Step::run`](super::Step::run) asks for.
    pub unsafe fn run(&self, arrays: &[*mut u8]) {
        let ([rows, inner, columns], own) = (self.lengths, self.steps);
        self.stack.each_row(arrays, |pointers, length, steps| {
            let dimensions = [signed(length), rows, inner, columns];
            let steps = [steps[0], steps[1], steps[2], own[0], own[1], own[2], own[3], own[4], own[5]];
            // SAFETY: the caller's promise; the loop takes these dimensions and steps, and they stay inside.
            unsafe { self.kernel.call(pointers, &dimensions, &steps) };
        });
    }
}
