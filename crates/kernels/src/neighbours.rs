//! Sums over neighbouring channels, and normalisation by those of squares: data are `(outer, channels, inner)`.

use crate::buffer::{slice, with_own};
use crate::number::of_dtype;
use crate::parts;
use crate::real::Real;
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, DType};
use weft_engine::Cause;

/// The use of the sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Neighbours {
    /// Nothing.
    Sum,
    /// Elements are multiplied by powers of sums of squares: `x * (scale * sum + shift) ** power`.
    Normal {
        /// The factor of sums.
        scale: f64,
        /// Their addend.
        shift: f64,
        /// The power.
        power: f64,
    },
}

/// An op on neighbouring channels, of float32 or float64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Across {
    /// What is done.
    pub what: Neighbours,
    /// How many channels before one count, and how many behind.
    pub reach: [usize; 2],
    /// The product of the lengths before the channels' axis.
    pub outer: usize,
    /// Channels.
    pub channels: usize,
    /// The product of the lengths behind.
    pub inner: usize,
}

impl Across {
    /// The step that computes it.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        of_dtype!(dtype, T => Arc::new(By::<T>(self, PhantomData)))
    }
}

/// Elements of each channel that are computed at a time.
const STRETCH: usize = 256;

struct By<T>(Across, PhantomData<T>);

impl<T: Real> By<T> {
    fn stretches(&self) -> usize {
        self.0.inner.div_ceil(STRETCH)
    }

    /// Some elements of all channels of an image.
    fn stretch(&self, x: &[T], out: &mut Rows<'_, T>, from: usize, count: usize) {
        let own = &self.0;
        let row = |channel: usize| &x[channel * own.inner + from..][..count];
        with_own(STRETCH, |sums: &mut [T]| {
            let sums = &mut sums[..count];
            for channel in 0..own.channels {
                let first = channel.saturating_sub(own.reach[0]);
                let last = (channel + own.reach[1]).min(own.channels - 1);
                sums.fill(T::ZERO);
                for near in first..=last {
                    for (sum, &each) in sums.iter_mut().zip(row(near)) {
                        *sum += if own.what == Neighbours::Sum { each } else { each * each };
                    }
                }
                let out = out.row(channel);
                match own.what {
                    Neighbours::Sum => out.copy_from_slice(sums),
                    Neighbours::Normal { scale, shift, power } => {
                        let x = row(channel);
                        sums.iter_mut().for_each(|sum| *sum = *sum * T::of(scale) + T::of(shift));
                        // The usual powers need roots alone.
                        if power.to_bits() == (-0.75_f64).to_bits() {
                            bend(out, x, sums, |sum| {
                                let root = sum.sqrt();
                                T::ONE / (root * root.sqrt())
                            });
                        } else if power.to_bits() == (-0.5_f64).to_bits() {
                            bend(out, x, sums, |sum| T::ONE / sum.sqrt());
                        } else {
                            let power = T::of(power);
                            bend(out, x, sums, |sum| sum.powf(power));
                        }
                    }
                }
            }
        });
    }
}

/// Elements times a function of sums.
#[inline]
fn bend<T: Real>(out: &mut [T], x: &[T], sums: &[T], of: impl Fn(T) -> T) {
    for ((to, &each), &sum) in out.iter_mut().zip(x).zip(sums) {
        *to = each * of(sum);
    }
}

/// The same elements of each channel of an image's results.
struct Rows<'a, T> {
    start: *mut T,
    apart: usize,
    count: usize,
    _of: PhantomData<&'a mut T>,
}

impl<T> Rows<'_, T> {
    fn row(&mut self, channel: usize) -> &mut [T] {
        // SAFETY: its maker has these elements of each channel alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(channel * self.apart), self.count) }
    }
}

impl<T: Real> Blocked for By<T> {
    fn blocks(&self) -> usize {
        parts::count(self.0.outer * self.stretches(), self.operations())
    }

    fn operations(&self) -> usize {
        let around = self.0.reach[0] + self.0.reach[1] + 4;
        [self.0.outer, self.0.channels, self.0.inner, around]
            .iter()
            .fold(1_usize, |all, &each| all.saturating_mul(each))
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let (own, &[data, out]) = (&self.0, arrays) else { return Ok(()) };
        let size = own.channels * own.inner;
        for unit in parts::part(own.outer * self.stretches(), self.blocks(), block) {
            let (image, from) = (unit / self.stretches(), unit % self.stretches() * STRETCH);
            let count = STRETCH.min(own.inner - from);
            // SAFETY: the caller's promise: operands have these sizes, and units are disjoint.
            let x: &[T] = unsafe { slice(data, image * size, size) };
            let start = out.cast::<T>().wrapping_add(image * size + from);
            let mut rows = Rows { start, apart: own.inner, count, _of: PhantomData };
            self.stretch(x, &mut rows, from, count);
        }
        Ok(())
    }
}
