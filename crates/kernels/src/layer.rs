//! Normalisation of rows by their own mean and deviation, and its gradients. Sums are of float64.

use crate::buffer::{slice, slice_mut};
use crate::number::{Number, of_dtype};
use crate::parts;
use crate::sums::{share, sum};
use crate::vectors::widest;
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, DType};
use weft_engine::Cause;

/// A normalisation of rows of float32 or float64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerNorm {
    /// Whether gradients of data, gamma and beta are computed, of gradients, data and gamma; else normalised data, of data,
    /// gamma and beta.
    pub gradient: bool,
    /// How many rows there are.
    pub outer: usize,
    /// Their length.
    pub length: usize,
    /// The addend of variances.
    pub eps: f64,
}

impl LayerNorm {
    /// The step that computes it.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        of_dtype!(dtype, T => Arc::new(By::<T>(self, PhantomData)))
    }

    /// Sizes of its operands, three inputs first.
    #[must_use]
    pub fn operands(&self) -> Vec<usize> {
        let (whole, vector) = (self.outer * self.length, self.length);
        if self.gradient {
            vec![whole, whole, vector, whole, vector, vector]
        } else {
            vec![whole, vector, vector, whole]
        }
    }
}

struct By<T>(LayerNorm, PhantomData<T>);

#[allow(clippy::inline_always)] // see `vectors`
impl<T: Number> By<T> {
    /// The mean of a row, and the reciprocal of its deviation.
    #[inline(always)]
    fn statistics(&self, x: &[T]) -> (f64, f64) {
        let share = share(x.len());
        let mean = sum([x], |[x]| x.wide()) * share;
        let variance = sum([x], |[x]| (x.wide() - mean) * (x.wide() - mean)) * share;
        (mean, 1.0 / (variance + self.0.eps).sqrt())
    }

    #[inline(always)]
    fn normal(&self, x: &[T], gamma: &[T], beta: &[T], out: &mut [T]) {
        let (mean, inverse) = self.statistics(x);
        let (mean, inverse) = (T::of(mean), T::of(inverse));
        for (((to, &x), &gamma), &beta) in out.iter_mut().zip(x).zip(gamma).zip(beta) {
            *to = (x - mean) * inverse * gamma + beta;
        }
    }

    /// Gradients of a row; its part of those of gamma and beta goes to `sums`.
    #[inline(always)]
    fn back(&self, g: &[T], x: &[T], gamma: &[T], out: &mut [T], sums: &mut [f64]) {
        let count = x.len();
        let (mean, inverse) = self.statistics(x);
        let share = share(count);
        let total = sum([g, gamma], |[g, gamma]| g.wide() * gamma.wide()) * share;
        let moment = sum([g, gamma, x], |[g, gamma, x]| g.wide() * gamma.wide() * (x.wide() - mean)) * inverse * share;
        let (gammas, betas) = sums.split_at_mut(count);
        // Two loops: of more arrays the compiler does not find out whether they overlap.
        for (((gammas, betas), g), x) in gammas.iter_mut().zip(betas).zip(g).zip(x) {
            *gammas += g.wide() * ((x.wide() - mean) * inverse);
            *betas += g.wide();
        }
        for (((to, g), x), gamma) in out.iter_mut().zip(g).zip(x).zip(gamma) {
            let normal = (x.wide() - mean) * inverse;
            *to = T::of((g.wide() * gamma.wide() - total - normal * moment) * inverse);
        }
    }
}

impl<T: Number> Blocked for By<T> {
    fn blocks(&self) -> usize {
        parts::count(self.0.outer, self.operations())
    }

    fn operations(&self) -> usize {
        self.0.outer.saturating_mul(self.0.length).saturating_mul(8)
    }

    fn scratch(&self) -> usize {
        if self.0.gradient { self.blocks() * 2 * self.0.length * size_of::<f64>() } else { 0 }
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], scratch: *mut u8, block: usize) -> Result<(), Cause> {
        let (length, rows) = (self.0.length, parts::part(self.0.outer, self.blocks(), block));
        widest(
            #[inline(always)]
            || {
                for (number, row) in rows.enumerate() {
                    // SAFETY: the caller's promise: operands have these sizes; rows are disjoint, and blocks have sums of their own.
                    unsafe {
                        let line = |at: usize| slice::<T>(arrays[at], row * length, length);
                        let vector = |at: usize| slice::<T>(arrays[at], 0, length);
                        let out = slice_mut::<T>(arrays[3], row * length, length);
                        if self.0.gradient {
                            let sums: &mut [f64] = slice_mut(scratch, block * 2 * length, 2 * length);
                            if number == 0 {
                                sums.fill(0.0);
                            }
                            self.back(line(0), line(1), vector(2), out, sums);
                        } else {
                            self.normal(line(0), vector(1), vector(2), out);
                        }
                    }
                }
            },
        );
        Ok(())
    }

    unsafe fn finish(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        let (length, blocks) = (self.0.length, self.blocks());
        let &[_, _, _, _, gamma, beta] = arrays else { return Ok(()) };
        // SAFETY: the caller's promise; each block has written sums.
        let (sums, gamma, beta): (&[f64], &mut [T], &mut [T]) = unsafe {
            (slice(scratch, 0, blocks * 2 * length), slice_mut(gamma, 0, length), slice_mut(beta, 0, length))
        };
        for at in 0..length {
            let total = |from: usize| -> f64 { (0..blocks).map(|block| sums[block * 2 * length + from + at]).sum() };
            gamma[at] = T::of(total(0));
            beta[at] = T::of(total(length));
        }
        Ok(())
    }
}
