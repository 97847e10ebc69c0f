//! Recurrent layers over whole sequences: all steps of a direction, and of its gradient. Data are `(steps, batch, ...)`, and
//! each block takes some rows of the batch through all steps.

use crate::buffer::{slice, slice_mut, with_own};
use crate::gates::{gru, gru_back, lstm, lstm_back};
use crate::number::{Matrix, multiply, of_dtype};
use crate::parts;
use crate::real::Real;
use crate::vectors::widest;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use weft_array::{Blocked, DType};
use weft_engine::Cause;

/// The cells of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Long short-term memories.
    Lstm,
    /// Gated recurrent units.
    Gru,
    /// Hyperbolic tangents.
    Tanh,
    /// Rectifiers.
    Relu,
}

/// One direction of a layer, of float32 or float64.
///
/// | mode | inputs | outputs | inputs of gradients | their outputs |
/// |---|---|---|---|---|
/// | LSTM | products, h, c, weights | y, h, c, gates, cells | dy, dh, dc, gates, cells, c, weights | products, h, c |
/// | GRU | products, h, weights, bias | y, h, gates | dy, dh, gates, y, h, weights | products, h, products with states |
/// | others | products, h, weights | y, h | dy, dh, y, weights | products, h |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequence {
    /// Of which cells.
    pub mode: Mode,
    /// Whether gradients are computed: of products and states, not of the weights.
    pub gradient: bool,
    /// Whether the last step is the first.
    pub reverse: bool,
    /// How many steps there are.
    pub steps: usize,
    /// Rows of a step.
    pub batch: usize,
    /// Elements of a row's state.
    pub wide: usize,
}

/// Rows of a block at least: products of fewer do not pay for reading the weights.
const ROWS: usize = 16;
/// Rows and columns of weights that are turned round at a time.
const SQUARE: usize = 16;

impl Sequence {
    /// The step that computes it.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        of_dtype!(dtype, T => Arc::new(By::<T>(self, PhantomData)))
    }

    /// Sizes of its operands, and how many of them are inputs, which come first.
    #[must_use]
    pub fn operands(&self) -> (Vec<usize>, usize) {
        let state = self.batch * self.wide;
        let (all, weights) = (self.steps * state, self.gates() * self.wide * self.wide);
        let products = self.gates() * all;
        match (self.mode, self.gradient) {
            (Mode::Lstm, false) => (vec![products, state, state, weights, all, state, state, products, all], 4),
            (Mode::Lstm, true) => (vec![all, state, state, products, all, state, weights, products, state, state], 7),
            (Mode::Gru, false) => (vec![products, state, weights, 3 * self.wide, all, state, 4 * all], 4),
            (Mode::Gru, true) => (vec![all, state, 4 * all, all, state, weights, products, state, products], 6),
            (_, false) => (vec![products, state, weights, all, state], 3),
            (_, true) => (vec![all, state, all, weights, products, state], 4),
        }
    }

    /// How many times as wide as states products are.
    fn gates(&self) -> usize {
        match self.mode {
            Mode::Lstm => 4,
            Mode::Gru => 3,
            Mode::Tanh | Mode::Relu => 1,
        }
    }

    /// The number of each step, in the order of their taking.
    fn order(&self) -> impl DoubleEndedIterator<Item = usize> {
        let (steps, reverse) = (self.steps, self.reverse);
        (0..steps).map(move |at| if reverse { steps - 1 - at } else { at })
    }

    /// The step before one, unless that is the first.
    fn before(&self, at: usize) -> Option<usize> {
        if self.reverse { (at + 1 < self.steps).then_some(at + 1) } else { at.checked_sub(1) }
    }
}

struct By<T>(Sequence, PhantomData<T>);

/// Operands of a block: some rows of the batch.
struct Block<'a, T> {
    own: &'a Sequence,
    arrays: &'a [*mut u8],
    rows: Range<usize>,
    /// The weights turned round, forwards: a row for each element of a state.
    turned: *const T,
}

impl<'a, T: Real> Block<'a, T> {
    fn at(&self, step: usize, times: usize) -> (usize, usize) {
        let each = times * self.own.wide;
        ((step * self.own.batch + self.rows.start) * each, self.rows.len() * each)
    }

