//! Sums of float64.

use crate::number::Number;
use std::hint::black_box;

/// Sums that go on side by side.
const LANES: usize = 16;

/// A sum under way. Its order depends on the numbers of elements alone.
pub(crate) struct Sum {
    lanes: [f64; LANES],
    rest: f64,
}

#[allow(clippy::inline_always)] // see `vectors`
impl Sum {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self { lanes: [0.0; LANES], rest: 0.0 }
    }

    /// Adds a function of the elements of slices of one length.
    #[inline(always)]
    pub(crate) fn add<T: Number, const N: usize>(&mut self, of: [&[T]; N], function: impl Fn([T; N]) -> f64) {
        let whole = of[0].len() - of[0].len() % LANES;
        let (zeros, mut lanes) = ([T::ZERO; LANES], self.lanes);
        for start in (0..whole).step_by(LANES) {
            let mut chunks = [&zeros; N];
            for (chunk, of) in chunks.iter_mut().zip(of) {
                *chunk = of[start..].first_chunk().unwrap_or(&zeros);
            }
            let mut more = [0.0; LANES];
            for (lane, more) in more.iter_mut().enumerate() {
                *more = function(nth(&chunks, lane));
            }
            for (total, more) in lanes.iter_mut().zip(more) {
                *total += more;
            }
        }
        // The use of the sums is hidden from the loop: the compiler would choose its vectors by that, and take short
        // ones.
        self.lanes = black_box(lanes);
        let mut given = [T::ZERO; N];
        for at in whole..of[0].len() {
            for (given, of) in given.iter_mut().zip(of) {
                *given = of[at];
            }
            self.rest += function(given);
        }
    }

    #[inline(always)]
    pub(crate) fn total(self) -> f64 {
        let mut lanes = self.lanes;
        let mut left = LANES / 2;
        while left > 0 {
            for lane in 0..left {
                lanes[lane] += lanes[lane + left];
            }
            left /= 2;
        }
        lanes[0] + self.rest
    }
}

/// The element of this number of each.
#[inline(always)]
#[allow(clippy::inline_always)] // see `vectors`; what maps arrays is not
pub(crate) fn nth<T: Number, const N: usize, const COUNT: usize>(of: &[&[T; COUNT]; N], at: usize) -> [T; N] {
    let mut found = [T::ZERO; N];
    for (to, of) in found.iter_mut().zip(of) {
        *to = of[at];
    }
    found
}

/// The sum of a function of the elements of slices of one length.
#[inline(always)]
#[allow(clippy::inline_always)] // see `vectors`
pub(crate) fn sum<T: Number, const N: usize>(of: [&[T]; N], function: impl Fn([T; N]) -> f64) -> f64 {
    let mut sum = Sum::new();
    sum.add(of, function);
    sum.total()
}

/// The reciprocal of a number of elements.
#[allow(clippy::cast_precision_loss)] // exact up to 2^53, more than there is memory for
pub(crate) fn share(count: usize) -> f64 {
    1.0 / count as f64
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn long_rows_have_shares_too() {
        for exponent in [0, 1, 31, 32, 33, 40, 52] {
            assert_eq!(share(1 << exponent).to_bits(), 0.5_f64.powi(exponent).to_bits(), "2^{exponent}");
        }
    }
}
