//! Channels that lie side by side, along the last axis: some of them at a time, row by row.

use super::{Channels, Channelwise, scale_and_shift};
use crate::buffer::{slice, slice_mut};
use crate::loops::rectify;
use crate::real::Real;
use crate::sums::{nth, share};
use std::array::from_fn;

/// Channels that are summed at a time: their sums stay in the fastest cache.
pub(super) const TILE: usize = 64;

/// Some channels of an op.
pub(super) struct Tile<'a> {
    pub(super) own: &'a Channels,
    /// Whether normalised data below 0 become 0.
    pub(super) rectified: bool,
    pub(super) arrays: &'a [*mut u8],
    pub(super) first: usize,
    /// How many: no more than a tile has.
    pub(super) count: usize,
}

#[allow(clippy::inline_always)] // see `vectors`
impl Tile<'_> {
    /// Elements of these channels, of rows of the data: in place, or in `own` where there are less than a tile's; the
    /// rest of that is 0.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run); the arrays have the data's size.
    #[inline(always)]
    unsafe fn lines<'a, T: Real, const N: usize>(
        &self,
        of: [usize; N],
        row: usize,
        zeros: &'a [T; TILE],
        own: &'a mut [[T; TILE]; N],
    ) -> [&'a [T; TILE]; N] {
        let from = row * self.own.channels + self.first;
        let mut found = [zeros; N];
        for ((found, own), array) in found.iter_mut().zip(own).zip(of) {
            // SAFETY: the caller's promise.
            let line = unsafe { slice::<T>(self.arrays[array], from, self.count) };
            *found = if let Some(whole) = line.first_chunk() {
                whole
            } else {
                own[..line.len()].copy_from_slice(line);
                own
            };
        }
        found
    }

    /// Sums of a function of elements, and of the number of their channel in the tile.
    ///
    /// # Safety
    ///
    /// As above.
    #[inline(always)]
    unsafe fn totals<T: Real, const N: usize>(
        &self,
        of: [usize; N],
        function: impl Fn(usize, [T; N]) -> f64,
    ) -> [f64; TILE] {
        let (mut sums, zeros, mut own) = ([0.0; TILE], [T::ZERO; TILE], [[T::ZERO; TILE]; N]);
        for row in 0..self.own.outer {
            // SAFETY: the caller's promise.
            let lines = unsafe { self.lines(of, row, &zeros, &mut own) };
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum += function(lane, nth(&lines, lane));
            }
        }
        sums
    }

    /// Writes a function of elements, and of the number of their channel.
    ///
    /// # Safety
    ///
    /// As above; `out` has the data's size, too.
    #[inline(always)]
    unsafe fn write<T: Real, const N: usize>(&self, of: [usize; N], out: usize, function: impl Fn(usize, [T; N]) -> T) {
        let (mut found, zeros, mut own) = ([T::ZERO; TILE], [T::ZERO; TILE], [[T::ZERO; TILE]; N]);
        for row in 0..self.own.outer {
            let from = row * self.own.channels + self.first;
            // SAFETY: the caller's promise.
            let (lines, out) =
                unsafe { (self.lines(of, row, &zeros, &mut own), slice_mut::<T>(self.arrays[out], from, self.count)) };
            let each = |to: &mut [T; TILE]| {
                for (lane, to) in to.iter_mut().enumerate() {
                    *to = function(lane, nth(&lines, lane));
                }
                if self.rectified {
                    rectify(to);
                }
            };
            if let Some(whole) = out.first_chunk_mut() {
                each(whole);
            } else {
                each(&mut found);
                out.copy_from_slice(&found[..out.len()]);
            }
        }
    }

    /// A function of each channel.
    #[inline(always)]
    fn each<R: Copy + Default>(&self, function: impl Fn(usize) -> R) -> [R; TILE] {
        from_fn(|lane| if lane < self.count { function(lane) } else { R::default() })
    }

    /// Computes these channels.
    ///
    /// # Safety
    ///
    /// The arrays are those of the op, inputs first, and these channels are the caller's to write.
    #[inline(always)]
    pub(super) unsafe fn run<T: Real>(&self) {
        let (own, arrays) = (self.own, self.arrays);
        assert!(self.count <= TILE);
        // SAFETY: the caller's promise.
        let vector = |at: usize| unsafe { slice::<T>(arrays[at], self.first, self.count) };
        let single = |at: usize, values: &[f64; TILE]| {
            // SAFETY: as above.
            let out = unsafe { slice_mut::<T>(arrays[at], self.first, self.count) };
            for (to, &value) in out.iter_mut().zip(values) {
                *to = T::of(value);
            }
        };
        let narrow = |values: &[f64; TILE]| values.map(T::of);
        let share = share(own.outer);
        // SAFETY: the caller's promise, here and below.
        unsafe {
            match own.what {
                Channelwise::Sum => single(1, &self.totals::<T, 1>([0], |_, [x]| x.wide())),
                Channelwise::Normal => {
                    let both: [(T, T); TILE] = self.each(|lane| scale_and_shift(own, arrays, self.first + lane));
                    let (scale, shift) = (both.map(|(scale, _)| scale), both.map(|(_, shift)| shift));
                    self.write::<T, 1>([0], 5, |lane, [x]| x * scale[lane] + shift[lane]);
                }
                Channelwise::Train => {
                    let mean = self.totals::<T, 1>([0], |_, [x]| x.wide()).map(|total| total * share);
                    let square = |x: f64| x * x;
                    let variance = self.totals::<T, 1>([0], |lane, [x]| square(x.wide() - mean[lane]));
                    let variance = variance.map(|total| total * share);
                    let scale = self.each(|lane| vector(1)[lane].wide() / (variance[lane] + own.eps).sqrt());
                    let (centre, scale, beta) = (narrow(&mean), narrow(&scale), self.each(|lane| vector(2)[lane]));
                    self.write::<T, 1>([0], 3, |lane, [x]| (x - centre[lane]) * scale[lane] + beta[lane]);
                    single(4, &mean);
                    single(5, &variance);
                }
                Channelwise::Gradient => {
                    let mean = self.each(|lane| vector(3)[lane].wide());
                    let inverse = self.each(|lane| 1.0 / (vector(4)[lane].wide() + own.eps).sqrt());
                    let total = self.totals::<T, 1>([0], |_, [g]| g.wide());
                    let moment = self.totals::<T, 2>([0, 1], |lane, [g, x]| g.wide() * (x.wide() - mean[lane]));
                    let moment: [f64; TILE] = from_fn(|lane| moment[lane] * inverse[lane]);
                    let scale = narrow(&self.each(|lane| vector(2)[lane].wide() * inverse[lane]));
                    let even = total.map(|total| T::of(total * share));
                    let slope = narrow(&from_fn(|lane| moment[lane] * share * inverse[lane]));
                    let centre = narrow(&mean);
                    self.write::<T, 2>([0, 1], 5, |lane, [g, x]| {
                        (g - even[lane] - (x - centre[lane]) * slope[lane]) * scale[lane]
                    });
                    single(6, &moment);
                    single(7, &total);
                }
            }
        }
    }
}
