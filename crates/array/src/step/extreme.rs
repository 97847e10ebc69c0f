//! The places of the largest, or the smallest, elements along an axis.

use super::Operands;
use super::kernel::signed;
use super::opaque::Opaque;
use super::walk::Walk;
use crate::tuple::Tuple;
use crate::{Array, ArrayError, DType};
use smallvec::SmallVec;
use std::any::Any;
use weft_engine::{Cause, OpContext};

/// The kind of extreme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The larger one.
    Largest,
    /// The smaller one.
    Smallest,
}

/// The places of extremes along an axis: of the first of several, and of the first NaN if there is one, as in NumPy.
pub(crate) struct Extreme {
    which: Which,
    dtype: DType,
    /// Over the output's elements: the input's first ones, the output.
    kept: Walk,
    length: usize,
    step: isize,
}

/// Rows of at most this many elements are searched without branches, several at a time.
const SHORT: usize = 16;
const TOGETHER: usize = 32;

impl Extreme {
    /// The places along `axis` of the input, an axis that the output lacks; without an axis, in the whole input, row
    /// after row. None if the type has no loop.
    pub(crate) fn new(
        which: Which,
        output: &Array,
        input: &Array,
        axis: Option<usize>,
    ) -> Result<Option<Self>, ArrayError> {
        let (from, to) = (input.layout(), output.layout());
        if matches!(input.dtype(), DType::Float16 | DType::Complex64 | DType::Complex128) {
            return Ok(None);
        }
        let refuse = || {
            let along = axis.map_or_else(|| "all axes".to_owned(), |axis| format!("axis {axis}"));
            let (from, to) = (Tuple(&from.shape), Tuple(&to.shape));
            let message = format!("cannot search shape {from} along {along} into shape {to}");
            ArrayError::Invalid(message)
        };
        if output.dtype() != DType::Int64 || from.size() == 0 || std::sync::Arc::ptr_eq(input.buffer(), output.buffer())
        {
            return Err(refuse());
        }
        let Some(axis) = axis else {
            if !input.is_contiguous() {
                return Ok(None);
            }
            if to.size() != 1 {
                return Err(refuse());
            }
            let (length, step) = (from.size(), signed(input.dtype().size()));
            return Ok(Some(Self { which, dtype: input.dtype(), kept: Walk::flat(1, &[0, 0]), length, step }));
        };
        let without = |at: &usize| *at != axis;
        let kept: SmallVec<[usize; 4]> = (0..from.shape.len()).filter(without).collect();
        let shape: SmallVec<[usize; 4]> = kept.iter().map(|&at| from.shape[at]).collect();
        if axis >= from.shape.len() || shape[..] != to.shape[..] {
            return Err(refuse());
        }
        let strides: SmallVec<[isize; 4]> = kept.iter().map(|&at| from.strides[at]).collect();
        let kept = Walk::new(&shape, &[&strides, &to.strides]);
        Ok(Some(Self { which, dtype: input.dtype(), kept, length: from.shape[axis], step: from.strides[axis] }))
    }

    /// Its duration in nanoseconds, about.
    pub(crate) fn nanoseconds(&self) -> usize {
        self.kept.size().saturating_mul(self.length + 5)
    }

    /// Runs it from the first element of the input to the output's.
    ///
    /// # Safety
    ///
    /// There are two pointers, as for [`Step::run`](super::Step::run).
    pub(crate) unsafe fn run_on(&self, arrays: &[*mut u8]) {
        macro_rules! of {
            ($type:ty) => {
                match self.which {
                    // SAFETY: the caller's promise.
                    Which::Largest => unsafe { self.search::<$type>(arrays, |new, old| new > old) },
                    // SAFETY: as above.
                    Which::Smallest => unsafe { self.search::<$type>(arrays, |new, old| new < old) },
                }
            };
        }
        match self.dtype {
            DType::Bool | DType::UInt8 => of!(u8),
            DType::Int8 => of!(i8),
            DType::Int16 => of!(i16),
            DType::UInt16 => of!(u16),
            DType::Int32 => of!(i32),
            DType::UInt32 => of!(u32),
            DType::Int64 => of!(i64),
            DType::UInt64 => of!(u64),
            DType::Float32 => of!(f32),
            DType::Float64 => of!(f64),
            DType::Float16 | DType::Complex64 | DType::Complex128 => {}
        }
    }

