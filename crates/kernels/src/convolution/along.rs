//! Convolutions of few channels by steps of one element: sums along rows of windows, as vectors, which stay in registers while
//! all elements of the windows are added. An image at a time is copied into its padding, and nothing is laid out.

use super::{Convolution, Product};
use crate::buffer::{slice, with_own};
use crate::parts;
use pulp::{Arch, MemMask, Simd, WithSimd};
use std::sync::Arc;
use weft_array::{Blocked, DType, StridedLoop};
use weft_engine::Cause;

/// Numbers of channels that are worth it: sums are over few elements, so rows are loaded often.
const CHANNELS: usize = 4;
/// Filters are whole numbers of so many where the library computes none in vain.
const FILTERS: usize = 16;
/// Windows of a row at least: vectors are mostly full.
const WINDOWS: usize = 12;
/// Vectors of a row that are computed at a time.
const VECTORS: usize = 2;
/// Elements of a vector at most, as far as vectors are known to be long.
const VECTOR: usize = 64;
/// Registers of processors with room for the sums of eight filters at a time.
const REGISTERS: usize = 32;

/// The step that computes a convolution of float32 so, if that is a fast way.
pub(super) fn step(own: Convolution) -> Option<Arc<dyn Blocked>> {
    let window = &own.window;
    let fits = own.product == Product::Results && own.groups == 1 && window.stride[2] == 1;
    let few = own.channels == 1 || (own.channels <= CHANNELS && !own.filters.is_multiple_of(FILTERS));
    let some = own.multiplications() > 0 && window.channel() > 0;
    (fits && few && some && window.counts[2] >= WINDOWS).then(|| -> Arc<dyn Blocked> { Arc::new(AlongRows::new(own)) })
}

struct AlongRows {
    own: Convolution,
    /// The lengths of the data with their padding.
    reach: [usize; 3],
    /// How far elements of a window, in all channels, are from its first one.
    places: Vec<usize>,
    blocks: usize,
}

/// The operands of one call of the loop over an image.
struct Image<'a> {
    step: &'a AlongRows,
    data: &'a [f32],
    weights: &'a [f32],
    bias: Option<&'a [f32]>,
    out: *mut f32,
    lines: std::ops::Range<usize>,
}

impl AlongRows {
    fn new(own: Convolution) -> Self {
        let window = &own.window;
        // As far as windows reach, so that each lies in the data: padding before, and the missing part after.
        let reach: [usize; 3] = std::array::from_fn(|axis| {
            let last =
                (window.counts[axis] - 1) * window.stride[axis] + (window.kernel[axis] - 1) * window.dilation[axis];
            (last + 1).max(window.before[axis] + window.lengths[axis])
        });
        let mut places = Vec::with_capacity(own.depth());
        for channel in 0..own.channels {
            window.each_place(|_, place| {
                let [first, second, third] = std::array::from_fn(|axis| place[axis] * window.dilation[axis]);
                places.push(((channel * reach[0] + first) * reach[1] + second) * reach[2] + third);
            });
        }
        let lines = own.batch * window.counts[0] * window.counts[1];
        let blocks = parts::count(lines, own.multiplications());
        Self { own, reach, places, blocks }
    }

    fn lines(&self) -> usize {
        self.own.window.counts[0] * self.own.window.counts[1]
    }

    /// Elements of an image's data, and of the copy that is read: with padding, and a vector behind that no window reaches.
    fn sizes(&self) -> [usize; 2] {
        let [size, padded] =
            [self.own.window.lengths, self.reach].map(|lengths| self.own.channels * lengths.iter().product::<usize>());
        [size, padded + VECTOR]
    }

    /// Puts the data of an image into their padding, which is zeros.
    fn pad(&self, data: &[f32], to: &mut [f32]) {
        let window = &self.own.window;
        let [_, height, width] = window.lengths;
        to.fill(0.0);
        for (number, row) in data.chunks_exact(width).enumerate() {
            let (plane, line) = (number / height, number % height);
            let (channel, plane) = (plane / window.lengths[0], plane % window.lengths[0] + window.before[0]);
            let start = (channel * self.reach[0] + plane) * self.reach[1] + line + window.before[1];
            to[start * self.reach[2] + window.before[2]..][..width].copy_from_slice(row);
        }
    }
}

impl WithSimd for Image<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::inline_always)] // as below
    fn with_simd<S: Simd>(self, simd: S) {
        let filters = self.step.own.filters;
        let mut first = 0;
        while S::REGISTER_COUNT >= REGISTERS && first + 8 <= filters {
            self.filters::<S, 8>(simd, first);
            first += 8;
        }
        while first + 4 <= filters {
            self.filters::<S, 4>(simd, first);
            first += 4;
        }
        while first < filters {
            self.filters::<S, 1>(simd, first);
            first += 1;
        }
    }
}

