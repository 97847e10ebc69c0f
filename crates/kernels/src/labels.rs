//! The cross entropy of rows of logits with their labels, and its gradient. Labels are classes, or rows of probabilities.

use crate::buffer::{slice, slice_mut};
use crate::integers::{Choice, Integers, is_taken};
use crate::number::of_dtype;
use crate::parts;
use crate::real::Real;
use crate::rows::{largest, powers};
use crate::sums::sum;
use crate::vectors::widest;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use weft_array::{Blocked, DType};
use weft_engine::Cause;

/// A cross entropy of float32 or float64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossEntropy {
    /// Whether its gradient is computed, of gradients, logits and labels; else a loss for each row, of logits and labels.
    pub gradient: bool,
    /// The type of classes, int32 or int64; none for labels that are rows of the logits' type.
    pub classes: Option<DType>,
    /// How many rows there are.
    pub outer: usize,
    /// How many classes.
    pub length: usize,
}

impl CrossEntropy {
    /// The step that computes it.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        if self.classes.is_some_and(|classes| !is_taken(classes)) {
            return None;
        }
        of_dtype!(dtype, T => Arc::new(By::<T>(self, PhantomData)))
    }

    /// Types and sizes of its operands, inputs first, one more for a gradient.
    #[must_use]
    pub fn operands(&self, dtype: DType) -> Vec<(DType, usize)> {
        let (vector, whole) = ((dtype, self.outer), (dtype, self.outer * self.length));
        let labels = self.classes.map_or(whole, |classes| (classes, self.outer));
        if self.gradient { vec![vector, whole, labels, whole] } else { vec![whole, labels, vector] }
    }
}

struct By<T>(CrossEntropy, PhantomData<T>);

/// Which class a row has, or the probabilities of all.
enum Label<'a, T> {
    Class(usize),
    Row(&'a [T]),
}

#[allow(clippy::inline_always)] // see `vectors`
impl<T: Real> By<T> {
    fn all(&self) -> Choice {
        Choice { count: self.0.length, one: "class", many: "classes" }
    }

    /// # Safety
    ///
    /// As for a block.
    unsafe fn label<'a>(&self, labels: *mut u8, row: usize) -> Result<Label<'a, T>, Cause> {
        let length = self.0.length;
        // SAFETY: the caller's promise.
        unsafe {
            Ok(match self.0.classes {
                Some(dtype) => Label::Class(Integers::of(labels, dtype, self.0.outer).at(row, self.all())?),
                None => Label::Row(slice(labels, row * length, length)),
            })
        }
    }

    /// # Safety
    ///
    /// As for a block.
    #[inline(always)]
    unsafe fn losses(&self, arrays: &[*mut u8], rows: Range<usize>) -> Result<(), Cause> {
        let (length, &[logits, labels, out]) = (self.0.length, arrays) else { return Ok(()) };
        let mut own = vec![T::ZERO; length];
        for row in rows {
            // SAFETY: the caller's promise; rows have losses of their own.
            let (x, label, to): (&[T], _, &mut [T]) =
                unsafe { (slice(logits, row * length, length), self.label(labels, row)?, slice_mut(out, row, 1)) };
            let most = largest(x);
            let shift = powers(x, most, &mut own).ln();
            to[0] = T::of(match label {
                Label::Class(class) => shift - (x[class].wide() - most.wide()),
                Label::Row(label) => sum([label, x], |[label, x]| label.wide() * (shift - (x.wide() - most.wide()))),
            });
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As for a block.
    #[inline(always)]
    unsafe fn gradients(&self, arrays: &[*mut u8], rows: Range<usize>) -> Result<(), Cause> {
        let (length, &[grads, logits, labels, out]) = (self.0.length, arrays) else { return Ok(()) };
        for row in rows {
            // SAFETY: the caller's promise; rows have results of their own.
            let (g, x, label, out): (T, &[T], _, &mut [T]) = unsafe {
                (
                    slice::<T>(grads, row, 1)[0],
                    slice(logits, row * length, length),
                    self.label(labels, row)?,
                    slice_mut(out, row * length, length),
                )
            };
            let share = 1.0 / powers(x, largest(x), out);
            match label {
                Label::Class(class) => {
                    let chance = T::of(share);
                    let own = out[class] * chance - T::ONE;
                    out.iter_mut().for_each(|to| *to = *to * chance * g);
                    out[class] = own * g;
                }
                Label::Row(label) => {
                    let chance = T::of(share * sum([label], |[label]| label.wide()));
                    for (to, &label) in out.iter_mut().zip(label) {
                        *to = (*to * chance - label) * g;
                    }
                }
            }
        }
        Ok(())
    }
}

impl<T: Real> Blocked for By<T> {
    fn blocks(&self) -> usize {
        parts::count(self.0.outer, self.operations())
    }

    fn operations(&self) -> usize {
        self.0.outer.saturating_mul(self.0.length).saturating_mul(8)
    }

    fn may_fail(&self) -> bool {
        self.0.classes.is_some()
    }

    unsafe fn begin(&self, arrays: &[*mut u8], _: *mut u8) -> Result<(), Cause> {
        let Some(dtype) = self.0.classes else { return Ok(()) };
        // SAFETY: the caller's promise: labels are the last input, so many of this type.
        let labels = unsafe { Integers::of(arrays[arrays.len() - 2], dtype, self.0.outer) };
        labels.check(self.all())
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let rows = parts::part(self.0.outer, self.blocks(), block);
        // SAFETY: the caller's promise.
        widest(
            #[inline(always)]
            || unsafe { if self.0.gradient { self.gradients(arrays, rows) } else { self.losses(arrays, rows) } },
        )
    }
}
