//! Convolutions by products of matrices: data are laid out as columns, one for each window, as many at a time as fit into
//! a cache.

use super::{Convolution, Product};
use crate::buffer::{slice, slice_mut, with_own};
use crate::loops::rectify;
use crate::number::{Matrix, multiply};
use crate::parts;
use crate::real::Real;
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, DType, StridedLoop};
use weft_engine::Cause;

/// Elements of the columns that are laid out at a time.
const COLUMNS: usize = 1 << 16;
/// Fewer columns than this are not laid out at a time: products of narrow matrices are slow.
const NARROW: usize = 64;

/// Elements that are moved at a time: rows of windows are often too short for more.
const TOGETHER: usize = 4;

/// A stretch of a row of columns.
struct Run {
    /// Where it is among the columns of a channel.
    at: usize,
    count: usize,
    /// Where its first element is in the channel's data; nowhere if it is padding.
    source: Option<usize>,
}

/// Copies elements, mostly few of them.
fn copy<T: Real>(to: &mut [T], from: &[T]) {
    let whole = to.len() - to.len() % TOGETHER;
    for at in (0..whole).step_by(TOGETHER) {
        to[at..at + TOGETHER].copy_from_slice(&from[at..at + TOGETHER]);
    }
    let mut at = whole;
    while at < to.len() {
        to[at] = from[at];
        at += 1;
    }
}

/// Adds elements, mostly few of them.
fn add<T: Real>(to: &mut [T], from: &[T]) {
    assert_eq!(to.len(), from.len());
    for at in 0..to.len() {
        to[at] += from[at];
    }
}

pub(super) struct By<T> {
    own: Convolution,
    blocks: usize,
    _of: PhantomData<T>,
}

impl<T: Real> By<T> {
    pub(super) fn new(own: Convolution) -> Self {
        let made = Self { own, blocks: 1, _of: PhantomData };
        let blocks = parts::count(made.units(), own.multiplications());
        Self { blocks, ..made }
    }

    /// The pieces of blocks: images, groups of images, or stretches of windows of these.
    fn units(&self) -> usize {
        match self.own.product {
            Product::Results => self.own.batch * self.own.groups * self.stretches(),
            Product::Data => self.own.batch * self.own.groups,
            Product::Weights => self.own.batch,
        }
    }

    /// How many times windows are laid out.
    fn stretches(&self) -> usize {
        self.own.window.total().div_ceil(self.wide()).max(1)
    }

    /// How many elements an image of the data has in a group, and one of the results.
    fn sizes(&self) -> (usize, usize) {
        (self.own.each() * self.own.window.channel(), self.own.filters_each() * self.own.window.total())
    }

    /// How many windows are laid out at a time.
    fn wide(&self) -> usize {
        (COLUMNS / self.own.depth().max(1)).max(NARROW).min(self.own.window.total().max(1))
    }

    /// Calls with each range of windows that is laid out at a time.
    fn each_chunk(&self, mut body: impl FnMut(usize, usize)) {
        let (total, wide) = (self.own.window.total(), self.wide());
        let mut from = 0;
        while from < total {
            let to = (from + wide).min(total);
            body(from, to);
            from = to;
        }
    }

    /// The stretches of a channel's columns, of a range of windows: the same in each channel, so they are found once.
    fn runs(&self, from: usize, to: usize) -> Vec<Run> {
        let window = &self.own.window;
        let (wide, length) = (to - from, window.counts[2]);
        let plane = window.lengths[1] * window.lengths[2];
        let mut runs = Vec::with_capacity(window.size() * (wide / length.max(1) + 2));
        window.each_place(|number, place| {
            let mut done = 0;
            while done < wide {
                let (line, start) = ((from + done) / length, (from + done) % length);
                let count = (length - start).min(wide - done);
                let at = number * wide + done;
                done += count;
                let [first, second] = window.row(line);
                let (Some(a), Some(b)) = (window.at(0, first, place[0]), window.at(1, second, place[1])) else {
                    runs.push(Run { at, count, source: None });
                    continue;
                };
                let (low, high) = window.inside(place[2], start, start + count);
                let mut push = |from: usize, to: usize, source: Option<usize>| {
                    if from < to {
                        runs.push(Run { at: at + from - start, count: to - from, source });
                    }
                };
                push(start, low, None);
                if low < high {
                    let column = low * window.stride[2] + place[2] * window.dilation[2] - window.before[2];
                    push(low, high, Some(a * plane + b * window.lengths[2] + column));
                }
                push(high, start + count, None);
            }
        });
        runs
    }

