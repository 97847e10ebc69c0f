//! Batch normalisation and sums over all axes but one: data are `(outer, channels, inner)`, and each block has channels of
//! its own. Sums are of float64.

mod beside;
mod lanes;

use crate::buffer::{slice, slice_mut};
use crate::loops::{activation, rectify};
use crate::number::{Number, of_dtype};
use crate::parts;
use crate::real::Real;
use crate::sums::{Sum, share};
use crate::vectors::widest;
use beside::{TILE, Tile};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use weft_array::{Blocked, DType, Lanes, StridedLoop};
use weft_engine::Cause;

/// The computation on channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channelwise {
    /// Data to the sum of each channel.
    Sum,
    /// Data, gamma, beta, mean, variance to normalised data.
    Normal,
    /// Data, gamma, beta to normalised data, mean and variance.
    Train,
    /// Gradients, data, gamma, mean, variance to gradients of data, gamma and beta.
    Gradient,
}

/// An op on channels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Channels {
    /// What is done.
    pub what: Channelwise,
    /// The product of the lengths before the channels' axis.
    pub outer: usize,
    /// Channels.
    pub channels: usize,
    /// The product of the lengths behind.
    pub inner: usize,
    /// The addend of variances.
    pub eps: f64,
}

impl Channels {
    /// The step that computes it, of float32 or float64.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        self.followed(dtype, false)
    }

    /// The same, and numbers less than 0 become 0, if that is asked for.
    #[must_use]
    pub fn followed(self, dtype: DType, rectified: bool) -> Option<Arc<dyn Blocked>> {
        of_dtype!(dtype, T => Arc::new(By::<T> { own: self, rectified, of: PhantomData }))
    }

    /// How many elements the data have, inputs and outputs: true for those of the data's size, false for vectors.
    #[must_use]
    pub fn operands(&self) -> (&'static [bool], &'static [bool]) {
        match self.what {
            Channelwise::Sum => (&[true], &[false]),
            Channelwise::Normal => (&[true, false, false, false, false], &[true]),
            Channelwise::Train => (&[true, false, false], &[true, false, false]),
            Channelwise::Gradient => (&[true, true, false, false, false], &[true, false, false]),
        }
    }

    fn size(&self) -> usize {
        self.outer * self.channels * self.inner
    }

    pub(crate) fn operations(&self) -> usize {
        self.size().saturating_mul(4)
    }
}

/// The factor of a channel, and its addend, for a normalisation by given statistics.
///
/// # Safety
///
/// The arrays are those of such an op: data, gamma, beta, mean, variance.
pub(crate) unsafe fn scale_and_shift<T: Number>(own: &Channels, arrays: &[*mut u8], channel: usize) -> (T, T) {
    // SAFETY: the caller's promise.
    let vector = |at: usize| unsafe { slice::<T>(arrays[at], 0, own.channels) }[channel].wide();
    let scale = vector(1) / (vector(4) + own.eps).sqrt();
    (T::of(scale), T::of(vector(2) - vector(3) * scale))
}

/// The element of this number of each line.
#[inline(always)]
#[allow(clippy::inline_always)] // see `vectors`; what maps arrays is not
fn across<T: Real, const N: usize>(lines: &[&[T]; N], at: usize) -> [T; N] {
    let mut found = [T::ZERO; N];
    for (to, line) in found.iter_mut().zip(lines) {
        *to = line[at];
    }
    found
}

struct By<T> {
    own: Channels,
    /// Whether normalised data below 0 become 0.
    rectified: bool,
    of: PhantomData<T>,
}

#[allow(clippy::inline_always)] // see `vectors`
impl<T: Real> By<T> {
    /// The rows of a channel: where each begins.
    fn rows(&self, channel: usize) -> impl Iterator<Item = usize> {
        let (inner, channels) = (self.own.inner, self.own.channels);
        (0..self.own.outer).map(move |row| (row * channels + channel) * inner)
    }

    /// The sum over a channel of a function of elements of these arrays.
    ///
    /// # Safety
    ///
    /// They have the data's size, and are not written to.
    #[inline(always)]
    unsafe fn total<const N: usize>(&self, channel: usize, of: [*mut u8; N], function: impl Fn([T; N]) -> f64) -> f64 {
        let mut sum = Sum::new();
        for start in self.rows(channel) {
            // SAFETY: the caller's promise.
            sum.add(of.map(|array| unsafe { slice(array, start, self.own.inner) }), &function);
        }
        sum.total()
    }

    /// Writes a function of elements of these arrays to those of a channel.
    ///
    /// # Safety
    ///
    /// As above; `out` has the data's size, too, and this channel is the caller's to write.
    #[inline(always)]
    unsafe fn write<const N: usize>(
        &self,
        channel: usize,
        of: [*mut u8; N],
        out: *mut u8,
        function: impl Fn([T; N]) -> T,
    ) {
        let inner = self.own.inner;
        for start in self.rows(channel) {
            // SAFETY: the caller's promise.
            let (lines, row): ([&[T]; N], &mut [T]) =
                unsafe { (of.map(|array| slice(array, start, inner)), slice_mut(out, start, inner)) };
            for (at, to) in row.iter_mut().enumerate() {
                *to = function(across(&lines, at));
            }
            if self.rectified {
                rectify(row);
            }
        }
    }

