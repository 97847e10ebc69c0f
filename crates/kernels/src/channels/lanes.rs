//! Normalisation of channels that lie side by side.

use super::{Channels, Channelwise, scale_and_shift};
use crate::buffer::{slice, slice_mut};
use crate::lanes::of_width;
use crate::loops::rectify;
use crate::parts;
use crate::real::Real;
use crate::vectors::widest;
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, Lanes};
use weft_engine::Cause;

/// Elements of a channel that are brought from lanes to rows, or back, at a time: they fit into the fastest cache.
const TILE: usize = 64;

/// Data and results in lanes of one width, where either lies so.
pub(super) fn likes(own: &Channels, operands: &[Option<Lanes>]) -> Vec<Option<Lanes>> {
    let known = operands.iter().flatten().next().filter(|_| own.what == Channelwise::Normal);
    let lanes = known.copied().filter(|lanes| lanes.inner == own.inner && own.channels.is_multiple_of(lanes.width));
    vec![lanes, None, None, None, None, lanes]
}

/// Normalisation by given statistics, of data or to results in lanes, or both; and numbers less than 0 become 0, if
/// that is asked for.
pub(super) fn normal<T: Real>(own: Channels, rectified: bool, operands: &[Option<Lanes>]) -> Option<Arc<dyn Blocked>> {
    let &[data, None, None, None, None, out] = operands else { return None };
    let lanes = data.or(out)?;
    let same = |given: Option<Lanes>| given.is_none_or(|given| given == lanes);
    let fits = own.what == Channelwise::Normal && same(data) && same(out);
    if !fits || lanes.inner != own.inner || !own.channels.is_multiple_of(lanes.width) {
        return None;
    }
    let (from_lanes, to_lanes) = (data.is_some(), out.is_some());
    of_width!(lanes.width, WIDTH => Normal::<T, WIDTH> { own, rectified, from_lanes, to_lanes, of: PhantomData })
}

struct Normal<T, const WIDTH: usize> {
    own: Channels,
    rectified: bool,
    from_lanes: bool,
    to_lanes: bool,
    of: PhantomData<T>,
}

#[allow(clippy::inline_always)] // see `vectors`
impl<T: Real, const WIDTH: usize> Normal<T, WIDTH> {
    /// Normalises channels that lie side by side, of one row.
    #[inline(always)]
    fn row(&self, scale: &[T; WIDTH], shift: &[T; WIDTH], data: &[T], out: &mut [T]) {
        let inner = self.own.inner;
        if self.from_lanes && self.to_lanes {
            for (to, from) in out.chunks_exact_mut(WIDTH).zip(data.chunks_exact(WIDTH)) {
                for lane in 0..WIDTH {
                    to[lane] = from[lane] * scale[lane] + shift[lane];
                }
            }
        } else {
            let place = |in_lanes: bool, lane: usize, at: usize| {
                if in_lanes { at * WIDTH + lane } else { lane * inner + at }
            };
            for start in (0..inner).step_by(TILE) {
                for lane in 0..WIDTH {
                    for at in start..inner.min(start + TILE) {
                        let value = data[place(self.from_lanes, lane, at)];
                        out[place(self.to_lanes, lane, at)] = value * scale[lane] + shift[lane];
                    }
                }
            }
        }
        if self.rectified {
            rectify(out);
        }
    }
}

impl<T: Real, const WIDTH: usize> Blocked for Normal<T, WIDTH> {
    fn blocks(&self) -> usize {
        parts::count(self.own.channels / WIDTH, self.operations())
    }

    fn operations(&self) -> usize {
        self.own.operations()
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let (&[data, .., out], groups) = (arrays, self.own.channels / WIDTH) else { return Ok(()) };
        let size = self.own.inner * WIDTH;
        widest(
            #[inline(always)]
            || {
                for group in parts::part(groups, self.blocks(), block) {
                    let (mut scale, mut shift) = ([T::ZERO; WIDTH], [T::ZERO; WIDTH]);
                    for lane in 0..WIDTH {
                        // SAFETY: the caller's promise.
                        (scale[lane], shift[lane]) =
                            unsafe { scale_and_shift(&self.own, arrays, group * WIDTH + lane) };
                    }
                    for row in 0..self.own.outer {
                        let start = (row * groups + group) * size;
                        // SAFETY: the caller's promise; blocks have channels of their own.
                        let (data, out) = unsafe { (slice(data, start, size), slice_mut(out, start, size)) };
                        self.row(&scale, &shift, data, out);
                    }
                }
            },
        );
        Ok(())
    }
}