    /// Lays the windows of a range out as columns, a row for each place in a channel.
    fn lay_out(&self, data: &[T], columns: &mut [T], from: usize, to: usize) {
        let (window, runs) = (&self.own.window, self.runs(from, to));
        let (size, stride) = (window.size() * (to - from), window.stride[2]);
        for channel in 0..self.own.each() {
            let data = &data[channel * window.channel()..][..window.channel()];
            let columns = &mut columns[channel * size..][..size];
            for run in &runs {
                let target = &mut columns[run.at..run.at + run.count];
                match run.source {
                    None => target.fill(T::ZERO),
                    Some(source) if stride == 1 => copy(target, &data[source..source + run.count]),
                    Some(source) => {
                        for (to, from) in target.iter_mut().zip(data[source..].iter().step_by(stride)) {
                            *to = *from;
                        }
                    }
                }
            }
        }
    }

    /// Adds columns to their elements of the data.
    fn add_up(&self, data: &mut [T], columns: &[T], from: usize, to: usize) {
        let (window, runs) = (&self.own.window, self.runs(from, to));
        let (size, stride) = (window.size() * (to - from), window.stride[2]);
        for channel in 0..self.own.each() {
            let data = &mut data[channel * window.channel()..][..window.channel()];
            let columns = &columns[channel * size..][..size];
            for run in &runs {
                let Some(start) = run.source else { continue };
                let source = &columns[run.at..run.at + run.count];
                if stride == 1 {
                    add(&mut data[start..start + run.count], source);
                } else {
                    for (to, from) in data[start..].iter_mut().step_by(stride).zip(source) {
                        *to += *from;
                    }
                }
            }
        }
    }

    /// Calls with the columns of a range of windows of an image: a view of the data where they are those.
    fn with_columns(&self, data: &[T], from: usize, to: usize, body: impl FnOnce(Matrix<T>)) {
        if self.own.window.is_identity() {
            let start = data[from..].as_ptr().cast_mut();
            return body(Matrix { start, row: self.own.window.channel(), column: 1 });
        }
        with_own(self.own.depth() * (to - from), |columns: &mut [T]| {
            self.lay_out(data, columns, from, to);
            body(Matrix { start: columns.as_mut_ptr(), row: to - from, column: 1 });
        });
    }

    fn weights(&self, start: *mut u8, group: usize) -> Matrix<T> {
        let depth = self.own.depth();
        let start = start.cast::<T>().wrapping_add(group * self.own.filters_each() * depth);
        Matrix { start, row: depth, column: 1 }
    }

    /// The results of a group of an image, from a window on.
    fn results(&self, start: *mut u8, unit: usize, from: usize) -> Matrix<T> {
        let start = start.cast::<T>().wrapping_add(unit * self.sizes().1 + from);
        Matrix { start, row: self.own.window.total(), column: 1 }
    }

    /// Computes the results of a stretch of windows.
    ///
    /// # Safety
    ///
    /// As for a block.
    unsafe fn forward(&self, arrays: &[*mut u8], unit: usize, from: usize, to: usize) {
        let (own, group) = (&self.own, unit % self.own.groups);
        let (size, out) = self.sizes();
        let (filters, depth) = (own.filters_each(), own.depth());
        let &[data, weights, .., results] = arrays else { return };
        let row = |filter: usize| {
            // SAFETY: the caller's promise; each stretch has results of its own.
            unsafe { slice_mut::<T>(results, unit * out + filter * own.window.total() + from, to - from) }
        };
        if own.bias && arrays.len() == 4 {
            // SAFETY: as above.
            let bias: &[T] = unsafe { slice(arrays[2], group * filters, filters) };
            bias.iter().enumerate().for_each(|(filter, value)| row(filter).fill(*value));
        }
        // SAFETY: as above.
        let data: &[T] = unsafe { slice(data, unit * size, size) };
        self.with_columns(data, from, to, |columns| {
            let results = self.results(results, unit, from);
            // SAFETY: as above; the matrices are those of this unit.
            unsafe { multiply([filters, depth, to - from], results, self.weights(weights, group), columns, own.bias) };
        });
        if own.rectified {
            (0..filters).for_each(|filter| rectify(row(filter)));
        }
    }

