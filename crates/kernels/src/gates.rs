//! The element-wise part of recurrent cells, behind their products. Gates of a row lie side by side: i, f, g, o of an LSTM;
//! r, z, n of a GRU, followed, where they are kept, by the factor of the reset gate.

#![allow(clippy::inline_always)] // see `vectors`

use crate::buffer::{slice, slice_mut, with_own};
use crate::loops::sigmoid;
use crate::number::of_dtype;
use crate::parts;
use crate::real::Real;
use crate::vectors::widest;
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, DType};
use weft_engine::Cause;

/// Which cell, and whether its gradients are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gates {
    /// Products and cells to hidden states and cells.
    Lstm,
    /// Gradients of both, products and cells to gradients of products and cells.
    LstmGradient,
    /// Products with data, products with states, states to states.
    Gru,
    /// Gradients and the same to gradients of all three.
    GruGradient,
}

/// A step of cells of float32 or float64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cells {
    /// Which cell.
    pub gates: Gates,
    /// How many rows there are.
    pub rows: usize,
    /// Elements of a row's state.
    pub wide: usize,
}

impl Cells {
    /// The step that computes it.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        of_dtype!(dtype, T => Arc::new(By::<T>(self, PhantomData)))
    }

    /// How many times as wide as states its inputs and its outputs are.
    #[must_use]
    pub fn operands(&self) -> (&'static [usize], &'static [usize]) {
        match self.gates {
            Gates::Lstm => (&[4, 1], &[1, 1]),
            Gates::LstmGradient => (&[1, 1, 4, 1], &[4, 1]),
            Gates::Gru => (&[3, 3, 1], &[1]),
            Gates::GruGradient => (&[1, 3, 3, 1], &[3, 3, 1]),
        }
    }
}

/// `N` parts of a row, side by side.
#[inline(always)]
fn split<T, const N: usize>(row: &[T]) -> [&[T]; N] {
    let wide = row.len() / N;
    std::array::from_fn(|at| &row[at * wide..][..wide])
}

/// The same, to be written.
#[inline(always)]
fn split_mut<T, const N: usize>(row: &mut [T]) -> [&mut [T]; N] {
    let wide = row.len() / N;
    let mut rest = row;
    std::array::from_fn(|_| {
        let (first, others) = std::mem::take(&mut rest).split_at_mut(wide);
        rest = others;
        first
    })
}

/// Hidden state, cell and gates of an LSTM after a step.
#[inline(always)]
pub(crate) fn lstm<T: Real>(products: &[T], c: &[T], h: &mut [T], cell: &mut [T], gates: &mut [T]) {
    let [for_input, for_forget, for_new, for_output] = split(products);
    let [input, forget, new, output] = split_mut(gates);
    apply(input, for_input, |x| sigmoid([x]));
    apply(forget, for_forget, |x| sigmoid([x]));
    apply(new, for_new, T::tanh);
    apply(output, for_output, |x| sigmoid([x]));
    let gates = input.iter().zip(&*forget).zip(&*new);
    for ((to, &c), ((&input, &forget), &new)) in cell.iter_mut().zip(c).zip(gates) {
        *to = forget * c + input * new;
    }
    for ((to, &cell), &output) in h.iter_mut().zip(&*cell).zip(&*output) {
        *to = output * cell.tanh();
    }
}

/// Writes a function of each element: several at a time.
#[inline(always)]
fn apply<T: Real>(to: &mut [T], of: &[T], function: impl Fn(T) -> T) {
    for (to, &each) in to.iter_mut().zip(of) {
        *to = function(each);
    }
}

/// Gradients of the products; `dc` goes from that of the cell after the step to that of the cell before.
#[inline(always)]
pub(crate) fn lstm_back<T: Real>(dh: &[T], dc: &mut [T], gates: &[T], c: &[T], cell: &[T], dz: &mut [T]) {
    let [input, forget, new, output] = split(gates);
    let [for_input, for_forget, for_new, for_output] = split_mut(dz);
    let count = c.len();
    let [input, forget, new, output] = [&input[..count], &forget[..count], &new[..count], &output[..count]];
    let (dh, dc, cell) = (&dh[..count], &mut dc[..count], &cell[..count]);
    let (for_input, for_forget) = (&mut for_input[..count], &mut for_forget[..count]);
    let (for_new, for_output) = (&mut for_new[..count], &mut for_output[..count]);
    for at in 0..count {
        let bent = cell[at].tanh();
        let total = dc[at] + dh[at] * output[at] * (T::ONE - bent * bent);
        for_input[at] = total * new[at] * input[at] * (T::ONE - input[at]);
        for_forget[at] = total * c[at] * forget[at] * (T::ONE - forget[at]);
        for_new[at] = total * input[at] * (T::ONE - new[at] * new[at]);
        for_output[at] = dh[at] * bent * output[at] * (T::ONE - output[at]);
        dc[at] = total * forget[at];
    }
}

