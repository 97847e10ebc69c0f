//! Float32 and float64.

use crate::buffer::Plain;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub};

/// The numbers of kernels.
pub(crate) trait Number:
    Plain
    + Default
    + Send
    + Sync
    + PartialOrd
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + Mul<Output = Self>
    + MulAssign
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    const ZERO: Self;
    const ONE: Self;
    const LOWEST: Self;

    /// The nearest number of this type.
    fn of(value: f64) -> Self;
    /// As float64.
    fn wide(self) -> f64;
    fn is_nan(self) -> bool;
}

macro_rules! number {
    ($type:ty, $of:expr) => {
        impl Number for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = Self::NEG_INFINITY;

            #[inline]
            fn of(value: f64) -> Self {
                $of(value)
            }

            #[inline]
            fn wide(self) -> f64 {
                f64::from(self)
            }

            #[inline]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
        }
    };
}

/// The kernel for a dtype's type of numbers, under a name of its own; nothing for other dtypes.
macro_rules! of_dtype {
    ($dtype:expr, $type:ident => $made:expr) => {
        match $dtype {
            weft_array::DType::Float32 => {
                type $type = f32;
                Some($made)
            }
            weft_array::DType::Float64 => {
                type $type = f64;
                Some($made)
            }
            _ => None,
        }
    };
}
pub(crate) use of_dtype;

#[allow(clippy::cast_possible_truncation)] // the nearest one is meant
fn narrow(value: f64) -> f32 {
    value as f32
}

number!(f32, narrow);
number!(f64, std::convert::identity);

/// Whether a number comes before the largest until now: NaN is the largest.
#[inline]
#[allow(clippy::neg_cmp_op_on_partial_ord)] // NaN is neither
pub(crate) fn is_larger<T: Number>(value: T, best: T) -> bool {
    // Not less or equal: larger, or one of them is NaN.
    !(value <= best) & !best.is_nan()
}

/// The larger of two, the first of equals.
#[inline]
pub(crate) fn larger<T: Number>(best: T, value: T) -> T {
    if is_larger(value, best) { value } else { best }
}

/// A matrix as a product takes it: where it begins, and how many elements its rows and its columns are apart.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<T> {
    pub(crate) start: *mut T,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// `out = left @ right`, or `out += left @ right`, for matrices of `[rows, inner, columns]`.
///
/// # Safety
///
/// The matrices lie inside of their memory, and the output is the caller's alone.
pub(crate) unsafe fn multiply<T: Number>(
    [rows, inner, columns]: [usize; 3],
    out: Matrix<T>,
    left: Matrix<T>,
    right: Matrix<T>,
    adds: bool,
) {
    let step = |length: usize| length.cast_signed();
    // SAFETY: the caller's promise.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.start,
            step(out.column),
            step(out.row),
            adds,
            left.start.cast_const(),
            step(left.column),
            step(left.row),
            right.start.cast_const(),
            step(right.column),
            step(right.row),
            T::ONE,
            T::ONE,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
