//! Batch normalisation and sums over all axes but one: data are `(outer, channels, inner)`, and each block has channels of
//! its own. Sums are of float64.

use crate::buffer::{slice, slice_mut};
use crate::number::{Number, of_dtype};
use crate::parts;
use crate::sums::{share, sum};
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, DType};
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
        of_dtype!(dtype, T => Arc::new(By::<T>(self, PhantomData)))
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
}

struct By<T>(Channels, PhantomData<T>);

impl<T: Number> By<T> {
    /// The rows of a channel: where each begins.
    fn rows(&self, channel: usize) -> impl Iterator<Item = usize> {
        let (inner, channels) = (self.0.inner, self.0.channels);
        (0..self.0.outer).map(move |row| (row * channels + channel) * inner)
    }

    /// The sum over a channel of a function of elements.
    fn total(&self, channel: usize, of: impl Fn(usize) -> f64) -> f64 {
        if self.0.inner == 1 {
            let (channels, of) = (self.0.channels, &of);
            return sum(self.0.outer, move |row| of(row * channels + channel));
        }
        self.rows(channel).map(|start| sum(self.0.inner, |at| of(start + at))).sum()
    }

    /// Writes a function of elements to those of a channel.
    ///
    /// # Safety
    ///
    /// `out` has the data's size, and nobody else writes to this channel.
    unsafe fn write(&self, out: *mut u8, channel: usize, of: impl Fn(usize) -> T) {
        for start in self.rows(channel) {
            // SAFETY: the caller's promise.
            let row: &mut [T] = unsafe { slice_mut(out, start, self.0.inner) };
            for (at, to) in row.iter_mut().enumerate() {
                *to = of(start + at);
            }
        }
    }

    /// # Safety
    ///
    /// As for a block.
    unsafe fn channel(&self, arrays: &[*mut u8], channel: usize) {
        let own = &self.0;
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
                let scale = vector(1) / (vector(4) + own.eps).sqrt();
                let shift = T::of(vector(2) - vector(3) * scale);
                let scale = T::of(scale);
                // SAFETY: as above.
                unsafe { self.write(arrays[5], channel, |at| x[at] * scale + shift) };
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

impl<T: Number> Blocked for By<T> {
    fn blocks(&self) -> usize {
        parts::count(self.0.channels, self.operations())
    }

    fn operations(&self) -> usize {
        self.0.size().saturating_mul(4)
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        for channel in parts::part(self.0.channels, self.blocks(), block) {
            // SAFETY: the caller's promise; blocks have channels of their own.
            unsafe { self.channel(arrays, channel) };
        }
        Ok(())
    }
}