/// Hidden state and gates of a GRU after a step.
#[inline(always)]
pub(crate) fn gru<T: Real>(with_data: &[T], with_state: &[T], h: &[T], out: &mut [T], gates: &mut [T]) {
    let ([xr, xu, xn], [hr, hu, hn]) = (split(with_data), split(with_state));
    let [r, u, n, kept] = split_mut(gates);
    for ((to, &x), &h) in r.iter_mut().zip(xr).zip(hr) {
        *to = sigmoid([x + h]);
    }
    for ((to, &x), &h) in u.iter_mut().zip(xu).zip(hu) {
        *to = sigmoid([x + h]);
    }
    for (((to, &x), &h), &r) in n.iter_mut().zip(xn).zip(hn).zip(&*r) {
        *to = (x + r * h).tanh();
    }
    kept.copy_from_slice(hn);
    for (((to, &h), &n), &u) in out.iter_mut().zip(h).zip(&*n).zip(&*u) {
        *to = n + u * (h - n);
    }
}

/// Gradients of both products, and the part that goes straight to the state before.
#[inline(always)]
pub(crate) fn gru_back<T: Real>(
    dh: &[T],
    gates: &[T],
    h: &[T],
    [with_data, with_state]: [&mut [T]; 2],
    before: &mut [T],
) {
    let [r, u, n, kept] = split(gates);
    let ([xr, xu, xn], [hr, hu, hn]) = (split_mut(with_data), split_mut(with_state));
    let count = h.len();
    let [r, u, n, kept] = [&r[..count], &u[..count], &n[..count], &kept[..count]];
    let (xr, xu, xn) = (&mut xr[..count], &mut xu[..count], &mut xn[..count]);
    let (hr, hu, hn) = (&mut hr[..count], &mut hu[..count], &mut hn[..count]);
    let (dh, before) = (&dh[..count], &mut before[..count]);
    for at in 0..count {
        let dn = dh[at] * (T::ONE - u[at]) * (T::ONE - n[at] * n[at]);
        let du = dh[at] * (h[at] - n[at]) * u[at] * (T::ONE - u[at]);
        let dr = dn * kept[at] * r[at] * (T::ONE - r[at]);
        (xr[at], xu[at], xn[at]) = (dr, du, dn);
        (hr[at], hu[at], hn[at]) = (dr, du, dn * r[at]);
        before[at] = dh[at] * u[at];
    }
}

struct By<T>(Cells, PhantomData<T>);

impl<T: Real> By<T> {
    /// # Safety
    ///
    /// As for a block; `own` are six times as many elements as a state has.
    #[inline(always)]
    unsafe fn row(&self, arrays: &[*mut u8], row: usize, own: &mut [T]) {
        let wide = self.0.wide;
        let (gates, rest) = own.split_at_mut(4 * wide);
        let (first, second) = rest.split_at_mut(wide);
        // SAFETY: the caller's promise: operands have these sizes, and rows are disjoint.
        unsafe {
            let read = |at: usize, times: usize| slice::<T>(arrays[at], row * times * wide, times * wide);
            let write = |at: usize, times: usize| slice_mut::<T>(arrays[at], row * times * wide, times * wide);
            match self.0.gates {
                Gates::Lstm => lstm(read(0, 4), read(1, 1), write(2, 1), write(3, 1), gates),
                Gates::LstmGradient => {
                    let (c, before) = (read(3, 1), write(5, 1));
                    lstm(read(2, 4), c, first, second, gates);
                    before.copy_from_slice(read(1, 1));
                    lstm_back(read(0, 1), before, gates, c, second, write(4, 4));
                }
                Gates::Gru => gru(read(0, 3), read(1, 3), read(2, 1), write(3, 1), gates),
                Gates::GruGradient => {
                    let h = read(3, 1);
                    gru(read(1, 3), read(2, 3), h, first, gates);
                    gru_back(read(0, 1), gates, h, [write(4, 3), write(5, 3)], write(6, 1));
                }
            }
        }
    }
}

impl<T: Real> Blocked for By<T> {
    fn blocks(&self) -> usize {
        parts::count(self.0.rows, self.operations())
    }

    fn operations(&self) -> usize {
        self.0.rows.saturating_mul(self.0.wide).saturating_mul(64)
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        with_own(6 * self.0.wide, |own: &mut [T]| {
            widest(
                #[inline(always)]
                || {
                    for row in parts::part(self.0.rows, self.blocks(), block) {
                        // SAFETY: the caller's promise.
                        unsafe { self.row(arrays, row, own) };
                    }
                },
            );
        });
        Ok(())
    }
}
