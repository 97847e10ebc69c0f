//! Functions of float32 and float64.

use crate::number::Number;

/// What activations and cells are made of.
pub(crate) trait Real: Number {
    fn exp(self) -> Self;
    fn exp_m1(self) -> Self;
    fn ln_1p(self) -> Self;
    fn erfc(self) -> Self;
    fn abs(self) -> Self;
    fn tanh(self) -> Self;
    fn sqrt(self) -> Self;
    fn powf(self, power: Self) -> Self;
    fn max(self, other: Self) -> Self;
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

    /// By a polynomial near 0 and the exponential elsewhere: to the last bit or two, without a branch.
    #[inline]
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