    /// The block's rows of a step, of an operand that is so many times as wide as states; step 0 of states.
    ///
    /// # Safety
    ///
    /// Operands are as the sequence says, and these rows are not written to.
    unsafe fn read(&self, array: usize, step: usize, times: usize) -> &'a [T] {
        let (from, count) = self.at(step, times);
        // SAFETY: the caller's promise.
        unsafe { slice(self.arrays[array], from, count) }
    }

    /// The same, to be written.
    ///
    /// # Safety
    ///
    /// As above; these rows are the caller's alone.
    unsafe fn write(&self, array: usize, step: usize, times: usize) -> &'a mut [T] {
        let (from, count) = self.at(step, times);
        // SAFETY: the caller's promise.
        unsafe { slice_mut(self.arrays[array], from, count) }
    }

    /// The state before a step: a row of results, or the initial state before the first.
    ///
    /// # Safety
    ///
    /// As for reads.
    unsafe fn state(&self, results: usize, first: usize, step: usize) -> &'a [T] {
        // SAFETY: the caller's promise.
        unsafe { self.own.before(step).map_or_else(|| self.read(first, 0, 1), |before| self.read(results, before, 1)) }
    }

    /// `out += states @ weights.T`.
    ///
    /// # Safety
    ///
    /// The weights were turned round.
    unsafe fn forward(&self, out: &mut [T], states: &[T]) {
        let (wide, all) = (self.own.wide, self.own.gates() * self.own.wide);
        let matrix = |start: *const T, row, column| Matrix { start: start.cast_mut(), row, column };
        let weights = matrix(self.turned, all, 1);
        let (to, from) = (matrix(out.as_mut_ptr(), all, 1), matrix(states.as_ptr(), wide, 1));
        // SAFETY: the slices are rows of these lengths; the caller's promise.
        unsafe { multiply([self.rows.len(), wide, all], to, from, weights, true) };
    }

    /// `out = products @ weights`, or the same added to it.
    ///
    /// # Safety
    ///
    /// As above.
    unsafe fn backward(&self, out: &mut [T], products: &[T], weights: usize, adds: bool) {
        let (wide, all) = (self.own.wide, self.own.gates() * self.own.wide);
        let matrix = |start: *const T, row, column| Matrix { start: start.cast_mut(), row, column };
        let weights = matrix(self.arrays[weights].cast(), wide, 1);
        let (to, from) = (matrix(out.as_mut_ptr(), wide, 1), matrix(products.as_ptr(), all, 1));
        // SAFETY: as above.
        unsafe { multiply([self.rows.len(), all, wide], to, from, weights, adds) };
    }
}

/// Calls with each row's number.
fn rows<'a>(length: usize, count: usize) -> impl Iterator<Item = Range<usize>> + 'a {
    (0..count).map(move |row| row * length..(row + 1) * length)
}

impl<T: Real> By<T> {
    /// # Safety
    ///
    /// As for a block.
    unsafe fn lstm(&self, block: &Block<'_, T>) {
        let (own, wide, count) = (&self.0, self.0.wide, block.rows.len());
        with_own(4 * wide * count, |sums: &mut [T]| {
            for at in own.order() {
                // SAFETY: the caller's promise: operands are as said, and these rows are the block's.
                unsafe {
                    sums.copy_from_slice(block.read(0, at, 4));
                    block.forward(sums, block.state(4, 1, at));
                    let (c, gates) = (block.state(8, 2, at), block.write(7, at, 4));
                    let (h, cell) = (block.write(4, at, 1), block.write(8, at, 1));
                    widest(
                        #[inline(always)]
                        || {
                            for (one, four) in rows(wide, count).zip(rows(4 * wide, count)) {
                                let (h, cell) = (&mut h[one.clone()], &mut cell[one.clone()]);
                                lstm(&sums[four.clone()], &c[one], h, cell, &mut gates[four]);
                            }
                        },
                    );
                }
            }
        });
        // SAFETY: as above.
        unsafe {
            if let Some(last) = own.order().next_back() {
                block.write(5, 0, 1).copy_from_slice(block.read(4, last, 1));
                block.write(6, 0, 1).copy_from_slice(block.read(8, last, 1));
            }
        }
    }