    /// # Safety
    ///
    /// As for a block.
    #[inline(always)]
    unsafe fn channel(&self, arrays: &[*mut u8], channel: usize) {
        let own = &self.own;
        // SAFETY: the caller's promise: operands have these sizes, and a channel's outputs are this call's.
        let (vector, single) = unsafe {
            (
                |at: usize| slice::<T>(arrays[at], 0, own.channels)[channel].wide(),
                |at: usize, value: f64| slice_mut::<T>(arrays[at], channel, 1)[0] = T::of(value),
            )
        };
        let share = share(own.outer * own.inner);
        let x = arrays[0];
        // SAFETY: as above.
        unsafe {
            match own.what {
                Channelwise::Sum => single(1, self.total(channel, [x], |[x]| x.wide())),
                Channelwise::Normal => {
                    let (scale, shift): (T, T) = scale_and_shift(own, arrays, channel);
                    self.write(channel, [x], arrays[5], |[x]| x * scale + shift);
                }
                Channelwise::Train => {
                    let mean = self.total(channel, [x], |[x]| x.wide()) * share;
                    let variance = self.total(channel, [x], |[x]| (x.wide() - mean) * (x.wide() - mean)) * share;
                    let scale = vector(1) / (variance + own.eps).sqrt();
                    let (centre, scale, beta) = (T::of(mean), T::of(scale), T::of(vector(2)));
                    self.write(channel, [x], arrays[3], |[x]| (x - centre) * scale + beta);
                    single(4, mean);
                    single(5, variance);
                }
                Channelwise::Gradient => {
                    let (g, x) = (arrays[0], arrays[1]);
                    let (gamma, mean) = (vector(2), vector(3));
                    let inverse = 1.0 / (vector(4) + own.eps).sqrt();
                    let total = self.total(channel, [g], |[g]| g.wide());
                    let moment = self.total(channel, [g, x], |[g, x]| g.wide() * (x.wide() - mean)) * inverse;
                    let (scale, even, slope) =
                        (T::of(gamma * inverse), T::of(total * share), T::of(moment * share * inverse));
                    let centre = T::of(mean);
                    self.write(channel, [g, x], arrays[5], |[g, x]| (g - even - (x - centre) * slope) * scale);
                    single(6, moment);
                    single(7, total);
                }
            }
        }
    }

    /// # Safety
    ///
    /// As for a block: some channels of it.
    #[inline(always)]
    unsafe fn part(&self, arrays: &[*mut u8], channels: Range<usize>) {
        if self.own.inner != 1 {
            for channel in channels {
                // SAFETY: the caller's promise.
                unsafe { self.channel(arrays, channel) };
            }
            return;
        }
        for first in channels.clone().step_by(TILE) {
            let count = TILE.min(channels.end - first);
            // SAFETY: as above.
            unsafe { Tile { own: &self.own, rectified: self.rectified, arrays, first, count }.run::<T>() };
        }
    }
}

impl<T: Real> Blocked for By<T> {
    fn blocks(&self) -> usize {
        parts::count(self.own.channels, self.operations())
    }

    fn operations(&self) -> usize {
        self.own.operations()
    }

    fn then(&self, next: &StridedLoop) -> Option<Arc<dyn Blocked>> {
        let dtype = if size_of::<T>() == size_of::<f32>() { DType::Float32 } else { DType::Float64 };
        let fits = self.own.what == Channelwise::Normal && !self.rectified && activation("relu", dtype)?.is(next);
        if fits { self.own.followed(dtype, true) } else { None }
    }

    fn likes(&self, operands: &[Option<Lanes>]) -> Vec<Option<Lanes>> {
        lanes::likes(&self.own, operands)
    }

    fn in_lanes(&self, operands: &[Option<Lanes>]) -> Option<Arc<dyn Blocked>> {
        lanes::normal::<T>(self.own, self.rectified, operands)
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let channels = parts::part(self.own.channels, self.blocks(), block);
        widest(
            #[inline(always)]
            // SAFETY: the caller's promise; blocks have channels of their own.
            || unsafe { self.part(arrays, channels) },
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Channels, Channelwise};
    use weft_array::DType;

    #[test]
    fn where_there_are_no_data_none_are_touched() {
        const OTHERS: [f64; 4] = [5.0; 4];
        for what in [Channelwise::Sum, Channelwise::Normal, Channelwise::Train, Channelwise::Gradient] {
            for [outer, inner] in [[2, 0], [0, 1], [0, 2]] {
                let own = Channels { what, outer, channels: 2, inner, eps: 1e-5 };
                let step = own.step(DType::Float64).expect("a dtype of its");
                let (inputs, outputs) = own.operands();
                let is_data: Vec<bool> = inputs.iter().chain(outputs).copied().collect();
                let mut arrays: Vec<[f64; 4]> = is_data.iter().map(|_| OTHERS).collect();
                let pointers: Vec<*mut u8> = arrays.iter_mut().map(|array| array.as_mut_ptr().cast()).collect();
                for block in 0..step.blocks() {
                    // SAFETY: data have no elements, and vectors one for each of two channels.
                    unsafe { step.run_block(&pointers, std::ptr::null_mut(), block) }.expect("nothing fails");
                }
                for (array, is_data) in arrays.iter().zip(is_data) {
                    assert_eq!(array[if is_data { 0 } else { 2 }..], OTHERS[if is_data { 0 } else { 2 }..]);
                }
                if what == Channelwise::Sum {
                    assert_eq!(arrays[1][..2], [0.0; 2]);
                }
            }
        }
    }
}
