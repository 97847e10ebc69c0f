//! Pooling: the largest element of each window, or the mean of its elements, and gradients of both.

mod lanes;

use crate::buffer::{slice, slice_mut, with_own};
use crate::number::{Number, is_larger, larger, of_dtype};
use crate::parts;
use crate::tiles::Tiles;
use crate::window::Window;
use std::sync::Arc;
use weft_array::{Blocked, DType, Lanes};
use weft_engine::Cause;

/// Operations on numbers that an element of a window is worth: it is loaded, compared and chosen by itself.
const ELEMENT: usize = 4;

/// The computation on windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pool {
    /// Data to the largest element of each window, the first of equals; NaN is the largest.
    Largest,
    /// Gradients and data to gradients: to where the largest element is.
    ToLargest,
    /// Another array and data to elements: from where the largest element is.
    OfLargest,
    /// Data to means.
    Mean,
    /// Gradients to gradients: to all elements of each window.
    ToMean,
}

/// Pooling of so many channels of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pooling {
    /// What is done.
    pub pool: Pool,
    /// Images times channels.
    pub planes: usize,
    /// The windows.
    pub window: Window,
    /// How far data and padding reach together, where that counts for a mean.
    pub reach: Option<[usize; 3]>,
}

impl Pooling {
    /// The step that computes it, of float32 or float64.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        of_dtype!(dtype, T => Arc::new(Windows(self, self.share::<T>())))
    }

    /// The reciprocal of how many elements a window has.
    fn share<T: Number>(&self) -> T {
        T::ONE / T::of(u32::try_from(self.window.size()).map_or(f64::INFINITY, f64::from))
    }

    pub(crate) fn operations(&self) -> usize {
        self.planes * self.window.total() * self.window.size() * ELEMENT
    }
}

/// Pooling, and the reciprocal of how many elements a window has.
#[derive(Clone, Copy)]
pub(crate) struct Windows<T>(pub(crate) Pooling, T);

/// The part of a window that lies in the data, along each axis: where it begins, and how many elements it has.
fn inside(window: &Window, at: [usize; 3]) -> [(usize, usize); 3] {
    std::array::from_fn(|axis| {
        let start = at[axis] * window.stride[axis];
        let first = start.max(window.before[axis]);
        let last = (start + window.kernel[axis]).min(window.before[axis] + window.lengths[axis]);
        (first.saturating_sub(window.before[axis]), last.saturating_sub(first))
    })
}

impl<T: Number> Windows<T> {
    /// Calls with each window: its number, and its part that lies in the data.
    pub(crate) fn each_window(&self, mut body: impl FnMut(usize, [(usize, usize); 3])) {
        let window = &self.0.window;
        let mut number = 0;
        for first in 0..window.counts[0] {
            for second in 0..window.counts[1] {
                for third in 0..window.counts[2] {
                    body(number, inside(window, [first, second, third]));
                    number += 1;
                }
            }
        }
    }

    /// Calls with each row of elements of a window: where it begins.
    #[inline]
    pub(crate) fn each_row(&self, part: [(usize, usize); 3], mut body: impl FnMut(usize)) {
        let [_, height, width] = self.0.window.lengths;
        for first in part[0].0..part[0].0 + part[0].1 {
            for second in part[1].0..part[1].0 + part[1].1 {
                body((first * height + second) * width + part[2].0);
            }
        }
    }

    /// Where the largest element of a window is: the first of equals, and NaN before all numbers.
    #[inline]
    fn largest(&self, data: &[T], part: [(usize, usize); 3]) -> usize {
        let (mut best, mut found) = (T::LOWEST, usize::MAX);
        self.each_row(part, |start| {
            for (at, &value) in data[start..start + part[2].1].iter().enumerate() {
                if found == usize::MAX || is_larger(value, best) {
                    (best, found) = (value, start + at);
                }
            }
        });
        found
    }

