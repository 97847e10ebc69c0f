//! Reductions by a binary strided loop, equal to NumPy's `ufunc.reduce`.
//!
//! Every output element starts as the loop's identity, or, if it has none, as the first element along the reduced axes.
//! The loop adds the others. Along the innermost axis the loop sees all elements together, and so may sum in pairs. The
//! walk over the elements depends on the layout alone, and so do the results.

use super::kernel::{Pointers, StridedLoop, copy_loop, signed};
use super::walk::{PER_BYTE, Walk};
use crate::layout::Element;
use crate::tuple::Tuple;
use crate::{Array, ArrayError, DType, Scalar};
use smallvec::SmallVec;

/// Nanoseconds for a call of a loop, about.
const CALL: usize = 10;
/// Picoseconds for an element, besides those for its bytes.
const ADDED: usize = 200;

/// A reduction of an input into an output of given layouts.
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
    /// A reduction of `input` over `axes` into `output`, from `identity` if there is one. The shape of `output` is the
    /// input's with 1 for these axes.
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

    /// Its duration in nanoseconds, about.
    pub(crate) fn nanoseconds(&self) -> usize {
        let Some((&(length, step), outer)) = self.reduced.split_last() else { return self.kept.nanoseconds(0) };
        let outer: usize = outer.iter().map(|(length, _)| *length).product();
        let (kept, row) = (self.kept.size(), self.kept.shape[self.kept.shape.len() - 1].max(1));
        let calls = if self.is_along(length, step) { kept } else { length.saturating_mul(kept / row) };
        let elements = kept.saturating_mul(length).saturating_mul(outer);
        calls.saturating_mul(outer).saturating_mul(CALL)
            + elements.saturating_mul(self.dtype.size() * PER_BYTE + ADDED) / 1000
    }

    /// Runs it from the first element of the input to the output's.
    ///
    /// # Safety
    ///
    /// There are two pointers, as for [`Step::run`](super::Step::run).
    pub unsafe fn run(&self, arrays: &[*mut u8]) {
        let &[from, to] = arrays else { return };
        if self.kept.size() == 0 {
            return;
        }
        let pointers: Pointers = [from, to].as_slice().into();
        // SAFETY: the caller's promise; the walks stay inside the arrays.
        unsafe {
            if let Some(identity) = self.identity {
                let (fill, from) = (copy_loop(self.dtype), identity.0.as_ptr().cast_mut()); // loops only read their inputs
                self.kept.each_row(&pointers, |row, length, steps| {
                    fill.call(&[from, row[1]], &[signed(length)], &[0, steps[1]]);
                });
            } else {
                self.kept.run(&copy_loop(self.dtype), &pointers, 0..self.kept.shape[0]);
            }
            self.add(from, to, 0, self.identity.is_none());
        }
    }

    /// Adds the elements along the reduced axes from this one on; if `first`, the very first element was copied before.
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
        if innermost && self.is_along(length, step) {
            let skipped = usize::from(first);
            let from = from.wrapping_offset(step * signed(skipped));
            // SAFETY: as in run().
            return unsafe { self.along(from, to, length - skipped, step) };
        }
        if innermost && self.kept.shape.len() == 1 {
            let (count, [near, far]) = (signed(self.kept.shape[0]), [self.kept.step(0, 0), self.kept.step(0, 1)]);
            for index in usize::from(first)..length {
                let mut row = [to, from.wrapping_offset(step * signed(index)), to];
                // SAFETY: as in run().
                unsafe { self.kernel.call_on(&mut row, count, &[far, near, far]) };
            }
            return;
        }
        for index in 0..length {
            let from = from.wrapping_offset(step * signed(index));
            // SAFETY: as in run().
            unsafe { self.add(from, to, axis + 1, first && index == 0) };
        }
    }

    /// Whether the loop should run along a reduced axis: its elements are nearer to each other than those of the
    /// output, and worth the calls by their number.
    fn is_along(&self, length: usize, step: isize) -> bool {
        let inner = self.kept.shape.len() - 1;
        let near = || step.unsigned_abs() <= self.kept.step(inner, 0).unsigned_abs();
        let few = || length < self.paired() && self.kept.shape[inner] >= 4 * length;
        self.kept.size() == 1 || (near() && !few())
    }

    /// Elements from which on the loop may add in another order, or in another type. For fewer, either way gives the
    /// same bits. Loops without an identity choose, and so do not round.
    fn paired(&self) -> usize {
        match self.dtype {
            DType::Float16 => 0,
            DType::Complex64 | DType::Complex128 => 4,
            dtype if dtype.is_floating() && self.identity.is_some() => 8,
            _ => 32,
        }
    }

    /// Runs the loop along the axis, for each output element.
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

    /// Runs the loop over the output's elements, adding one input element to each.
    unsafe fn across(&self, from: *mut u8, to: *mut u8) {
        self.kept.each_row(&[from, to], |pointers, length, steps| {
            let (dimensions, steps) = ([signed(length)], [steps[1], steps[0], steps[1]]);
            // SAFETY: as in run().
            unsafe { self.kernel.call(&[pointers[1], pointers[0], pointers[1]], &dimensions, &steps) };
        });
    }
}
