//! Draws of a generator whose state is an array: the words of NumPy's Philox (Salmon et al., "Parallel random numbers: as
//! easy as 1, 2, 3", 2011). Its bits are NumPy's; no Python runs. As it counts, blocks draw side by side.

use crate::buffer::{slice, slice_mut};
use crate::number::{Number, of_dtype};
use crate::parts;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use weft_array::{Blocked, DType};
use weft_engine::Cause;

/// Operations that a draw is worth.
const DRAW: usize = 4;

/// So many numbers, each 0 by chance and else the reciprocal of the chance that it is not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mask {
    /// How many.
    pub count: usize,
    /// The chance of 0: at least 0, less than 1.
    pub rate: f64,
}

impl Mask {
    /// Words of a state: four of the counter, two of the key, four that are drawn, how many of these are used, whether half a
    /// word is left, and the last such half.
    pub const STATE: usize = 13;

    /// The step that draws them, of float32 or float64: it changes the state, its first operand.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        of_dtype!(dtype, T => Arc::new(By::<T>(self, PhantomData)))
    }
}

/// A state.
struct Philox {
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

#[allow(clippy::cast_possible_truncation)] // as above
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

impl Philox {
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

    /// Calls with the halves of words of a range, one after the other.
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

    /// Writes the state after so many halves of words.
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

struct By<T>(Mask, PhantomData<T>);

impl<T: Number> Blocked for By<T> {
    fn blocks(&self) -> usize {
        parts::count(self.0.count, self.operations())
    }

    fn operations(&self) -> usize {
        self.0.count.saturating_mul(DRAW)
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let &[state, out] = arrays else { return Ok(()) };
        let part = parts::part(self.0.count, self.blocks(), block);
        // SAFETY: the caller's promise: the state has so many words, which change at the end alone; parts are disjoint.
        let (state, out): (Philox, &mut [T]) =
            unsafe { (Philox::of(slice(state, 0, Mask::STATE)), slice_mut(out, part.start, part.len())) };
        let (kept, rate) = (T::of(1.0 / (1.0 - self.0.rate)), f32::of(self.0.rate));
        let mut out = out.iter_mut();
        state.each_half(part, |half| {
            // The upper 24 bits, as a number from 0 to less than 1: exact.
            let drawn = f32::of(f64::from(half >> 8)) * (1.0 / 16_777_216.0);
            if let Some(to) = out.next() {
                *to = if drawn >= rate { kept } else { T::ZERO };
            }
        });
        Ok(())
    }

    unsafe fn finish(&self, arrays: &[*mut u8], _: *mut u8) -> Result<(), Cause> {
        // SAFETY: as above; all blocks were run.
        let words: &mut [u64] = unsafe { slice_mut(arrays[0], 0, Mask::STATE) };
        Philox::of(words).leave(self.0.count, words);
        Ok(())
    }
}
