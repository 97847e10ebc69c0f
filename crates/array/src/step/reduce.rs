//! Reductions by a binary strided loop, as NumPy's `ufunc.reduce` does them.
//!
//! Every output element is the loop's identity, or where it has none the first element along the reduced axes, to
//! which the loop adds the others. Along the innermost axis the loop sees all of them together, and so may sum in pairs; how the elements are walked over
//! depends on the layout alone, and so do the results.

use super::kernel::{Pointers, StridedLoop, copy_loop};
use super::walk::{Walk, signed};
use crate::layout::{Element, Tuple};
use crate::{Array, ArrayError, DType, Scalar};
use smallvec::SmallVec;

/// A reduction of an input into an output of certain layouts.
pub struct Reduce {
    kernel: StridedLoop,
    identity: Option<Element>,
    dtype: DType,
    /// Over the output's elements: the input's first ones, the output.
    kept: Walk,
    /// Axes of the input that are reduced, the outermost first: length and step.
    reduced: SmallVec<[(usize, isize); 4]>,
}

impl Reduce {
    /// A reduction, from `identity` if there is one, of `input` over `axes` into `output`, whose shape is the input's with 1
    /// for these axes.
    pub(crate) fn new(
        kernel: StridedLoop,
        identity: Option<Scalar>,
        output: &Array,
        input: &Array,
        axes: &[usize],
    ) -> Result<Self, ArrayError> {
        let dtypes = [input.dtype(), input.dtype()];
        kernel.check(dtypes.into_iter(), [output.dtype()].into_iter())?;
        let (from, to) = (input.layout(), output.layout());
        let fits = from.shape.len() == to.shape.len()
            && input.dtype() == output.dtype()
            && !input.buffer().is_same(output.buffer())
            && axes.iter().enumerate().all(|(at, axis)| *axis < from.shape.len() && !axes[..at].contains(axis))
            && (0..from.shape.len()).all(|axis| {
                if axes.contains(&axis) {
                    to.shape[axis] == 1 && from.shape[axis] > 0
                } else {
                    to.shape[axis] == from.shape[axis]
                }
            });
        if !fits {
            let (shapes, axes) = ((Tuple(&from.shape), Tuple(&to.shape)), Tuple(axes));
            let message = format!("cannot reduce shape {} over axes {axes} into {}", shapes.0, shapes.1);
            return Err(ArrayError::Invalid(message));
        }
        let masked: SmallVec<[isize; 4]> =
            (0..from.shape.len()).map(|axis| if axes.contains(&axis) { 0 } else { from.strides[axis] }).collect();
        let kept = Walk::new(&to.shape, &[&masked, &to.strides]);
        let mut reduced: SmallVec<[(usize, isize); 4]> = SmallVec::new();
        for &axis in axes {
            let (length, step) = (from.shape[axis], from.strides[axis]);
            match reduced.last_mut() {
                Some((outer, far)) if *far == step * signed(length) => {
                    (*outer, *far) = (*outer * length, step);
                }
                _ => reduced.push((length, step)),
            }
        }
        let identity = identity.and_then(|identity| identity.element(output.dtype()));
        Ok(Self { kernel, identity, dtype: output.dtype(), kept, reduced })
    }

    /// Runs it from the first element of the input to the output's.
    ///
    /// # Safety
    ///
    /// There are two pointers, as [`Step::run`](super::Step::run) asks for.
    pub unsafe fn run(&self, arrays: &[*mut u8]) {
        let &[from, to] = arrays else { return };
        if self.kept.size() == 0 {
            return;
        }
        let pointers: Pointers = [from, to].as_slice().into();
        // SAFETY: the caller's promise; the walks stay inside the arrays.
        unsafe {
            if let Some(identity) = self.identity {
                let item = self.dtype.size();
                self.kept.each(&pointers, |at| at[1].copy_from_nonoverlapping(identity.0.as_ptr(), item));
            } else {
                self.kept.run(&copy_loop(self.dtype), &pointers, 0..self.kept.shape[0]);
            }
            self.add(from, to, 0, self.identity.is_none());
        }
    }

    /// Adds what lies along the reduced axes from this one on; if `first`, the very first element was copied.
    ///
    /// # Safety
    ///
    /// `from` is inside the input, at index 0 of the axes from `axis` on.
    unsafe fn add(&self, from: *mut u8, to: *mut u8, axis: usize, first: bool) {
        let Some(&(length, step)) = self.reduced.get(axis) else {
            if !first {
                // SAFETY: as in run().
                unsafe { self.across(from, to) };
            }
            return;
        };
        let innermost = axis + 1 == self.reduced.len();
        if innermost && self.is_along(step) {
            let skipped = usize::from(first);
            let from = from.wrapping_offset(step * signed(skipped));
            // SAFETY: as in run().
            return unsafe { self.along(from, to, length - skipped, step) };
        }
        for index in 0..length {
            let from = from.wrapping_offset(step * signed(index));
            // SAFETY: as in run().
            unsafe { self.add(from, to, axis + 1, first && index == 0) };
        }
    }

    /// Whether to let the loop run along a reduced axis: its elements are nearer than those of the output.
    fn is_along(&self, step: isize) -> bool {
        let inner = self.kept.shape.len() - 1;
        self.kept.size() == 1 || step.unsigned_abs() <= self.kept.step(inner, 0).unsigned_abs()
    }

    /// For each output element, the loop runs along the axis.
    unsafe fn along(&self, from: *mut u8, to: *mut u8, length: usize, step: isize) {
        if length == 0 {
            return;
        }
        let each = |pointers: &[*mut u8]| {
            let (dimensions, steps) = ([signed(length)], [0, step, 0]);
            // SAFETY: as in run().
            unsafe { self.kernel.call(&[pointers[1], pointers[0], pointers[1]], &dimensions, &steps) };
        };
        self.kept.each(&[from, to], each);
    }

    /// The loop runs over the output's elements, adding one input element to each.
    unsafe fn across(&self, from: *mut u8, to: *mut u8) {
        self.kept.each_row(&[from, to], |pointers, length, steps| {
            let (dimensions, steps) = ([signed(length)], [steps[1], steps[0], steps[1]]);
            // SAFETY: as in run().
            unsafe { self.kernel.call(&[pointers[1], pointers[0], pointers[1]], &dimensions, &steps) };
        });
    }
}
