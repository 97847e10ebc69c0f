//! Batch normalisation and sums over all axes but one: data are `(outer, channels, inner)`, and each block has channels of
//! its own. Sums are of float64.

mod lanes;

use crate::buffer::{slice, slice_mut};
use crate::loops::{activation, rectify};
use crate::number::{Number, of_dtype};
use crate::parts;
use crate::real::Real;
use crate::sums::{share, sum};
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, DType, Lanes, StridedLoop};
use weft_engine::Cause;

/// What is done with channels.
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
    /// What is added to variances.
    pub eps: f64,
}

impl Channels {
    /// The step that computes it, of float32 or float64.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        self.followed(dtype, false)
    }

    /// The same, and what is less than 0 becomes 0, if that is asked for.
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

/// By what a channel is multiplied, and what is added then, where it is normalised by given statistics.
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

struct By<T> {
    own: Channels,
    /// Whether normalised data below 0 become 0.
    rectified: bool,
    of: PhantomData<T>,
}

impl<T: Real> By<T> {
    /// The rows of a channel: where each begins.
    fn rows(&self, channel: usize) -> impl Iterator<Item = usize> {
        let (inner, channels) = (self.own.inner, self.own.channels);
        (0..self.own.outer).map(move |row| (row * channels + channel) * inner)
    }

    /// The sum over a channel of a function of elements.
    fn total(&self, channel: usize, of: impl Fn(usize) -> f64) -> f64 {
        if self.own.inner == 1 {
            let (channels, of) = (self.own.channels, &of);
            return sum(self.own.outer, move |row| of(row * channels + channel));
        }
        self.rows(channel).map(|start| sum(self.own.inner, |at| of(start + at))).sum()
    }

    /// Writes a function of elements to those of a channel.
    ///
    /// # Safety
    ///
    /// `out` has the data's size, and nobody else writes to this channel.
    unsafe fn write(&self, out: *mut u8, channel: usize, of: impl Fn(usize) -> T) {
        for start in self.rows(channel) {
            // SAFETY: the caller's promise.
            let row: &mut [T] = unsafe { slice_mut(out, start, self.own.inner) };
            for (at, to) in row.iter_mut().enumerate() {
                *to = of(start + at);
            }
            if self.rectified {
                rectify(row);
            }
        }
    }

    /// # Safety
    ///
    /// As for a block.
    unsafe fn channel(&self, arrays: &[*mut u8], channel: usize) {
        let own = &self.own;
        // SAFETY: the caller's promise: operands have these sizes, and a channel's outputs are this call's.
        let (data, vector, single) = unsafe {
            (
                |at: usize| slice::<T>(arrays[at], 0, own.size()),
                |at: usize| slice::<T>(arrays[at], 0, own.channels)[channel].wide(),
                |at: usize, value: f64| slice_mut::<T>(arrays[at], channel, 1)[0] = T::of(value),
            )
        };
        let count = own.outer * own.inner;
        let share = share(count);
        match own.what {
            Channelwise::Sum => {
                let x = data(0);
                single(1, self.total(channel, |at| x[at].wide()));
            }
            Channelwise::Normal => {
                let x = data(0);
                // SAFETY: as above.
                unsafe {
                    let (scale, shift): (T, T) = scale_and_shift(own, arrays, channel);
                    self.write(arrays[5], channel, |at| x[at] * scale + shift);
                }
            }
            Channelwise::Train => {
                let x = data(0);
                let mean = self.total(channel, |at| x[at].wide()) * share;
                let variance = self.total(channel, |at| (x[at].wide() - mean) * (x[at].wide() - mean)) * share;
                let scale = vector(1) / (variance + own.eps).sqrt();
                let (centre, scale, beta) = (T::of(mean), T::of(scale), T::of(vector(2)));
                // SAFETY: as above.
                unsafe { self.write(arrays[3], channel, |at| (x[at] - centre) * scale + beta) };
                single(4, mean);
                single(5, variance);
            }
            Channelwise::Gradient => {
                let (g, x) = (data(0), data(1));
                let (gamma, mean) = (vector(2), vector(3));
                let inverse = 1.0 / (vector(4) + own.eps).sqrt();
                let total = self.total(channel, |at| g[at].wide());
                let moment = self.total(channel, |at| g[at].wide() * (x[at].wide() - mean)) * inverse;
                let (scale, even, slope) =
                    (T::of(gamma * inverse), T::of(total * share), T::of(moment * share * inverse));
                let centre = T::of(mean);
                // SAFETY: as above.
                unsafe {
                    self.write(arrays[5], channel, |at| (g[at] - even - (x[at] - centre) * slope) * scale);
                }
                single(6, moment);
                single(7, total);
            }
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
        for channel in parts::part(self.own.channels, self.blocks(), block) {
            // SAFETY: the caller's promise; blocks have channels of their own.
            unsafe { self.channel(arrays, channel) };
        }
        Ok(())
    }
}
