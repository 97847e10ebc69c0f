//! Activations and their gradients, element by element, in the form of NumPy's inner loops.

#![allow(clippy::inline_always)] // see `vectors`

use crate::number::of_dtype;
use crate::real::Real;
use crate::sums::nth;
use crate::vectors::widest;
use std::ffi::{c_char, c_void};
use weft_array::{DType, StridedLoop};

/// The density of a standard normal variable at 0.
const DENSITY: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2 / 2.0;

#[inline(always)]
fn relu<T: Real>([x]: [T; 1]) -> T {
    if x <= T::ZERO { T::ZERO } else { x }
}

/// Puts 0 where elements are less.
#[inline(always)]
pub(crate) fn rectify<T: Real>(x: &mut [T]) {
    x.iter_mut().for_each(|to| *to = relu([*to]));
}

#[inline(always)]
fn relu_data<T: Real>([g, y]: [T; 2]) -> T {
    if y > T::ZERO { g } else { T::ZERO }
}

#[inline(always)]
fn leaky_relu<T: Real>([x, slope]: [T; 2]) -> T {
    if x > T::ZERO { x } else { x * slope }
}

#[inline(always)]
fn leaky_relu_data<T: Real>([g, x, slope]: [T; 3]) -> T {
    if x > T::ZERO { g } else { g * slope }
}

#[inline(always)]
fn elu<T: Real>([x, alpha]: [T; 2]) -> T {
    if x > T::ZERO { x } else { x.exp_m1() * alpha }
}

#[inline(always)]
fn elu_data<T: Real>([g, x, alpha]: [T; 3]) -> T {
    if x > T::ZERO { g } else { g * x.exp() * alpha }
}

#[inline(always)]
pub(crate) fn sigmoid<T: Real>([x]: [T; 1]) -> T {
    let small = (-x.abs()).exp();
    let share = T::ONE / (T::ONE + small);
    if x < T::ZERO { small * share } else { share }
}

#[inline(always)]
fn sigmoid_data<T: Real>([g, y]: [T; 2]) -> T {
    g * y * (T::ONE - y)
}

#[inline(always)]
fn softplus<T: Real>([x]: [T; 1]) -> T {
    let rest = (-x.abs()).exp().ln_1p();
    if x > T::ZERO { x + rest } else { rest }
}

#[inline(always)]
fn softplus_data<T: Real>([g, x]: [T; 2]) -> T {
    g * sigmoid([x])
}

#[inline(always)]
fn gelu<T: Real>([x]: [T; 1]) -> T {
    x * x.normal().0
}

#[inline(always)]
fn gelu_data<T: Real>([g, x]: [T; 2]) -> T {
    let (smaller, density) = x.normal();
    g * (smaller + x * density * T::of(DENSITY))
}

/// Elements that are computed at a time: vectors of them.
const CHUNK: usize = 64;

/// Calls a function of `N` numbers for each of these elements.
#[inline(always)] // else the length is not known
fn call<T: Real, const N: usize>(given: &[&[T; CHUNK]; N], found: &mut [T], function: &impl Fn([T; N]) -> T) {
    for (at, to) in found.iter_mut().enumerate() {
        *to = function(nth(given, at));
    }
}

/// Calls a function of `N` numbers for each element. Operands are taken in chunks, so that the function sees elements one behind
/// the other: where they lie if they do so there, and else brought together.
///
/// # Safety
///
/// As for NumPy's inner loops of `N` inputs and one output.
#[inline(always)]
unsafe fn each<T: Real, const N: usize>(
    args: *mut *mut c_char,
    dimensions: *const isize,
    steps: *const isize,
    function: impl Fn([T; N]) -> T,
) {
    let size = size_of::<T>().cast_signed();
    let (zeros, mut own) = ([T::ZERO; CHUNK], [[T::ZERO; CHUNK]; N]);
    let mut found = [T::ZERO; CHUNK];
    // SAFETY: the caller's promise: there are N + 1 operands and one axis, with all elements inside. An operand that is
    // read in place is aligned, and not written to before the chunk's results are there.
    unsafe {
        let mut left = (*dimensions).cast_unsigned();
        let mut done = 0_isize;
        while left > 0 {
            let count = left.min(CHUNK);
            let mut given = [&zeros; N];
            for (which, (chunk, own)) in given.iter_mut().zip(&mut own).enumerate() {
                let step = *steps.add(which);
                let start = (*args.add(which)).cast_const().offset(done * step);
                if step == size && count == CHUNK && start.cast::<T>().is_aligned() {
                    *chunk = &*start.cast();
                    continue;
                }
                if step == size {
                    start.copy_to_nonoverlapping(own.as_mut_ptr().cast(), count * size_of::<T>());
                } else if step != 0 {
                    for (at, to) in (0_isize..).zip(&mut own[..count]) {
                        *to = start.offset(at * step).cast::<T>().read_unaligned();
                    }
                } else if done == 0 {
                    *own = [start.cast::<T>().read_unaligned(); CHUNK];
                }
                *chunk = own;
            }
            // Of a known length: the compiler takes several elements at a time.
            if count == CHUNK {
                call(&given, &mut found, &function);
            } else {
                call(&given, &mut found[..count], &function);
            }
            let step = *steps.add(N);
            let out = (*args.add(N)).offset(done * step);
            if step == size && count == CHUNK {
                out.cast::<[T; CHUNK]>().write_unaligned(found);
            } else if step == size {
                out.copy_from_nonoverlapping(found.as_ptr().cast(), count * size_of::<T>());
            } else {
                for (at, from) in (0_isize..).zip(&found[..count]) {
                    out.offset(at * step).cast::<T>().write_unaligned(*from);
                }
            }
            left -= count;
            done += count.cast_signed();
        }
    }
}

type Run = unsafe extern "C" fn(*mut *mut c_char, *const isize, *const isize, *mut c_void);

macro_rules! loops {
    ($($name:literal: $function:ident, $count:literal;)*) => {
        /// The loop of this name over numbers of this type: an activation, or its gradient, with a name that ends in
        /// `_data`.
        #[must_use]
        pub fn activation(name: &str, dtype: DType) -> Option<StridedLoop> {
            match name {
                $($name => {
                    unsafe extern "C" fn run<T: Real>(
                        args: *mut *mut c_char,
                        dimensions: *const isize,
                        steps: *const isize,
                        _: *mut c_void,
                    ) {
                        widest(
                            #[inline(always)]
                            // SAFETY: the loop is made for as many operands.
                            || unsafe { each::<T, $count>(args, dimensions, steps, $function) },
                        );
                    }
                    let function = of_dtype!(dtype, T => run::<T> as Run)?;
                    // SAFETY: it touches its operands alone, aligned or not.
                    unsafe { StridedLoop::new(function, std::ptr::null_mut(), &[dtype; $count], &[dtype]) }
                })*
                _ => None,
            }
        }
    };
}

loops! {
    "relu": relu, 1;
    "relu_data": relu_data, 2;
    "leaky_relu": leaky_relu, 2;
    "leaky_relu_data": leaky_relu_data, 3;
    "elu": elu, 2;
    "elu_data": elu_data, 3;
    "sigmoid": sigmoid, 1;
    "sigmoid_data": sigmoid_data, 2;
    "softplus": softplus, 1;
    "softplus_data": softplus_data, 2;
    "gelu": gelu, 1;
    "gelu_data": gelu_data, 2;
}
