//! Loops that cast elements from one type to another by C's rules, which are NumPy's.
//!
//! Left out are floating-point numbers to integers, because the result for one out of range depends on the compiler of
//! NumPy, complex numbers to real ones, which are refused elsewhere, and doubles and complex numbers to halves. Integers
//! become halves by way of single precision, as NumPy's do.

use super::halves;
use super::kernel::StridedLoop;
use crate::DType;
use half::f16;
use std::ffi::{c_char, c_void};

/// Elements at most that a separate op casts before their use. More elements are cast by the loops, a piece at a time,
/// which stays in the cache.
const APART: usize = 1 << 14;

/// Picoseconds for a half that is cast by itself, about.
const BY_ONE: u16 = 3000;

/// Whether a separate op casts an operand of this many elements.
#[must_use]
#[inline]
pub const fn is_cast_apart(elements: usize) -> bool {
    elements <= APART
}

/// A truth value as it lies in an array.
#[derive(Clone, Copy)]
struct Truth(u8);

#[derive(Clone, Copy)]
#[repr(C)]
struct Complex<T>(T, T);

/// What C makes of a value of this type where one of another type is asked for. The language is about to have a `cast` of its own.
trait As<T> {
    fn c_cast(self) -> T;
}

macro_rules! numbers {
    ($($from:ty => [$($to:ty),*]),* $(,)?) => {$($(
        impl As<$to> for $from {
            #[inline(always)]
            #[allow(clippy::inline_always)] // into the loop
            #[allow(clippy::cast_lossless, clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // C's rules
            #[allow(clippy::cast_precision_loss, clippy::cast_sign_loss, clippy::unnecessary_cast)] // as above
            fn c_cast(self) -> $to {
                self as $to
            }
        }
    )*)*};
}

macro_rules! integers {
    ($($from:ty),*) => {$(
        numbers!($from => [i8, u8, i16, u16, i32, u32, i64, u64, f32, f64]);
    )*};
}

macro_rules! others {
    ($($real:ty),*) => {$(
        impl As<Truth> for $real {
            #[inline(always)]
            #[allow(clippy::inline_always)] // into the loop
            #[allow(clippy::float_cmp)] // any other number is true
            fn c_cast(self) -> Truth {
                Truth(u8::from(self != <$real>::default()))
            }
        }
        impl As<$real> for Truth {
            #[inline(always)]
            #[allow(clippy::inline_always)] // into the loop
            #[allow(clippy::cast_lossless, clippy::cast_possible_wrap)] // 0 or 1
            fn c_cast(self) -> $real {
                u8::from(self.0 != 0) as $real
            }
        }
    )*};
}

/// Casts from and to half precision, by way of single precision.
macro_rules! halves {
    ($($number:ty),*) => {$(
        impl As<f16> for $number {
            #[inline]
            fn c_cast(self) -> f16 {
                f16::from_f32(self.c_cast())
            }
        }
    )*};
}

impl As<f32> for f16 {
    #[inline]
    fn c_cast(self) -> f32 {
        self.to_f32()
    }
}

impl As<f64> for f16 {
    #[inline]
    fn c_cast(self) -> f64 {
        f64::from(self.to_f32())
    }
}

impl As<Truth> for f16 {
    #[inline]
    fn c_cast(self) -> Truth {
        Truth(u8::from(self.to_bits() & 0x7fff != 0))
    }
}

integers!(i8, u8, i16, u16, i32, u32, i64, u64);
halves!(i8, u8, i16, u16, i32, u32, i64, u64, Truth);
numbers!(f32 => [f32, f64], f64 => [f32, f64]);
others!(i8, u8, i16, u16, i32, u32, i64, u64, f32, f64);

impl<S: As<f32>> As<Complex<f32>> for S {
    #[inline]
    fn c_cast(self) -> Complex<f32> {
        Complex(self.c_cast(), 0.0)
    }
}

impl<S: As<f64>> As<Complex<f64>> for S {
    #[inline]
    fn c_cast(self) -> Complex<f64> {
        Complex(self.c_cast(), 0.0)
    }
}

impl As<Complex<f64>> for Complex<f32> {
    #[inline]
    fn c_cast(self) -> Complex<f64> {
        Complex(self.0.c_cast(), self.1.c_cast())
    }
}