    /// # Safety
    ///
    /// As for a block.
    unsafe fn backward(&self, arrays: &[*mut u8], unit: usize) {
        let (own, group) = (&self.own, unit % self.own.groups);
        let size = self.sizes().0;
        let (filters, depth) = (own.filters_each(), own.depth());
        let &[results, weights, data] = arrays else { return };
        // SAFETY: the caller's promise; each unit has data of its own.
        let data: &mut [T] = unsafe { slice_mut(data, unit * size, size) };
        let weights = self.weights(weights, group);
        let turned = Matrix { start: weights.start, row: weights.column, column: weights.row };
        if own.window.is_identity() {
            let out = Matrix { start: data.as_mut_ptr(), row: own.window.channel(), column: 1 };
            // SAFETY: as above.
            unsafe {
                multiply([depth, filters, own.window.total()], out, turned, self.results(results, unit, 0), false);
            };
            return;
        }
        data.fill(T::ZERO);
        self.each_chunk(|from, to| {
            with_own(depth * (to - from), |columns: &mut [T]| {
                let out = Matrix { start: columns.as_mut_ptr(), row: to - from, column: 1 };
                // SAFETY: as above.
                unsafe { multiply([depth, filters, to - from], out, turned, self.results(results, unit, from), false) };
                self.add_up(data, columns, from, to);
            });
        });
    }

    /// Adds one image's part to the weights.
    ///
    /// # Safety
    ///
    /// As for a block.
    unsafe fn weigh(&self, arrays: &[*mut u8], out: *mut u8, image: usize, first: bool) {
        let own = &self.own;
        let size = self.sizes().0;
        let (filters, depth) = (own.filters_each(), own.depth());
        let &[data, results, _] = arrays else { return };
        for group in 0..own.groups {
            let unit = image * own.groups + group;
            // SAFETY: the caller's promise.
            let data: &[T] = unsafe { slice(data, unit * size, size) };
            self.each_chunk(|from, to| {
                self.with_columns(data, from, to, |columns| {
                    let turned = Matrix { start: columns.start, row: columns.column, column: columns.row };
                    let (out, results) = (self.weights(out, group), self.results(results, unit, from));
                    // SAFETY: as above; each block adds up on its own.
                    unsafe { multiply([filters, to - from, depth], out, results, turned, !(first && from == 0)) };
                });
            });
        }
    }

    fn weight_count(&self) -> usize {
        self.own.filters * self.own.depth()
    }
}

impl<T: Real> Blocked for By<T> {
    fn blocks(&self) -> usize {
        self.blocks
    }

    fn operations(&self) -> usize {
        self.own.multiplications()
    }

    fn then(&self, next: &StridedLoop) -> Option<Arc<dyn Blocked>> {
        self.own.then(next, if size_of::<T>() == size_of::<f32>() { DType::Float32 } else { DType::Float64 })
    }

    fn scratch(&self) -> usize {
        let sums = if self.own.product == Product::Weights { self.blocks - 1 } else { 0 };
        sums * self.weight_count() * size_of::<T>()
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], scratch: *mut u8, block: usize) -> Result<(), Cause> {
        let own = &self.own;
        if own.product == Product::Weights {
            let bytes = self.weight_count() * size_of::<T>();
            let out = match (block.checked_sub(1), arrays.last()) {
                (Some(at), _) => scratch.wrapping_add(at * bytes),
                (None, Some(out)) => *out,
                (None, None) => return Ok(()),
            };
            let images = parts::part(own.batch, self.blocks, block);
            if images.is_empty() || own.window.total() == 0 {
                // SAFETY: the caller's promise; each block has a sum of its own.
                unsafe { slice_mut::<T>(out, 0, self.weight_count()) }.fill(T::ZERO);
            }
            for image in images.clone() {
                // SAFETY: as above.
                unsafe { self.weigh(arrays, out, image, image == images.start) };
            }
            return Ok(());
        }
        let (stretches, wide, total) = (self.stretches(), self.wide(), own.window.total());
        for unit in parts::part(self.units(), self.blocks, block) {
            // SAFETY: the caller's promise; units are disjoint.
            unsafe {
                if own.product == Product::Results {
                    let from = unit % stretches * wide;
                    self.forward(arrays, unit / stretches, from, (from + wide).min(total));
                } else {
                    self.backward(arrays, unit);
                }
            }
        }
        Ok(())
    }

    unsafe fn finish(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        if self.own.product == Product::Weights
            && let Some(out) = arrays.last()
        {
            let count = self.weight_count();
            // SAFETY: the caller's promise.
            let out: &mut [T] = unsafe { slice_mut(*out, 0, count) };
            for block in 1..self.blocks {
                // SAFETY: as above.
                let sum: &[T] = unsafe { slice(scratch, (block - 1) * count, count) };
                for (total, more) in out.iter_mut().zip(sum) {
                    *total += *more;
                }
            }
        }
        Ok(())
    }
}
