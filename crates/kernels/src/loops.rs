//! Activations and their gradients, element by element, in the form of NumPy's inner loops.

use crate::number::Number;
use std::ffi::{c_char, c_void};
use weft_array::{DType, StridedLoop};

/// Half of the square root of 1/2, of 2/pi: what the normal distribution is made of.
const ROOT: f64 = std::f64::consts::FRAC_1_SQRT_2;
const DENSITY: f64 = std::f64::consts::FRAC_2_SQRT_PI * ROOT / 2.0;

/// What the functions are made of.
trait Real: Number {
    fn exp(self) -> Self;
    fn exp_m1(self) -> Self;
    fn ln_1p(self) -> Self;
    fn erfc(self) -> Self;
    fn abs(self) -> Self;
}

impl Real for f32 {
    /// By the nearest power of 2 and a polynomial of the rest: to the last bit or two, without a branch, so that several
    /// are computed at a time. Numbers whose exponential is less than the smallest normal one give 0.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a whole number of 127 at most
    fn exp(self) -> Self {
        const HIGH: f32 = 0.693_359_4;
        const LOW: f32 = -2.121_944_4e-4;
        const ROUND: f32 = 12_582_912.0; // adding it drops what is behind the point
        let x = if self > 88.722_83 { 88.722_83 } else { self };
        let x = if x < -87.336_54 { -87.336_54 } else { x };
        let whole = (x * std::f32::consts::LOG2_E + ROUND) - ROUND;
        let rest = (x - whole * HIGH) - whole * LOW;
        let mut sum = 1.987_569_1e-4;
        for each in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
            sum = sum * rest + each;
        }
        let power = f32::from_bits(((whole as i32 + 126) as u32) << 23) * 2.0;
        let found = (sum * rest * rest + rest + 1.0) * power;
        if self < -87.336_54 {
            0.0
        } else if self > 88.722_83 {
            f32::INFINITY
        } else {
            found
        }
    }

    #[inline]
    fn exp_m1(self) -> Self {
        self.exp_m1()
    }

    #[inline]
    fn ln_1p(self) -> Self {
        self.ln_1p()
    }

    #[inline]
    fn erfc(self) -> Self {
        libm::erfcf(self)
    }

    #[inline]
    fn abs(self) -> Self {
        self.abs()
    }
}

impl Real for f64 {
    #[inline]
    fn exp(self) -> Self {
        self.exp()
    }

    #[inline]
    fn exp_m1(self) -> Self {
        self.exp_m1()
    }

    #[inline]
    fn ln_1p(self) -> Self {
        self.ln_1p()
    }

    #[inline]
    fn erfc(self) -> Self {
        libm::erfc(self)
    }

    #[inline]
    fn abs(self) -> Self {
        self.abs()
    }
}

#[inline]
fn relu<T: Real>([x]: [T; 1]) -> T {
    if x <= T::ZERO { T::ZERO } else { x }
}

#[inline]
fn relu_data<T: Real>([g, y]: [T; 2]) -> T {
    if y > T::ZERO { g } else { T::ZERO }
}

#[inline]
fn leaky_relu<T: Real>([x, slope]: [T; 2]) -> T {
    if x > T::ZERO { x } else { x * slope }
}

#[inline]
fn leaky_relu_data<T: Real>([g, x, slope]: [T; 3]) -> T {
    if x > T::ZERO { g } else { g * slope }
}

#[inline]
fn elu<T: Real>([x, alpha]: [T; 2]) -> T {
    if x > T::ZERO { x } else { x.exp_m1() * alpha }
}

#[inline]
fn elu_data<T: Real>([g, x, alpha]: [T; 3]) -> T {
    if x > T::ZERO { g } else { g * x.exp() * alpha }
}

#[inline]
fn sigmoid<T: Real>([x]: [T; 1]) -> T {
    let small = (-x.abs()).exp();
    let share = T::ONE / (T::ONE + small);
    if x < T::ZERO { small * share } else { share }
}

#[inline]
fn sigmoid_data<T: Real>([g, y]: [T; 2]) -> T {
    g * y * (T::ONE - y)
}

#[inline]
fn softplus<T: Real>([x]: [T; 1]) -> T {
    let rest = (-x.abs()).exp().ln_1p();
    if x > T::ZERO { x + rest } else { rest }
}

#[inline]
fn softplus_data<T: Real>([g, x]: [T; 2]) -> T {
    g * sigmoid([x])
}

/// The probability that a standard normal variable is smaller.
#[inline]
fn cumulative<T: Real>(x: T) -> T {
    T::of(0.5) * (-x * T::of(ROOT)).erfc()
}

#[inline]
fn gelu<T: Real>([x]: [T; 1]) -> T {
    x * cumulative(x)
}

#[inline]
fn gelu_data<T: Real>([g, x]: [T; 2]) -> T {
    g * (cumulative(x) + x * (x * x * T::of(-0.5)).exp() * T::of(DENSITY))
}

/// Calls a function of `N` numbers for each element.
///
/// # Safety
///
/// As for NumPy's inner loops of `N` inputs and one output.
#[inline]
unsafe fn each<T: Copy, const N: usize>(
    args: *mut *mut c_char,
    dimensions: *const isize,
    steps: *const isize,
    function: impl Fn([T; N]) -> T,
) {
    // SAFETY: the caller's promise: there are N + 1 operands and one axis, inside of which all elements lie.
    unsafe {
        let count = *dimensions;
        let starts: [*const c_char; N] = std::array::from_fn(|at| (*args.add(at)).cast_const());
        let apart: [isize; N] = std::array::from_fn(|at| *steps.add(at));
        let (out, step, size) = (*args.add(N), *steps.add(N), size_of::<T>().cast_signed());
        if step == size && apart.iter().all(|&step| step == size || step == 0) {
            // Constant steps, so that several elements are computed at a time.
            let scalars: [Option<T>; N] = std::array::from_fn(|at| {
                (apart[at] == 0 && count > 0).then(|| starts[at].cast::<T>().read_unaligned())
            });
            for at in 0..count {
                let given = std::array::from_fn(|which| match scalars[which] {
                    Some(value) => value,
                    None => starts[which].cast::<T>().offset(at).read_unaligned(),
                });
                out.cast::<T>().offset(at).write_unaligned(function(given));
            }
            return;
        }
        for at in 0..count {
            let given =
                std::array::from_fn(|which| starts[which].offset(at * apart[which]).cast::<T>().read_unaligned());
            out.offset(at * step).cast::<T>().write_unaligned(function(given));
        }
    }
}

macro_rules! loops {
    ($($name:literal: $function:ident, $count:literal;)*) => {
        /// The loop of this name over numbers of this type: an activation, or its gradient, whose name ends in `_data`.
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
                        // SAFETY: the loop is made for as many operands.
                        unsafe { each::<T, $count>(args, dimensions, steps, $function) }
                    }
                    let function = match dtype {
                        DType::Float32 => run::<f32>,
                        DType::Float64 => run::<f64>,
                        _ => return None,
                    };
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