    /// # Safety
    ///
    /// As for a block.
    unsafe fn lstm_back(&self, block: &Block<'_, T>) {
        let (own, wide, count) = (&self.0, self.0.wide, block.rows.len());
        // SAFETY: as above.
        let (dh, dc) = unsafe { (block.write(8, 0, 1), block.write(9, 0, 1)) };
        // SAFETY: as above.
        unsafe {
            dh.copy_from_slice(block.read(1, 0, 1));
            dc.copy_from_slice(block.read(2, 0, 1));
        }
        for at in own.order().rev() {
            // SAFETY: as above.
            unsafe {
                add(dh, block.read(0, at, 1));
                let (gates, cell, c) = (block.read(3, at, 4), block.read(4, at, 1), block.state(4, 5, at));
                let dz = block.write(7, at, 4);
                widest(
                    #[inline(always)]
                    || {
                        for (one, four) in rows(wide, count).zip(rows(4 * wide, count)) {
                            let (c, cell, dz) = (&c[one.clone()], &cell[one.clone()], &mut dz[four.clone()]);
                            lstm_back(&dh[one.clone()], &mut dc[one], &gates[four], c, cell, dz);
                        }
                    },
                );
                block.backward(dh, dz, 6, false);
            }
        }
    }

    /// # Safety
    ///
    /// As for a block.
    unsafe fn gru(&self, block: &Block<'_, T>) {
        let (own, wide, count) = (&self.0, self.0.wide, block.rows.len());
        // SAFETY: the caller's promise.
        let bias: &[T] = unsafe { slice(block.arrays[3], 0, 3 * wide) };
        with_own(3 * wide * count, |sums: &mut [T]| {
            for at in own.order() {
                sums.chunks_exact_mut(3 * wide).for_each(|row| row.copy_from_slice(bias));
                // SAFETY: as above.
                unsafe {
                    let h = block.state(4, 1, at);
                    block.forward(sums, h);
                    let (products, out, gates) = (block.read(0, at, 3), block.write(4, at, 1), block.write(6, at, 4));
                    widest(
                        #[inline(always)]
                        || {
                            for (number, one) in rows(wide, count).enumerate() {
                                let three = number * 3 * wide..(number + 1) * 3 * wide;
                                let gates = &mut gates[number * 4 * wide..][..4 * wide];
                                gru(&products[three.clone()], &sums[three], &h[one.clone()], &mut out[one], gates);
                            }
                        },
                    );
                }
            }
        });
        // SAFETY: as above.
        unsafe {
            if let Some(last) = own.order().next_back() {
                block.write(5, 0, 1).copy_from_slice(block.read(4, last, 1));
            }
        }
    }

    /// # Safety
    ///
    /// As for a block.
    unsafe fn gru_back(&self, block: &Block<'_, T>) {
        let (own, wide, count) = (&self.0, self.0.wide, block.rows.len());
        // SAFETY: as above.
        let dh = unsafe { block.write(7, 0, 1) };
        // SAFETY: as above.
        dh.copy_from_slice(unsafe { block.read(1, 0, 1) });
        with_own(wide, |straight: &mut [T]| {
            for at in own.order().rev() {
                // SAFETY: as above.
                unsafe {
                    add(dh, block.read(0, at, 1));
                    let (gates, h) = (block.read(2, at, 4), block.state(3, 4, at));
                    let (dz, inner) = (block.write(6, at, 3), block.write(8, at, 3));
                    widest(
                        #[inline(always)]
                        || {
                            for (number, one) in rows(wide, count).enumerate() {
                                let three = number * 3 * wide..(number + 1) * 3 * wide;
                                let gates = &gates[number * 4 * wide..][..4 * wide];
                                let both = [&mut dz[three.clone()], &mut inner[three]];
                                gru_back(&dh[one.clone()], gates, &h[one.clone()], both, straight);
                                dh[one].copy_from_slice(straight);
                            }
                        },
                    );
                }
                // SAFETY: as above.
                unsafe { block.backward(dh, block.read(8, at, 3), 5, true) };
            }
        });
    }

