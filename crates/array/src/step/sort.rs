//! Sorted copies of vectors.
//!
//! Where a worker is idle, elements are dealt out by a pivot while they are copied, those below it to the front and all others to
//! the back. Each of the two parts is then a block, sorted by a loop that is given, and the worker may take one. Otherwise there is one part.
//!
//! Equal floats of other bits, zeros of two signs and kinds of NaN, get the order that they have in the input at the end: so
//! the bits of the result depend on the input alone, and neither on the pivot nor on the loop.

#![allow(clippy::cast_ptr_alignment)] // elements begin where theirs do: what runs blocks aligns them

use super::Blocked;
use crate::DType;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use weft_engine::Cause;

/// What sorts so many elements where they lie, NaN last, in the form of NumPy's loops: it is given the first element, how many there are,
/// and a pointer that it does not look at. It answers 0, or another number if it has failed.
pub type SortLoop = unsafe extern "C" fn(*mut c_void, isize, *mut c_void) -> c_int;

struct Sort {
    run: SortLoop,
    dtype: DType,
    count: usize,
}

/// How many elements are looked at for a pivot.
const SAMPLE: usize = 127;

/// The parts.
const PARTS: usize = 2;

/// The step that writes so many elements of a vector, sorted, to another one; nothing for a type of which it has no numbers.
///
/// # Safety
///
/// The loop sorts elements of this type, aligned ones, on any thread, several vectors at the same time.
#[must_use]
pub unsafe fn sort_step(sort: SortLoop, dtype: DType, count: usize) -> Option<Arc<dyn Blocked>> {
    let has =
        matches!(dtype, DType::Int32 | DType::UInt32 | DType::Int64 | DType::UInt64 | DType::Float32 | DType::Float64);
    has.then(|| Arc::new(Sort { run: sort, dtype, count }) as Arc<dyn Blocked>)
}

macro_rules! by_type {
    ($dtype:expr, $type:ident => $body:expr, $otherwise:expr) => {
        match $dtype {
            DType::Int32 => {
                type $type = i32;
                $body
            }
            DType::UInt32 => {
                type $type = u32;
                $body
            }
            DType::Int64 => {
                type $type = i64;
                $body
            }
            DType::UInt64 => {
                type $type = u64;
                $body
            }
            DType::Float32 => {
                type $type = f32;
                $body
            }
            DType::Float64 => {
                type $type = f64;
                $body
            }
            _ => $otherwise,
        }
    };
}

impl Blocked for Sort {
    fn blocks(&self) -> usize {
        PARTS
    }

    fn operations(&self) -> usize {
        self.count.saturating_mul(self.count.max(1).ilog2() as usize)
    }

    fn scratch(&self) -> usize {
        size_of::<usize>() // where the second part begins
    }

    unsafe fn begin(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        // SAFETY: the caller's promise.
        unsafe { self.begin_with(arrays, scratch, false) }
    }

    unsafe fn begin_with(&self, arrays: &[*mut u8], scratch: *mut u8, is_helped: bool) -> Result<(), Cause> {
        let &[from, to] = arrays else { return Ok(()) };
        by_type!(self.dtype, Element => {
            // SAFETY: the caller's promise: `count` aligned elements at each.
            let from = unsafe { std::slice::from_raw_parts(from.cast_const().cast::<Element>(), self.count) };
            // SAFETY: as above; nobody else knows what is written.
            let start = unsafe { deal(from, to.cast::<Element>(), if is_helped { pivot(from) } else { None }) };
            // SAFETY: the scratch is aligned and large enough.
            unsafe { scratch.cast::<usize>().write(start) };
        }, {});
        Ok(())
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], scratch: *mut u8, block: usize) -> Result<(), Cause> {
        let &[_, to] = arrays else { return Ok(()) };
        // SAFETY: `begin` has written it.
        let start = unsafe { scratch.cast_const().cast::<usize>().read() };
        let (first, count) = if block == 0 { (0, start) } else { (start, self.count - start) };
        let at = to.wrapping_add(first * self.dtype.size());
        // SAFETY: `sort_step`'s caller vouches for the loop; the elements are this block's alone.
        match unsafe { (self.run)(at.cast(), count.cast_signed(), std::ptr::null_mut()) } {
            0 => Ok(()),
            code => Err(Cause::Native(code)),
        }
    }

    unsafe fn finish(&self, arrays: &[*mut u8], _: *mut u8) -> Result<(), Cause> {
        let &[from, to] = arrays else { return Ok(()) };
        macro_rules! put_back {
            ($type:ty) => {{
                // SAFETY: the caller's promise: `count` aligned elements at each, and all blocks are done.
                let (from, to) = unsafe {
                    let from = std::slice::from_raw_parts(from.cast_const().cast::<$type>(), self.count);
                    (from, std::slice::from_raw_parts_mut(to.cast::<$type>(), self.count))
                };
                let (first, last) = (to.partition_point(|x| *x < 0.0), to.partition_point(|x| *x <= 0.0));
                let zeros = &mut to[first..last];
                if zeros.iter().any(|zero| zero.to_bits() != zeros[0].to_bits()) {
                    let found = from.iter().filter(|x| **x == 0.0);
                    zeros.iter_mut().zip(found).for_each(|(zero, x)| *zero = *x);
                }
                if to.last().is_some_and(|x| x.is_nan()) {
                    let first = to.partition_point(|x| !x.is_nan());
                    let found = from.iter().filter(|x| x.is_nan());
                    to[first..].iter_mut().zip(found).for_each(|(nan, x)| *nan = *x);
                }
            }};
        }
        match self.dtype {
            DType::Float32 => put_back!(f32),
            DType::Float64 => put_back!(f64),
            _ => {} // equal integers have the same bits
        }
        Ok(())
    }
}

/// About the middle one of the elements: of some of them, which are no NaN.
#[allow(clippy::eq_op)] // NaN alone is not equal to itself
fn pivot<T: Copy + PartialOrd>(from: &[T]) -> Option<T> {
    let mut some: Vec<T> =
        (0..SAMPLE).filter_map(|at| from.get(at * from.len() / SAMPLE)).copied().filter(|x| x == x).collect();
    some.sort_unstable_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    some.get(some.len() / 2).copied()
}

/// Writes the elements below the pivot to the front and all others to the back, the last one first. Answers where these begin.
///
/// # Safety
///
/// There is room for as many elements.
unsafe fn deal<T: Copy + PartialOrd>(from: &[T], to: *mut T, pivot: Option<T>) -> usize {
    let Some(pivot) = pivot else {
        // SAFETY: the caller's promise.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        return 0;
    };
    let (mut front, mut back) = (0, from.len());
    for element in from {
        let below = usize::from(*element < pivot);
        // SAFETY: as many places are left between the two as elements are to come, this one included. It is written to both ends
        // of them, of which one stays: no branch has to be guessed.
        unsafe {
            to.add(front).write(*element);
            to.add(back - 1).write(*element);
        }
        front += below;
        back -= 1 - below;
    }
    front
}