impl As<Complex<f32>> for Complex<f64> {
    #[inline]
    fn c_cast(self) -> Complex<f32> {
        Complex(self.0.c_cast(), self.1.c_cast())
    }
}

/// # Safety
///
/// As for the loop itself.
unsafe extern "C" fn cast<S: As<T> + Copy, T: Copy>(
    args: *mut *mut c_char,
    dimensions: *const isize,
    steps: *const isize,
    _: *mut c_void,
) {
    // SAFETY: two operands and one axis, by the loop's contract; elements are read and written unaligned.
    unsafe {
        let (count, from, to) = (*dimensions, *steps, *steps.add(1));
        let (source, target) = (*args, *args.add(1));
        if from.unsigned_abs() == size_of::<S>() && to.unsigned_abs() == size_of::<T>() && from > 0 && to > 0 {
            let (source, target) = (source.cast::<S>(), target.cast::<T>());
            for index in 0..count.unsigned_abs() {
                target.add(index).write_unaligned(source.add(index).read_unaligned().c_cast());
            }
            return;
        }
        for index in 0..count {
            let element = source.wrapping_offset(index * from).cast::<S>().read_unaligned();
            target.wrapping_offset(index * to).cast::<T>().write_unaligned(element.c_cast());
        }
    }
}

/// The loop that casts elements of one type to another one, if there is one.
#[must_use]
pub fn cast_loop(from: DType, to: DType) -> Option<StridedLoop> {
    type Function = unsafe extern "C" fn(*mut *mut c_char, *const isize, *const isize, *mut c_void);
    macro_rules! of {
        ($source:ty: $($name:ident => $target:ty),*) => {
            match to {
                $(DType::$name => cast::<$source, $target> as Function,)*
                #[allow(unreachable_patterns)] // integers are cast to every type
                _ => return None,
            }
        };
    }
    macro_rules! of_integer {
        ($source:ty) => {
            of!($source: Bool => Truth, Int8 => i8, UInt8 => u8, Int16 => i16, UInt16 => u16, Int32 => i32,
                UInt32 => u32, Int64 => i64, UInt64 => u64, Float16 => f16, Float32 => f32, Float64 => f64,
                Complex64 => Complex<f32>, Complex128 => Complex<f64>)
        };
    }
    macro_rules! of_float {
        ($source:ty) => {
            of!($source: Bool => Truth, Float32 => f32, Float64 => f64, Complex64 => Complex<f32>,
                Complex128 => Complex<f64>)
        };
    }
    if from == to {
        return None; // a copy
    }
    let function = match from {
        DType::Bool => of!(Truth: Int8 => i8, UInt8 => u8, Int16 => i16, UInt16 => u16, Int32 => i32, UInt32 => u32,
            Int64 => i64, UInt64 => u64, Float16 => f16, Float32 => f32, Float64 => f64,
            Complex64 => Complex<f32>, Complex128 => Complex<f64>),
        DType::Int8 => of_integer!(i8),
        DType::UInt8 => of_integer!(u8),
        DType::Int16 => of_integer!(i16),
        DType::UInt16 => of_integer!(u16),
        DType::Int32 => of_integer!(i32),
        DType::UInt32 => of_integer!(u32),
        DType::Int64 => of_integer!(i64),
        DType::UInt64 => of_integer!(u64),
        DType::Float32 if to == DType::Float16 => halves::of_single as Function,
        DType::Float32 => of_float!(f32),
        DType::Float64 => of_float!(f64),
        DType::Complex64 => of!(Complex<f32>: Complex128 => Complex<f64>),
        DType::Complex128 => of!(Complex<f64>: Complex64 => Complex<f32>),
        DType::Float16 if to == DType::Float32 => halves::to_single as Function,
        DType::Float16 => {
            of!(f16: Bool => Truth, Float64 => f64, Complex64 => Complex<f32>, Complex128 => Complex<f64>)
        }
    };
    let by_one = (from == DType::Float16 && to != DType::Float32) || (to == DType::Float16 && from != DType::Float32);
    // SAFETY: it touches only its operands, and takes any bytes for numbers.
    let kernel = unsafe { StridedLoop::new(function, std::ptr::null_mut(), &[from], &[to]) };
    kernel.map(|kernel| kernel.with_effort(if by_one { BY_ONE } else { 200 }))
}
