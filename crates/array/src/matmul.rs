//! Products of matrices by NumPy's loop, which calls BLAS.

use crate::kernel::{StridedLoop, Walk, signed};
use crate::order::Access;
use crate::request::{PushRequest, push};
use crate::{Array, ArrayError};
use smallvec::SmallVec;
use weft_engine::trace::Kind;
use weft_engine::{Cause, OpContext, Payload, PushOptions};

struct Matmul {
    kernel: StridedLoop,
    left: Array,
    right: Array,
    output: Array,
    /// Over the matrices of the stacks.
    stack: Walk,
}

impl Payload for Matmul {
    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        let arrays = [&self.left, &self.right, &self.output];
        let mut pointers = [std::ptr::null_mut(); 3];
        for (pointer, array) in pointers.iter_mut().zip(arrays) {
            *pointer = array.buffer().start()?.wrapping_add(array.layout().offset);
        }
        let core = |array: &Array, back: usize| {
            let layout = array.layout();
            let axis = layout.shape.len() - back;
            (signed(layout.shape[axis]), layout.strides[axis])
        };
        let ((rows, left_row), (inner, left_column)) = (core(arrays[0], 2), core(arrays[0], 1));
        let ((_, right_row), (columns, right_column)) = (core(arrays[1], 2), core(arrays[1], 1));
        let ((_, out_row), (_, out_column)) = (core(arrays[2], 2), core(arrays[2], 1));
        self.stack.each_row(&pointers, |pointers, length, steps| {
            let dimensions = [signed(length), rows, inner, columns];
            let steps =
                [steps[0], steps[1], steps[2], left_row, left_column, right_row, right_column, out_row, out_column];
            // SAFETY: the accesses are granted; the loop takes these dimensions and steps, and they stay inside.
            unsafe { self.kernel.call(pointers, &dimensions, &steps) };
        });
        Ok(())
    }
}

/// Pushes `output = left @ right` for arrays of at least two axes, none of them empty; the axes before those two
/// are broadcast to the output's.
pub fn push_matmul(
    kernel: StridedLoop,
    output: &Array,
    left: &Array,
    right: &Array,
    mut options: PushOptions<'_>,
) -> Result<(), ArrayError> {
    options.note = options.note.or(Kind::Compute);
    let shapes = [left, right, output].map(|array| &array.layout().shape);
    let refuse = || {
        ArrayError::Invalid(format!("matmul: cannot multiply {:?} by {:?} into {:?}", shapes[0], shapes[1], shapes[2]))
    };
    if shapes.iter().any(|shape| shape.len() < 2 || shape.contains(&0)) {
        return Err(refuse());
    }
    let core = |which: usize, back: usize| shapes[which][shapes[which].len() - back];
    let fits = core(0, 1) == core(1, 2) && core(2, 2) == core(0, 2) && core(2, 1) == core(1, 1);
    let overlap = [left, right].iter().any(|input| std::sync::Arc::ptr_eq(input.buffer(), output.buffer()));
    if !fits || overlap || kernel.inputs() != 2 || kernel.outputs() != 1 {
        return Err(refuse());
    }
    let stacks = &shapes[2][..shapes[2].len() - 2];
    let mut strides: SmallVec<[_; 3]> = SmallVec::new();
    for array in [left, right, output] {
        let mut layout = array.layout().clone();
        layout.shape.truncate(layout.shape.len() - 2);
        layout.strides.truncate(layout.shape.len());
        strides.push(layout.broadcast(stacks)?);
    }
    let stack = Walk::new(stacks, &[&strides[0], &strides[1], &strides[2]]);
    let arrays = [(output, Access::Overwrite), (left, Access::Read), (right, Access::Read)];
    let request = PushRequest::on(output.engine(), &arrays, options);
    push(Matmul { kernel, left: left.clone(), right: right.clone(), output: output.clone(), stack }, &request)
}