    /// Calls with each window's number and where its largest element is.
    #[inline]
    fn each_largest(&self, data: &[T], mut body: impl FnMut(usize, usize)) {
        match self.0.window.kernel {
            [1, 2, 2] => self.each_largest_of::<2, 2>(data, body),
            [1, 3, 3] => self.each_largest_of::<3, 3>(data, body),
            _ => self.each_window(|number, part| body(number, self.largest(data, part))),
        }
    }

    /// The same for windows of a known size: without an unpredictable branch for each element.
    #[inline]
    fn each_largest_of<const H: usize, const W: usize>(&self, data: &[T], mut body: impl FnMut(usize, usize)) {
        let window = &self.0.window;
        let [_, height, width] = window.lengths;
        let [planes, lines, columns] = window.counts;
        for line in 0..planes * lines {
            let [first, second] = window.row(line);
            let (top, depth) = (second * window.stride[1], first * window.stride[0]);
            let whole = top >= window.before[1]
                && top + H <= window.before[1] + height
                && depth >= window.before[0]
                && depth < window.before[0] + window.lengths[0];
            let (low, high) = if whole {
                let (low, _) = window.inside(0, 0, columns);
                let (_, high) = window.inside(W - 1, 0, columns);
                (low, high.max(low))
            } else {
                (columns, columns)
            };
            for third in (0..low).chain(high..columns) {
                let part = inside(window, [first, second, third]);
                body(line * columns + third, self.largest(data, part));
            }
            if low == high {
                continue;
            }
            let corner = ((depth - window.before[0]) * height + top - window.before[1]) * width;
            let rows = &data[corner..corner + (H - 1) * width + width];
            for third in low..high {
                let left = third * window.stride[2] - window.before[2];
                let (mut best, mut found) = (rows[left], 0);
                for number in 0..H {
                    for (column, &value) in rows[number * width + left..][..W].iter().enumerate() {
                        let larger = is_larger(value, best);
                        best = if larger { value } else { best };
                        found = if larger { number * width + column } else { found };
                    }
                }
                body(line * columns + third, corner + left + found);
            }
        }
    }

    /// Calls with each place in the windows of a line: the first and the last window with its element in the data, and
    /// the place of that in the first.
    #[inline]
    fn each_place(&self, line: usize, mut body: impl FnMut(usize, usize, usize)) {
        let window = &self.0.window;
        let [first, second] = window.row(line);
        for a in (0..window.kernel[0]).filter_map(|place| window.at(0, first, place)) {
            for b in (0..window.kernel[1]).filter_map(|place| window.at(1, second, place)) {
                let row = (a * window.lengths[1] + b) * window.lengths[2];
                for place in 0..window.kernel[2] {
                    let (low, high) = window.inside(place, 0, window.counts[2]);
                    if low < high {
                        body(low, high, row + low * window.stride[2] + place - window.before[2]);
                    }
                }
            }
        }
    }

    /// How many elements of a window count, along one axis.
    #[inline]
    fn extent(&self, axis: usize, at: usize) -> usize {
        let window = &self.0.window;
        let start = at * window.stride[axis];
        let (from, to) = match self.0.reach {
            None => (start.max(window.before[axis]), window.before[axis] + window.lengths[axis]),
            Some(reach) => (start, reach[axis]),
        };
        (start + window.kernel[axis]).min(to).saturating_sub(from)
    }

    /// Multiplies a line of windows by the reciprocals of how many elements of each count.
    fn share(&self, line: usize, to: &mut [T]) {
        let rows = self.rows(line);
        for (third, to) in to.iter_mut().enumerate() {
            *to *= self.factor(rows, third);
        }
    }

    /// How many rows of elements count of each window of a line.
    #[inline]
    pub(crate) fn rows(&self, line: usize) -> usize {
        let [first, second] = self.0.window.row(line);
        self.extent(0, first) * self.extent(1, second)
    }

    /// The reciprocal of how many elements count, of a window at this place in a line with so many counting rows.
    #[inline]
    pub(crate) fn factor(&self, rows: usize, third: usize) -> T {
        let (kernel, count) = (&self.0.window.kernel, self.extent(2, third));
        if rows == kernel[0] * kernel[1] && count == kernel[2] {
            self.1
        } else {
            T::ONE / T::of(u32::try_from((rows * count).max(1)).map_or(f64::INFINITY, f64::from))
        }
    }