#[allow(clippy::inline_always)] // else it is not compiled for the processor's vectors
impl Image<'_> {
    /// Some filters of all lines.
    #[inline(always)]
    fn filters<S: Simd, const FILTERS: usize>(&self, simd: S, first: usize) {
        let (window, reach) = (&self.step.own.window, &self.step.reach);
        let width = window.counts[2];
        for line in self.lines.clone() {
            let [plane, row] = window.row(line);
            let start = (plane * window.stride[0] * reach[1] + row * window.stride[1]) * reach[2];
            let mut column = 0;
            while column < width {
                let (from, to) = (start + column, line * width + column);
                let left = width - column;
                if left > S::F32_LANES {
                    self.tile::<S, FILTERS, VECTORS>(simd, first, from, to, left);
                } else {
                    self.tile::<S, FILTERS, 1>(simd, first, from, to, left);
                }
                column += left.min(VECTORS * S::F32_LANES);
            }
        }
    }

    /// Some filters of some windows side by side; so many are left.
    #[inline(always)]
    fn tile<S: Simd, const FILTERS: usize, const COUNT: usize>(
        &self,
        simd: S,
        first: usize,
        from: usize,
        to: usize,
        left: usize,
    ) {
        let (own, places) = (&self.step.own, &self.step.places[..]);
        let (depth, total) = (places.len(), own.window.total());
        let last = (left - (COUNT - 1) * S::F32_LANES).min(S::F32_LANES);
        let mask: MemMask<S::m32s> = simd.mask_between_m32s(0, u32::try_from(last).unwrap_or(0));
        let weights = &self.weights[first * depth..(first + FILTERS) * depth];
        assert!(from + places.last().copied().unwrap_or(0) + COUNT * S::F32_LANES <= self.data.len());
        let data = self.data[from..].as_ptr();
        let mut sums = [[simd.splat_f32s(0.0); COUNT]; FILTERS];
        if let Some(bias) = self.bias {
            for (filter, sums) in sums.iter_mut().enumerate() {
                *sums = [simd.splat_f32s(bias[first + filter]); COUNT];
            }
        }
        for (number, &place) in places.iter().enumerate() {
            let mut row = [simd.splat_f32s(0.0); COUNT];
            for (at, vector) in row.iter_mut().enumerate() {
                // SAFETY: places are in order, and vectors at the last one were looked at.
                *vector = unsafe { data.add(place + at * S::F32_LANES).cast::<S::f32s>().read_unaligned() };
            }
            for (filter, sums) in sums.iter_mut().enumerate() {
                // SAFETY: there are so many weights of each filter.
                let weight = simd.splat_f32s(unsafe { *weights.get_unchecked(filter * depth + number) });
                for at in 0..COUNT {
                    sums[at] = simd.mul_add_e_f32s(weight, row[at], sums[at]);
                }
            }
        }
        for (filter, sums) in sums.iter().enumerate() {
            for (at, &sum) in sums.iter().enumerate() {
                let mut sum = sum;
                if own.rectified {
                    let zero = simd.splat_f32s(0.0);
                    // As the rectifier does it: NaN stays.
                    sum = simd.select_f32s(simd.less_than_or_equal_f32s(sum, zero), zero, sum);
                }
                // SAFETY: each call writes windows of its own, which are among the image's results.
                unsafe {
                    let start = self.out.add((first + filter) * total + to + at * S::F32_LANES);
                    if at + 1 < COUNT {
                        start.cast::<S::f32s>().write_unaligned(sum);
                    } else {
                        simd.mask_store_ptr_f32s(mask, start, sum);
                    }
                }
            }
        }
    }
}

impl Blocked for AlongRows {
    fn blocks(&self) -> usize {
        self.blocks
    }

    fn operations(&self) -> usize {
        self.own.multiplications()
    }

    fn then(&self, next: &StridedLoop) -> Option<Arc<dyn Blocked>> {
        self.own.then(next, DType::Float32)
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let own = &self.own;
        let (&[data, weights, ..], Some(&out)) = (arrays, arrays.last()) else { return Ok(()) };
        let (lines, [size, padded]) = (self.lines(), self.sizes());
        let mut left = parts::part(own.batch * lines, self.blocks, block);
        // SAFETY: the caller's promise: operands have these sizes.
        let (weights, bias): (&[f32], Option<&[f32]>) = unsafe {
            let bias = own.bias.then(|| slice(arrays[2], 0, own.filters));
            (slice(weights, 0, own.filters * own.depth()), bias)
        };
        let arch = Arch::new();
        while !left.is_empty() {
            let image = left.start / lines;
            let end = left.end.min((image + 1) * lines);
            let lines = left.start - image * lines..end - image * lines;
            // SAFETY: as above.
            let data: &[f32] = unsafe { slice(data, image * size, size) };
            #[allow(clippy::cast_ptr_alignment)] // it is an array of float32
            let out = out.cast::<f32>().wrapping_add(image * own.filters * own.window.total());
            with_own(padded, |all: &mut [f32]| {
                self.pad(data, all);
                arch.dispatch(Image { step: self, data: all, weights, bias, out, lines });
            });
            left.start = end;
        }
        Ok(())
    }
}
