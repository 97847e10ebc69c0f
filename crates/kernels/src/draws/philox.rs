//! Philox 4x64 with ten rounds, as NumPy has it (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). It counts,
//! so any place of the stream is as near as the next one.

use super::{Stream, halves};
use std::ops::Range;

/// A state.
pub(super) struct Philox {
    counter: [u64; 4],
    key: [u64; 2],
    drawn: [u64; 4],
    used: usize,
    half: Option<u32>,
}

/// Both halves of a product of words.
fn product(one: u64, other: u64) -> (u64, u64) {
    let all = u128::from(one) * u128::from(other);
    #[allow(clippy::cast_possible_truncation)] // the lower half is meant
    ((all >> 64) as u64, all as u64)
}

impl Philox {
    /// The counter after so many steps.
    fn after(&self, steps: u64) -> [u64; 4] {
        let (mut counter, mut carry) = (self.counter, steps);
        for word in &mut counter {
            let (sum, is_over) = word.overflowing_add(carry);
            (*word, carry) = (sum, u64::from(is_over));
        }
        counter
    }

    /// The four words that are drawn together: those that are there, and others after so many steps.
    fn four(&self, steps: usize) -> [u64; 4] {
        if steps == 0 {
            return self.drawn;
        }
        let mut found = self.after(steps as u64);
        let mut key = self.key;
        for _ in 0..10 {
            let (first, second) = (product(0xD2E7_470E_E14C_6C93, found[0]), product(0xCA5A_8263_9512_1157, found[2]));
            found = [second.0 ^ found[1] ^ key[0], second.1, first.0 ^ found[3] ^ key[1], first.1];
            key = [key[0].wrapping_add(0x9E37_79B9_7F4A_7C15), key[1].wrapping_add(0xBB67_AE85_84CA_A73B)];
        }
        found
    }

    /// How many halves of words were drawn before the first one that is not there.
    fn ahead(&self) -> usize {
        usize::from(self.half.is_some())
    }
}

impl Stream for Philox {
    /// Four of the counter, two of the key, four that are drawn, how many of these are used, whether half a word is left, and the
    /// last such half.
    const WORDS: usize = 13;

    fn of(words: &[u64]) -> Self {
        let mut given = words.iter().copied();
        let mut next = || given.next().unwrap_or(0);
        Self {
            counter: std::array::from_fn(|_| next()),
            key: std::array::from_fn(|_| next()),
            drawn: std::array::from_fn(|_| next()),
            used: usize::try_from(next()).map_or(4, |used| used.min(4)),
            half: (next() != 0).then(|| halves(next())[0]),
        }
    }

    fn each_half(&self, range: Range<usize>, mut body: impl FnMut(u32)) {
        let mut at = range.start;
        if let (0, Some(half)) = (at, self.half)
            && range.end > 0
        {
            body(half);
            at = 1;
        }
        while at < range.end {
            let place = 2 * self.used + at - self.ahead();
            let found: [[u32; 2]; 4] = self.four(place / 8).map(halves);
            let drawn = found.as_flattened().iter().skip(place % 8).take(range.end - at);
            at += drawn.len();
            drawn.for_each(|half| body(*half));
        }
    }

    fn leave(&self, count: usize, words: &mut [u64]) {
        if count == 0 {
            return;
        }
        let halved = count - self.ahead();
        words[11] = u64::from(halved % 2 == 1);
        let place = self.used + halved.div_ceil(2);
        let Some(last) = place.checked_sub(1).filter(|_| halved > 0) else { return };
        let four = self.four(last / 4);
        words[..4].copy_from_slice(&self.after((last / 4) as u64));
        words[6..10].copy_from_slice(&four);
        words[10] = (last % 4 + 1) as u64;
        words[12] = u64::from(halves(four[last % 4])[1]);
    }
}
