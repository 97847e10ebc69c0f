//! Softmax and its logarithm along one axis, and their gradients: data are `(outer, length, inner)`.

use crate::buffer::{slice, slice_mut, with_own};
use crate::number::of_dtype;
use crate::parts;
use crate::real::Real;
use crate::sums::sum;
use crate::vectors::widest;
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, DType};
use weft_engine::Cause;

/// The computation along the axis.
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

/// Elements with their largest ones found side by side.
const LANES: usize = 32;

/// The largest of some elements but for NaN, which makes a NaN of the sum of powers, and so of all that follows.
#[inline(always)]
#[allow(clippy::inline_always)] // see `vectors`
pub(crate) fn largest<T: Real>(x: &[T]) -> T {
    let larger = |each: T, best: T| if each > best { each } else { best };
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut lanes = [T::LOWEST; LANES];
    for chunk in chunks {
        for (best, &each) in lanes.iter_mut().zip(chunk) {
            *best = larger(each, *best);
        }
    }
    let mut left = LANES / 2;
    while left > 0 {
        for lane in 0..left {
            lanes[lane] = larger(lanes[lane + left], lanes[lane]);
        }
        left /= 2;
    }
    rest.iter().fold(lanes[0], |best, &each| larger(each, best))
}

/// Exponentials of elements less the largest; answers their sum.
#[inline(always)]
#[allow(clippy::inline_always)] // as above
pub(crate) fn powers<T: Real>(x: &[T], largest: T, out: &mut [T]) -> f64 {
    for (to, &each) in out.iter_mut().zip(x) {
        *to = (each - largest).exp();
    }
    sum([out], |[power]| power.wide())
}

#[allow(clippy::inline_always)] // as above
impl<T: Real> By<T> {
    /// Computes one line along the axis.
    #[inline(always)]
    fn line(&self, inputs: [&[T]; 2], out: &mut [T]) {
        let [x, y] = inputs;
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
                let total = T::of(sum([x, y], |[g, y]| g.wide() * y.wide()));
                for ((to, &g), &y) in out.iter_mut().zip(x).zip(y) {
                    *to = y * (g - total);
                }
            }
            Along::LogSoftmaxGradient => {
                let total = T::of(sum([x], |[g]| g.wide()));
                for ((to, &g), &y) in out.iter_mut().zip(x).zip(y) {
                    *to = g - y.exp() * total;
                }
            }
        }
    }

    /// # Safety
    ///
    /// As for a block: its elements are so many from here.
    #[inline(always)]
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

    /// Computes a line of elements that are apart: they are brought together before.
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
            widest(
                #[inline(always)]
                || self.line([x, y], found),
            );
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
            widest(
                #[inline(always)]
                || unsafe { self.lines([only, only], *out, from, count) },
            );
            return Ok(());
        };
        // SAFETY: as above.
        widest(
            #[inline(always)]
            || unsafe { self.lines([first, last], *out, from, count) },
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{largest, powers};
    use crate::real::Real;
    use crate::sums::sum;
    use crate::vectors::widest;

    fn numbers() -> Vec<f32> {
        let ends = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, 88.73, -87.4];
        (-20_000_i16..20_000).map(|at| f32::from(at) * 0.005_1).chain(ends).collect()
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // as loops are
    fn all(x: &[f32], function: impl Fn(f32) -> f32) -> Vec<u32> {
        let mut found = vec![0.0_f32; x.len()];
        for (to, &each) in found.iter_mut().zip(x) {
            *to = function(each);
        }
        found.into_iter().map(|each| if each.is_nan() { 1 } else { each.to_bits() }).collect()
    }

    macro_rules! same {
        ($x:expr, $function:expr) => {
            let wide = widest(
                #[inline(always)]
                || all($x, $function),
            );
            assert_eq!(wide, all($x, $function));
        };
    }

    #[test]
    fn functions_have_the_same_bits_with_all_vectors() {
        let x = &numbers();
        same!(x, Real::exp);
        same!(x, Real::exp_m1);
        same!(x, Real::tanh);
        same!(x, |x: f32| x.normal().0);
        same!(x, |x: f32| x.normal().1);
        same!(x, |x: f32| Real::ln_1p(Real::exp(-Real::abs(x))));
    }

    #[test]
    fn sums_have_the_same_bits_with_all_vectors() {
        let whole: Vec<f32> = numbers().into_iter().filter(|each| each.is_finite()).collect();
        for count in (0..200).chain([4096, 10_007]) {
            let x = &whole[..count];
            let (mut one, mut two) = (vec![0.0; count], vec![0.0; count]);
            let own =
                [largest(x).into(), powers(x, 1.5, &mut one), sum([x, &one], |[x, y]| f64::from(x) * f64::from(y))];
            let wide = widest(
                #[inline(always)]
                || [largest(x).into(), powers(x, 1.5, &mut two), sum([x, &two], |[x, y]| f64::from(x) * f64::from(y))],
            );
            assert_eq!(wide.map(f64::to_bits), own.map(f64::to_bits));
            let exact: f64 = x.iter().map(|&x| f64::from(x)).sum();
            assert!((sum([x], |[x]| f64::from(x)) - exact).abs() <= 1e-12 * exact.abs().max(1.0) * 1e2);
        }
    }
}