    /// # Safety
    ///
    /// As for `run_on`, for elements of this type.
    #[allow(clippy::eq_op)] // NaN alone is not equal to itself
    unsafe fn search<T: Copy + PartialEq>(&self, arrays: &[*mut u8], beats: impl Fn(T, T) -> bool) {
        if self.length <= SHORT {
            // SAFETY: the caller's promise.
            return unsafe { self.search_short(arrays, beats) };
        }
        self.kept.each(arrays, |at| {
            // SAFETY: the caller's promise; there is at least one element.
            unsafe {
                let element =
                    |index: usize| at[0].wrapping_offset(self.step * signed(index)).cast::<T>().read_unaligned();
                let (mut best, mut found) = (element(0), 0);
                if best == best {
                    for index in 1..self.length {
                        let new = element(index);
                        if beats(new, best) {
                            (best, found) = (new, index);
                        } else if new != new {
                            found = index;
                            break;
                        }
                    }
                }
                at[1].cast::<i64>().write_unaligned(signed(found) as i64);
            }
        });
    }

    /// The same for short rows, several at a time. Each element of a short row may be the best so far, so that no
    /// branch could be predicted.
    ///
    /// # Safety
    ///
    /// As for `search`.
    #[allow(clippy::eq_op, clippy::needless_bitwise_bool)] // as above; no branch
    #[allow(clippy::cast_ptr_alignment)] // written unaligned
    unsafe fn search_short<T: Copy + PartialEq>(&self, arrays: &[*mut u8], beats: impl Fn(T, T) -> bool) {
        self.kept.each_row(arrays, |at, count, steps| {
            for start in (0..count).step_by(TOGETHER) {
                let rows = TOGETHER.min(count - start);
                // SAFETY: the caller's promise.
                let element = |row: usize, index: usize| unsafe {
                    let offset = steps[0] * signed(start + row) + self.step * signed(index);
                    at[0].wrapping_offset(offset).cast::<T>().read_unaligned()
                };
                let (mut best, mut found) = ([element(0, 0); TOGETHER], [0_i64; TOGETHER]);
                for (row, best) in best[..rows].iter_mut().enumerate() {
                    *best = element(row, 0);
                }
                for (index, number) in (1..self.length).zip(1_i64..) {
                    for (row, (best, found)) in best[..rows].iter_mut().zip(&mut found).enumerate() {
                        let new = element(row, index);
                        let better = (beats(new, *best) | (new != new)) & (*best == *best);
                        *best = if better { new } else { *best };
                        *found = if better { number } else { *found };
                    }
                }
                for (row, found) in found[..rows].iter().enumerate() {
                    let to = at[1].wrapping_offset(steps[1] * signed(start + row)).cast::<i64>();
                    // SAFETY: as above.
                    unsafe { to.write_unaligned(*found) };
                }
            }
        });
    }
}

impl Opaque for Extreme {
    fn is_hosted(&self) -> bool {
        false
    }

    unsafe fn run(&self, arrays: &Operands, _: &mut OpContext<'_>) -> Result<(), Cause> {
        let start = |array: &Array| Ok(array.buffer().start()?.wrapping_add(array.layout().offset));
        let pointers =
            arrays.iter().map(|(array, _)| start(array)).collect::<Result<SmallVec<[*mut u8; 2]>, Cause>>()?;
        // SAFETY: the caller's promise: the accesses are granted, and the arrays have the layouts that the step was
        // made for.
        unsafe { self.run_on(&pointers) };
        Ok(())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn repeats(&self, _: &dyn Fn(&dyn Any) -> bool) -> bool {
        true
    }
}