    /// Calls with the results of each line of windows.
    #[inline]
    fn each_line(&self, out: &mut [T], mut body: impl FnMut(usize, &mut [T])) {
        out.chunks_exact_mut(self.0.window.counts[2]).enumerate().for_each(|(line, out)| body(line, out));
    }

    pub(crate) fn plane(&self, inputs: &[&[T]], out: &mut [T]) {
        if let Some(tiles) = Tiles::of(&self.0.window) {
            match (self.0.pool, inputs) {
                (Pool::Largest, [data]) => return tiles.largest(data, out),
                (Pool::ToLargest, [grads, data]) => return tiles.to_largest(grads, data, out),
                _ => {}
            }
        }
        let step = self.0.window.stride[2];
        match (self.0.pool, inputs) {
            (Pool::Largest, [data]) => {
                out.fill(T::LOWEST);
                self.each_line(out, |line, out| {
                    self.each_place(line, |low, high, start| {
                        for (to, &value) in out[low..high].iter_mut().zip(data[start..].iter().step_by(step)) {
                            *to = larger(*to, value);
                        }
                    });
                });
            }
            (Pool::ToLargest, [grads, data]) => {
                out.fill(T::ZERO);
                self.each_largest(data, |number, at| out[at] += grads[number]);
            }
            (Pool::OfLargest, [other, data]) => {
                self.each_largest(data, |number, at| out[number] = other[at]);
            }
            (Pool::Mean, [data]) => {
                out.fill(T::ZERO);
                self.each_line(out, |line, out| {
                    self.each_place(line, |low, high, start| {
                        for (to, &value) in out[low..high].iter_mut().zip(data[start..].iter().step_by(step)) {
                            *to += value;
                        }
                    });
                    self.share(line, out);
                });
            }
            (Pool::ToMean, [grads]) => {
                out.fill(T::ZERO);
                let columns = self.0.window.counts[2];
                with_own(columns, |shares: &mut [T]| {
                    for (line, grads) in grads.chunks_exact(columns).enumerate() {
                        shares.copy_from_slice(grads);
                        self.share(line, shares);
                        self.each_place(line, |low, high, start| {
                            for (to, &share) in out[start..].iter_mut().step_by(step).zip(&shares[low..high]) {
                                *to += share;
                            }
                        });
                    }
                });
            }
            _ => {}
        }
    }
}

impl<T: Number> Blocked for Windows<T> {
    fn blocks(&self) -> usize {
        parts::count(self.0.planes, self.operations())
    }

    fn operations(&self) -> usize {
        self.0.operations()
    }

    fn likes(&self, operands: &[Option<Lanes>]) -> Vec<Option<Lanes>> {
        lanes::likes(&self.0, operands)
    }

    fn in_lanes(&self, operands: &[Option<Lanes>]) -> Option<Arc<dyn Blocked>> {
        lanes::pooling(*self, operands)
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let (wide, narrow) = (self.0.window.channel(), self.0.window.total());
        let sizes: &[usize] = match self.0.pool {
            Pool::Largest | Pool::Mean => &[wide, narrow],
            Pool::ToLargest => &[narrow, wide, wide],
            Pool::OfLargest => &[wide, wide, narrow],
            Pool::ToMean => &[narrow, wide],
        };
        let (Some((out, inputs)), Some((&size, lengths))) = (arrays.split_last(), sizes.split_last()) else {
            return Ok(());
        };
        for plane in parts::part(self.0.planes, self.blocks(), block) {
            // SAFETY: the caller's promise: operands have these sizes, and planes are disjoint.
            let (given, out): (Vec<&[T]>, &mut [T]) = unsafe {
                let given = inputs.iter().zip(lengths).map(|(start, &length)| slice(*start, plane * length, length));
                (given.collect(), slice_mut(*out, plane * size, size))
            };
            self.plane(&given, out);
        }
        Ok(())
    }
}