    /// # Safety
    ///
    /// As for a block.
    unsafe fn plain(&self, block: &Block<'_, T>) {
        for at in self.0.order() {
            // SAFETY: as above.
            unsafe {
                let out = block.write(3, at, 1);
                out.copy_from_slice(block.read(0, at, 1));
                block.forward(out, block.state(3, 1, at));
                let tanh = self.0.mode == Mode::Tanh;
                widest(
                    #[inline(always)]
                    || {
                        if tanh {
                            out.iter_mut().for_each(|to| *to = to.tanh());
                        } else {
                            out.iter_mut().for_each(|to| *to = T::ZERO.max(*to));
                        }
                    },
                );
            }
        }
        // SAFETY: as above.
        unsafe {
            if let Some(last) = self.0.order().next_back() {
                block.write(4, 0, 1).copy_from_slice(block.read(3, last, 1));
            }
        }
    }

    /// # Safety
    ///
    /// As for a block.
    unsafe fn plain_back(&self, block: &Block<'_, T>) {
        // SAFETY: as above.
        let dh = unsafe { block.write(5, 0, 1) };
        // SAFETY: as above.
        dh.copy_from_slice(unsafe { block.read(1, 0, 1) });
        for at in self.0.order().rev() {
            // SAFETY: as above.
            unsafe {
                add(dh, block.read(0, at, 1));
                let (y, dz) = (block.read(2, at, 1), block.write(4, at, 1));
                for ((to, &g), &y) in dz.iter_mut().zip(&*dh).zip(y) {
                    *to = match self.0.mode {
                        Mode::Tanh => g * (T::ONE - y * y),
                        _ if y > T::ZERO => g,
                        _ => T::ZERO,
                    };
                }
                block.backward(dh, dz, 3, false);
            }
        }
    }
}

fn add<T: Real>(to: &mut [T], more: &[T]) {
    for (to, &more) in to.iter_mut().zip(more) {
        *to += more;
    }
}

impl<T: Real> Blocked for By<T> {
    fn blocks(&self) -> usize {
        parts::count(self.0.batch / ROWS, self.operations())
    }

    fn operations(&self) -> usize {
        let own = &self.0;
        [own.steps, own.batch, own.gates(), own.wide, own.wide + 16]
            .iter()
            .fold(1_usize, |all, &each| all.saturating_mul(each))
    }

    fn scratch(&self) -> usize {
        if self.0.gradient { 0 } else { self.0.gates() * self.0.wide * self.0.wide * size_of::<T>() }
    }

    /// Turns the weights round, once for all products with them: each would have to read them across.
    unsafe fn begin(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        if self.0.gradient {
            return Ok(());
        }
        let (wide, all) = (self.0.wide, self.0.gates() * self.0.wide);
        let weights = if self.0.mode == Mode::Lstm { 3 } else { 2 };
        // SAFETY: the caller's promise: the operand has this size, and so has the scratch.
        let (from, to): (&[T], &mut [T]) =
            unsafe { (slice(arrays[weights], 0, all * wide), slice_mut(scratch, 0, all * wide)) };
        for first in (0..all).step_by(SQUARE) {
            for second in (0..wide).step_by(SQUARE) {
                for row in first..(first + SQUARE).min(all) {
                    for column in second..(second + SQUARE).min(wide) {
                        to[column * all + row] = from[row * wide + column];
                    }
                }
            }
        }
        Ok(())
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], scratch: *mut u8, block: usize) -> Result<(), Cause> {
        let rows = parts::part(self.0.batch, self.blocks(), block);
        let block = Block { own: &self.0, arrays, rows, turned: scratch.cast_const().cast() };
        // SAFETY: the caller's promise; blocks have rows of their own.
        unsafe {
            match (self.0.mode, self.0.gradient) {
                (Mode::Lstm, false) => self.lstm(&block),
                (Mode::Lstm, true) => self.lstm_back(&block),
                (Mode::Gru, false) => self.gru(&block),
                (Mode::Gru, true) => self.gru_back(&block),
                (_, false) => self.plain(&block),
                (_, true) => self.plain_back(&block),
            }
        }
        Ok(())
    }
}
