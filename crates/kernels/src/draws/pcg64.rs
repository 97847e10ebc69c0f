//! PCG64 as NumPy has it: a 128-bit linear congruential generator with the output function XSL-RR (O'Neill, "PCG: a family of
//! simple fast space-efficient statistically good algorithms for random number generation", 2014). Any place of the stream is
//! reached in as many steps as its distance has bits (Brown, "Random number generation with arbitrary strides", 1994).

use super::{Stream, halves};
use std::ops::Range;

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

/// A state.
pub(super) struct Pcg64 {
    state: u128,
    increment: u128,
    half: Option<u32>,
}

impl Pcg64 {
    fn step(&self, state: u128) -> u128 {
        state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment)
    }

    /// The state after so many steps.
    fn after(&self, mut steps: u64) -> u128 {
        let (mut multiplier, mut increment) = (MULTIPLIER, self.increment);
        let (mut all_multiplier, mut all_increment) = (1_u128, 0_u128);
        while steps > 0 {
            if steps & 1 == 1 {
                all_multiplier = all_multiplier.wrapping_mul(multiplier);
                all_increment = all_increment.wrapping_mul(multiplier).wrapping_add(increment);
            }
            increment = multiplier.wrapping_add(1).wrapping_mul(increment);
            multiplier = multiplier.wrapping_mul(multiplier);
            steps >>= 1;
        }
        self.state.wrapping_mul(all_multiplier).wrapping_add(all_increment)
    }

    /// The word of a state.
    #[allow(clippy::cast_possible_truncation)] // both halves are meant
    fn word(state: u128) -> u64 {
        ((state >> 64) as u64 ^ state as u64).rotate_right((state >> 122) as u32)
    }

    /// How many halves of words were drawn before the first one that is not there.
    fn ahead(&self) -> usize {
        usize::from(self.half.is_some())
    }
}

impl Stream for Pcg64 {
    /// Two of the state and two of the increment, the lower one first, whether half a word is left, and the last such half.
    const WORDS: usize = 6;

    fn of(words: &[u64]) -> Self {
        let mut given = words.iter().copied();
        let mut next = || given.next().unwrap_or(0);
        let mut wide = || u128::from(next()) | u128::from(next()) << 64;
        let (state, increment) = (wide(), wide());
        Self { state, increment, half: (next() != 0).then(|| halves(next())[0]) }
    }

    fn each_half(&self, range: Range<usize>, mut body: impl FnMut(u32)) {
        let mut at = range.start;
        if let (0, Some(half)) = (at, self.half)
            && range.end > 0
        {
            body(half);
            at = 1;
        }
        if at >= range.end {
            return;
        }
        let place = at - self.ahead();
        let mut state = self.after((place / 2) as u64);
        let mut skipped = place % 2;
        while at < range.end {
            state = self.step(state);
            for half in halves(Self::word(state)).into_iter().skip(std::mem::take(&mut skipped)).take(range.end - at) {
                body(half);
                at += 1;
            }
        }
    }

    #[allow(clippy::cast_possible_truncation)] // as in word()
    fn leave(&self, count: usize, words: &mut [u64]) {
        if count == 0 {
            return;
        }
        let halved = count - self.ahead();
        words[4] = u64::from(halved % 2 == 1);
        if halved == 0 {
            return;
        }
        let state = self.after(halved.div_ceil(2) as u64);
        (words[0], words[1]) = (state as u64, (state >> 64) as u64);
        words[5] = u64::from(halves(Self::word(state))[1]);
    }
}
