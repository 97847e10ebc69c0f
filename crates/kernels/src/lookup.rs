//! Rows of a table by number, and the gradient of the table: the sum of the gradients for each number.

use crate::buffer::{slice, slice_mut};
use crate::integers::{Choice, Integers, is_taken};
use crate::number::{Number, of_dtype};
use crate::parts;
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, DType};
use weft_engine::Cause;

/// A look-up in a table of float32 or float64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    /// Whether rows are added up, of gradients and numbers; else they are taken, of numbers and the table.
    pub gradient: bool,
    /// The type of the numbers: int32 or int64.
    pub numbers: DType,
    /// How many numbers there are.
    pub count: usize,
    /// How many rows the table has.
    pub rows: usize,
    /// Elements of a row.
    pub width: usize,
}

impl Lookup {
    /// The step that computes it.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        if !is_taken(self.numbers) {
            return None;
        }
        of_dtype!(dtype, T => Arc::new(By::<T>(self, PhantomData)))
    }

    /// Types and sizes of its operands, the output last.
    #[must_use]
    pub fn operands(&self, dtype: DType) -> [(DType, usize); 3] {
        let numbers = (self.numbers, self.count);
        let (table, taken) = ((dtype, self.rows * self.width), (dtype, self.count * self.width));
        if self.gradient { [taken, numbers, table] } else { [numbers, table, taken] }
    }
}

struct By<T>(Lookup, PhantomData<T>);

impl<T: Number> By<T> {
    fn rows(&self) -> Choice {
        Choice { count: self.0.rows, one: "row", many: "rows" }
    }

    /// # Safety
    ///
    /// As for a block.
    unsafe fn numbers<'a>(&self, arrays: &[*mut u8]) -> Integers<'a> {
        // SAFETY: the caller's promise: these are so many of their type.
        unsafe { Integers::of(arrays[usize::from(self.0.gradient)], self.0.numbers, self.0.count) }
    }
}

impl<T: Number> Blocked for By<T> {
    fn blocks(&self) -> usize {
        let units = if self.0.gradient { self.0.rows } else { self.0.count };
        parts::count(units, self.operations())
    }

    fn operations(&self) -> usize {
        let rows = if self.0.gradient { self.0.count + self.0.rows } else { self.0.count };
        rows.saturating_mul(self.0.width)
    }

    fn may_fail(&self) -> bool {
        true
    }

    unsafe fn begin(&self, arrays: &[*mut u8], _: *mut u8) -> Result<(), Cause> {
        // SAFETY: the caller's promise.
        unsafe { self.numbers(arrays) }.check(self.rows())
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let (own, &[first, second, out]) = (&self.0, arrays) else { return Ok(()) };
        // SAFETY: the caller's promise.
        let numbers = unsafe { self.numbers(arrays) };
        if !own.gradient {
            for at in parts::part(own.count, self.blocks(), block) {
                let row = numbers.at(at, self.rows())?;
                // SAFETY: as above; the table has the row, and results are disjoint.
                let (from, to): (&[T], &mut [T]) =
                    unsafe { (slice(second, row * own.width, own.width), slice_mut(out, at * own.width, own.width)) };
                to.copy_from_slice(from);
            }
            return Ok(());
        }
        // Each block has rows of its own, and adds to them in the order of the numbers.
        let rows = parts::part(own.rows, self.blocks(), block);
        // SAFETY: as above; blocks' rows are disjoint.
        let table: &mut [T] = unsafe { slice_mut(out, rows.start * own.width, rows.len() * own.width) };
        table.fill(T::ZERO);
        for at in 0..own.count {
            let row = numbers.at(at, self.rows())?;
            if !rows.contains(&row) {
                continue;
            }
            // SAFETY: as above.
            let grads: &[T] = unsafe { slice(first, at * own.width, own.width) };
            let target = &mut table[(row - rows.start) * own.width..][..own.width];
            for (to, more) in target.iter_mut().zip(grads) {
                *to += *more;
            }
        }
        Ok(())
    }
}
