//! Sorted copies of vectors.
//!
//! If a worker is idle, the copy of the elements splits them by a pivot: those below it to the front, all others to the
//! back. Each of the two parts is then a block, sorted by the given loop, and the worker may take one. Otherwise there
//! is one part.
//!
//! Equal floats of other bits (zeros of two signs, kinds of NaN) get their order in the input back at the end. So the
//! bits of the result depend only on the input, and neither on the pivot nor on the loop.

#![allow(clippy::cast_ptr_alignment)] // elements are aligned: the code that runs blocks aligns them

use super::Blocked;
use crate::DType;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use weft_engine::Cause;

/// Sorts elements in place, NaN last, in the form of NumPy's loops. It gets the first element, the number of elements,
/// and a pointer that it ignores. It returns 0, or another number if it has failed.
pub type SortLoop = unsafe extern "C" fn(*mut c_void, isize, *mut c_void) -> c_int;

struct Sort {
    run: SortLoop,
    of: OfType,
    count: usize,
}

/// The types of `deal` and `put_back`.
type Deal = unsafe fn(*const u8, *mut u8, usize, bool) -> usize;
type PutBack = unsafe fn(*const u8, *mut u8, usize);

/// The operations on elements of one type.
#[derive(Clone, Copy)]
struct OfType {
    /// Bytes of an element.
    size: usize,
    deal: Deal,
    /// None for integers: equal ones have the same bits.
    put_back: Option<PutBack>,
}

impl OfType {
    /// None for a type that has no numbers here.
    fn new(dtype: DType) -> Option<Self> {
        let (deal, put_back): (Deal, Option<PutBack>) = match dtype {
            DType::Int32 => (deal::<i32>, None),
            DType::UInt32 => (deal::<u32>, None),
            DType::Int64 => (deal::<i64>, None),
            DType::UInt64 => (deal::<u64>, None),
            DType::Float32 => (deal::<f32>, Some(put_back::<f32>)),
            DType::Float64 => (deal::<f64>, Some(put_back::<f64>)),
            _ => return None,
        };
        Some(Self { size: dtype.size(), deal, put_back })
    }
}

/// The number of elements that the choice of a pivot looks at.
const SAMPLE: usize = 127;

/// The number of parts.
const PARTS: usize = 2;

/// The step that writes the sorted elements of a vector of `count` to another one; None for a type without numbers
/// here.
///
/// # Safety
///
/// The loop sorts aligned elements of this type, on any thread, several vectors at the same time.
#[must_use]
pub unsafe fn sort_step(sort: SortLoop, dtype: DType, count: usize) -> Option<Arc<dyn Blocked>> {
    OfType::new(dtype).map(|of| Arc::new(Sort { run: sort, of, count }) as Arc<dyn Blocked>)
}

impl Blocked for Sort {
    fn blocks(&self) -> usize {
        PARTS
    }

    fn operations(&self) -> usize {
        self.count.saturating_mul(self.count.max(1).ilog2() as usize)
    }

    fn scratch(&self) -> usize {
        size_of::<usize>() // the start of the second part
    }

    unsafe fn begin(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        // SAFETY: the caller's promise.
        unsafe { self.begin_with(arrays, scratch, false) }
    }

    unsafe fn begin_with(&self, arrays: &[*mut u8], scratch: *mut u8, is_helped: bool) -> Result<(), Cause> {
        let &[from, to] = arrays else { return Ok(()) };
        // SAFETY: the caller's promise: `count` aligned elements at each. The scratch is aligned and large enough.
        unsafe { scratch.cast::<usize>().write((self.of.deal)(from, to, self.count, is_helped)) };
        Ok(())
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], scratch: *mut u8, block: usize) -> Result<(), Cause> {
        let &[_, to] = arrays else { return Ok(()) };
        // SAFETY: `begin` has written it.
        let start = unsafe { scratch.cast_const().cast::<usize>().read() };
        let (first, count) = if block == 0 { (0, start) } else { (start, self.count - start) };
        let at = to.wrapping_add(first * self.of.size);
        // SAFETY: `sort_step`'s caller vouches for the loop; the elements belong to this block alone.
        match unsafe { (self.run)(at.cast(), count.cast_signed(), std::ptr::null_mut()) } {
            0 => Ok(()),
            code => Err(Cause::Native(code)),
        }
    }

    unsafe fn finish(&self, arrays: &[*mut u8], _: *mut u8) -> Result<(), Cause> {
        if let (&[from, to], Some(put_back)) = (arrays, self.of.put_back) {
            // SAFETY: the caller's promise: `count` aligned elements at each, and all blocks are done.
            unsafe { put_back(from, to, self.count) };
        }
        Ok(())
    }
}

/// Gives equal floats among the sorted ones their order in the input.
///
/// # Safety
///
/// There are this many aligned elements at each, and the second ones have no other user.
#[allow(clippy::eq_op)] // NaN alone is not equal to itself
unsafe fn put_back<T: Copy + PartialOrd + Default>(from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    let (from, to) = unsafe {
        (std::slice::from_raw_parts(from.cast::<T>(), count), std::slice::from_raw_parts_mut(to.cast::<T>(), count))
    };
    let zero = T::default();
    let (first, last) = (to.partition_point(|x| *x < zero), to.partition_point(|x| *x <= zero));
    if last - first > 1 {
        let found = from.iter().filter(|x| **x == zero);
        to[first..last].iter_mut().zip(found).for_each(|(zero, x)| *zero = *x);
    }
    if to.last().is_some_and(|x| x != x) {
        let first = to.partition_point(|x| x == x);
        let found = from.iter().filter(|x| *x != *x);
        to[first..].iter_mut().zip(found).for_each(|(nan, x)| *nan = *x);
    }
}

/// The approximate median: that of some elements, without NaNs.
#[allow(clippy::eq_op)] // NaN alone is not equal to itself
fn pivot<T: Copy + PartialOrd>(from: &[T]) -> Option<T> {
    let mut some: Vec<T> =
        (0..SAMPLE).filter_map(|at| from.get(at * from.len() / SAMPLE)).copied().filter(|x| x == x).collect();
    some.sort_unstable_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    some.get(some.len() / 2).copied()
}

/// Copies the elements. If `is_parted` and there is a pivot, those below it go to the front, and all others to the back
/// in reverse order. Returns the start of these.
///
/// # Safety
///
/// There are this many aligned elements to read, and room for as many.
unsafe fn deal<T: Copy + PartialOrd>(from: *const u8, to: *mut u8, count: usize, is_parted: bool) -> usize {
    // SAFETY: the caller's promise.
    let from = unsafe { std::slice::from_raw_parts(from.cast::<T>(), count) };
    let to = to.cast::<T>();
    let Some(pivot) = is_parted.then(|| pivot(from)).flatten() else {
        // SAFETY: the caller's promise.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), count) };
        return 0;
    };
    let (mut front, mut back) = (0, count);
    for element in from {
        let below = usize::from(*element < pivot);
        // SAFETY: the gap between the two parts has as many places as elements are left, this one included. The element
        // is written to both ends of the gap, and stays at one of them: no branch has to be predicted.
        unsafe {
            to.add(front).write(*element);
            to.add(back - 1).write(*element);
        }
        front += below;
        back -= 1 - below;
    }
    front
}
