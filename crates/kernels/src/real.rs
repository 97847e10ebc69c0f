//! Functions of float32 and float64.

use crate::number::Number;

/// The parts of activations and cells.
pub(crate) trait Real: Number {
    fn exp(self) -> Self;
    /// The exponential less 1, of a number that is 0 or less.
    fn exp_m1(self) -> Self;
    /// The logarithm of 1 and this, which is a number from 0 to 1.
    fn ln_1p(self) -> Self;
    /// The probability that a standard normal variable is smaller, and the exponential of minus half the square.
    fn normal(self) -> (Self, Self);
    fn abs(self) -> Self;
    fn tanh(self) -> Self;
    fn sqrt(self) -> Self;
    fn powf(self, power: Self) -> Self;
    fn max(self, other: Self) -> Self;
}

/// Below it, exponentials are less than the smallest normal number; above the other one, larger than the largest.
const SMALLEST: f32 = -87.336_54;
const LARGEST: f32 = 88.722_83;

/// By how much more than 1 an exponential is of the nearest power of 2, and that power as a product of two.
#[inline(always)]
#[allow(clippy::inline_always)] // see `vectors`
fn exponential(x: f32) -> (f32, [f32; 2]) {
    const HIGH: f32 = 0.693_359_4;
    const LOW: f32 = -2.121_944_4e-4;
    const ROUND: f32 = 12_582_912.0; // adding it drops what is behind the point, and leaves the rest in the lowest bits
    let x = if x > LARGEST { LARGEST } else { x };
    let x = if x < SMALLEST { SMALLEST } else { x };
    let moved = x * std::f32::consts::LOG2_E + ROUND;
    let whole = moved - ROUND;
    let rest = (x - whole * HIGH) - whole * LOW;
    let mut sum = 1.987_569_1e-4;
    for each in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        sum = sum * rest + each;
    }
    let exponent = moved.to_bits().cast_signed().wrapping_sub(ROUND.to_bits().cast_signed());
    let power = |exponent: i32| f32::from_bits((exponent.wrapping_add(127) << 23).cast_unsigned());
    let half = exponent >> 1;
    (sum * rest * rest + rest, [power(half), power(exponent.wrapping_sub(half))])
}

#[allow(clippy::inline_always)] // see `vectors`
impl Real for f32 {
    /// By the nearest power of 2 and a polynomial of the rest: to the last bit or two, without a branch, so that
    /// several are computed at a time. Numbers with an exponential less than the smallest normal one give 0.
    #[inline(always)]
    fn exp(self) -> Self {
        let (more, [half, other]) = exponential(self);
        let found = (more + 1.0) * half * other;
        if self < SMALLEST {
            0.0
        } else if self > LARGEST {
            f32::INFINITY
        } else {
            found
        }
    }

    /// As the exponential: 1 is taken off the power of 2.
    #[inline(always)]
    fn exp_m1(self) -> Self {
        let (more, [half, other]) = exponential(self);
        let power = half * other;
        more * power + (power - 1.0)
    }

    /// By the series of the inverse hyperbolic tangent, its last terms fitted: to the last bit or two.
    #[inline(always)]
    fn ln_1p(self) -> Self {
        let part = self / (2.0 + self);
        let square = part * part;
        let mut sum = 0.227_878_2;
        for each in [0.218_125_13, 0.285_839_38, 0.399_999_44, 0.666_666_7] {
            sum = sum * square + each;
        }
        sum * square * part + (part + part)
    }

    /// By the exponential of half the square, with its rounding made good, and a polynomial of the ratio to it, which
    /// was fitted up to where the exponential is 0: to some `4e-7` of the smaller one of the probability and its
    /// complement.
    #[inline(always)]
    fn normal(self) -> (Self, Self) {
        const MIDDLE: f32 = 3.75;
        let size = if self.abs() > 20.0 { 20.0 } else { self.abs() };
        let (square, short) = (size * size, f32::from_bits(size.to_bits() & !0xfff));
        let missing = (short * short - square) + (size - short) * (size + short);
        let density = Real::exp(square * -0.5) * (1.0 - missing * 0.5);
        let share = 1.0 / (size + MIDDLE);
        let place = (size - MIDDLE) * share;
        let mut sum = 4.433_575_4e-4;
        for each in [
            5.094_155e-4,
            -4.169_137e-3,
            1.200_119e-3,
            3.749_255_5e-2,
            -0.151_520_83,
            0.352_939_6,
            -0.588_188_3,
            0.750_294_1,
        ] {
            sum = sum * place + each;
        }
        let above = sum * share * density;
        (if self < 0.0 { above } else { 1.0 - above }, density)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.abs()
    }

    /// By a polynomial near 0 and the exponential elsewhere: to the last bit or two, without a branch.
    #[inline(always)]
    fn tanh(self) -> Self {
        let (size, square) = (self.abs(), self * self);
        let mut sum = -5.704_988_7e-3;
        for each in [2.063_909e-2, -5.373_971_6e-2, 0.133_314_42, -0.333_328_2] {
            sum = sum * square + each;
        }
        let near = sum * square * self + self;
        let far = 1.0 - 2.0 / (Real::exp(size + size) + 1.0);
        if size < 0.625 { near } else { far.copysign(self) }
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn powf(self, power: Self) -> Self {
        self.powf(power)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
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
    fn normal(self) -> (Self, Self) {
        (0.5 * libm::erfc(-self * std::f64::consts::FRAC_1_SQRT_2), (self * self * -0.5).exp())
    }

    #[inline]
    fn abs(self) -> Self {
        self.abs()
    }

    #[inline]
    fn tanh(self) -> Self {
        self.tanh()
    }

    #[inline]
    fn sqrt(self) -> Self {
        self.sqrt()
    }

    #[inline]
    fn powf(self, power: Self) -> Self {
        self.powf(power)
    }

    #[inline]
    fn max(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }
}
