//! Draws of a generator with an array as its state, with NumPy's bits and without Python. Both streams can be joined at
//! any place, so blocks draw side by side.

mod pcg64;
mod philox;

use crate::buffer::{slice, slice_mut};
use crate::number::{Number, of_dtype};
use crate::parts;
use pcg64::Pcg64;
use philox::Philox;
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
    /// The generator.
    pub generator: Generator,
}

/// A generator of NumPy's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// Philox 4x64 with ten rounds.
    Philox,
    /// The 128-bit linear congruential generator with output XSL-RR.
    Pcg64,
}

impl Generator {
    /// The generator with so many words of state.
    #[must_use]
    pub fn of_state(words: usize) -> Option<Self> {
        [Self::Philox, Self::Pcg64].into_iter().find(|generator| generator.words() == words)
    }

    /// Words of a state.
    #[must_use]
    pub fn words(self) -> usize {
        match self {
            Self::Philox => Philox::WORDS,
            Self::Pcg64 => Pcg64::WORDS,
        }
    }
}

/// A stream of random words at a place of its own.
trait Stream: Sized {
    /// Words of a state.
    const WORDS: usize;

    /// From the words of a state.
    fn of(words: &[u64]) -> Self;

    /// Calls with the halves of words of a range, one after the other.
    fn each_half(&self, range: Range<usize>, body: impl FnMut(u32));

    /// Writes the state after so many halves of words.
    fn leave(&self, count: usize, words: &mut [u64]);
}

impl Mask {
    /// The step that draws them, of float32 or float64: it changes the state, its first operand.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        match self.generator {
            Generator::Philox => of_dtype!(dtype, T => Arc::new(By::<T, Philox>(self, PhantomData))),
            Generator::Pcg64 => of_dtype!(dtype, T => Arc::new(By::<T, Pcg64>(self, PhantomData))),
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // the halves are meant
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

struct By<T, S>(Mask, PhantomData<fn() -> (T, S)>);

impl<T: Number, S: Stream> Blocked for By<T, S> {
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
        let (state, out): (S, &mut [T]) =
            unsafe { (S::of(slice(state, 0, S::WORDS)), slice_mut(out, part.start, part.len())) };
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
        let words: &mut [u64] = unsafe { slice_mut(arrays[0], 0, S::WORDS) };
        S::of(words).leave(self.0.count, words);
        Ok(())
    }
}
