//! Softmax and its logarithm along one axis, and their gradients: data are `(outer, length, inner)`.

use crate::buffer::{slice, slice_mut, with_own};
use crate::number::of_dtype;
use crate::parts;
use crate::real::Real;
use crate::sums::sum;
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, DType};
use weft_engine::Cause;

/// What is done along the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// Data to their softmax.
    Softmax,
    /// Gradients and a softmax to gradients.
    SoftmaxGradient,
    /// Data to the logarithm of their softmax.
    LogSoftmax,
    /// Gradients and such a logarithm to gradients.
    LogSoftmaxGradient,
}

/// An op along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// What is done.
    pub along: Along,
    /// The product of the lengths before the axis.
    pub outer: usize,
    /// The axis's length.
    pub length: usize,
    /// The product of the lengths behind.
    pub inner: usize,
}

impl Rows {
    /// The step that computes it, of float32 or float64.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        of_dtype!(dtype, T => Arc::new(By::<T>(self, PhantomData)))
    }

    /// How many inputs it has, each of the size of the result.
    #[must_use]
    pub fn inputs(&self) -> usize {
        if matches!(self.along, Along::Softmax | Along::LogSoftmax) { 1 } else { 2 }
    }

    fn size(&self) -> usize {
        self.outer * self.length * self.inner
    }
}

struct By<T>(Rows, PhantomData<T>);

/// The largest of some elements; NaN where one is.
pub(crate) fn largest<T: Real>(x: &[T]) -> T {
    x.iter().fold(T::LOWEST, |best, &each| each.max(best))
}

/// Exponentials of elements less the largest; answers their sum.
pub(crate) fn powers<T: Real>(x: &[T], largest: T, out: &mut [T]) -> f64 {
    for (to, &each) in out.iter_mut().zip(x) {
        *to = (each - largest).exp();
    }
    sum(out.len(), |at| out[at].wide())
}

impl<T: Real> By<T> {
    /// Computes one line along the axis.
    fn line(&self, inputs: [&[T]; 2], out: &mut [T]) {
        let [x, y] = inputs;
        let count = out.len();
        match self.0.along {
            Along::Softmax => {
                let share = T::of(1.0 / powers(x, largest(x), out));
                out.iter_mut().for_each(|to| *to *= share);
            }
            Along::LogSoftmax => {
                let largest = largest(x);
                let shift = powers(x, largest, out).ln();
                for (to, &each) in out.iter_mut().zip(x) {
                    *to = T::of((each.wide() - largest.wide()) - shift);
                }
            }
            Along::SoftmaxGradient => {
                let total = T::of(sum(count, |at| x[at].wide() * y[at].wide()));
                for ((to, &g), &y) in out.iter_mut().zip(x).zip(y) {
                    *to = y * (g - total);
                }
            }
            Along::LogSoftmaxGradient => {
                let total = T::of(sum(count, |at| x[at].wide()));
                for ((to, &g), &y) in out.iter_mut().zip(x).zip(y) {
                    *to = g - y.exp() * total;
                }
            }
        }
    }

    /// # Safety
    ///
    /// As for a block: its elements are so many from here.
    unsafe fn lines(&self, inputs: [*mut u8; 2], out: *mut u8, from: usize, count: usize) {
        // SAFETY: the caller's promise.
        let (inputs, out): ([&[T]; 2], &mut [T]) =
            unsafe { (inputs.map(|start| slice(start, from, count)), slice_mut(out, from, count)) };
        let (length, inner) = (self.0.length, self.0.inner);
        if inner == 1 {
            for (row, out) in out.chunks_exact_mut(length).enumerate() {
                self.line(inputs.map(|input| &input[row * length..][..length]), out);
            }
            return;
        }
        for row in 0..count / (length * inner) {
            for column in 0..inner {
                self.line_apart(inputs, out, row * length * inner + column);
            }
        }
    }

    /// Computes a line whose elements are apart: they are brought together before.
    fn line_apart(&self, inputs: [&[T]; 2], out: &mut [T], start: usize) {
        let (length, step) = (self.0.length, self.0.inner);
        with_own(3 * length, |own: &mut [T]| {
            let (given, found) = own.split_at_mut(2 * length);
            for (input, given) in inputs.iter().zip(given.chunks_exact_mut(length)) {
                for (to, from) in given.iter_mut().zip(input[start..].iter().step_by(step)) {
                    *to = *from;
                }
            }
            let (x, y) = given.split_at(length);
            self.line([x, y], found);
            for (to, from) in out[start..].iter_mut().step_by(step).zip(found) {
                *to = *from;
            }
        });
    }
}

impl<T: Real> Blocked for By<T> {
    fn blocks(&self) -> usize {
        parts::count(self.0.outer, self.operations())
    }

    fn operations(&self) -> usize {
        self.0.size().saturating_mul(8)
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let (own, Some((out, inputs))) = (&self.0, arrays.split_last()) else { return Ok(()) };
        let each = own.length * own.inner;
        let part = parts::part(own.outer, self.blocks(), block);
        let (from, count) = (part.start * each, part.len() * each);
        let &[first, .., last] = inputs else {
            let &[only] = inputs else { return Ok(()) };
            // SAFETY: the caller's promise: operands have these sizes, and blocks are disjoint.
            unsafe { self.lines([only, only], *out, from, count) };
            return Ok(());
        };
        // SAFETY: as above.
        unsafe { self.lines([first, last], *out, from, count) };
        Ok(())
    }
}
