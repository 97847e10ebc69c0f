//! Pooling of channels that lie side by side.

use super::{Pool, Pooling, Windows};
use crate::buffer::{slice, slice_mut, with_own};
use crate::lanes::of_width;
use crate::number::{Number, larger};
use crate::parts;
use std::sync::Arc;
use weft_array::{Blocked, Lanes};
use weft_engine::Cause;

/// Data and results in lanes of one width, where either lies so.
pub(super) fn likes(own: &Pooling, operands: &[Option<Lanes>]) -> Vec<Option<Lanes>> {
    let (window, forward) = (&own.window, matches!(own.pool, Pool::Largest | Pool::Mean));
    let known = operands.iter().flatten().next().filter(|_| forward);
    let fits = known.filter(|lanes| own.planes.is_multiple_of(lanes.width));
    let lanes = |inner| fits.map(|lanes| Lanes { inner, ..*lanes });
    vec![lanes(window.channel()), lanes(window.total())]
}

/// Pooling of data in lanes, or to results in lanes, or both: to the largest elements or to means.
pub(super) fn pooling<T: Number>(own: Windows<T>, operands: &[Option<Lanes>]) -> Option<Arc<dyn Blocked>> {
    let (&[data, out], likes) = (operands, likes(&own.0, operands)) else { return None };
    let width = data.or(out)?.width;
    if operands.iter().zip(likes).any(|(given, liked)| given.is_some() && *given != liked) {
        return None;
    }
    let (from_lanes, to_lanes) = (data.is_some(), out.is_some());
    of_width!(width, WIDTH => Pools::<T, WIDTH> { own, from_lanes, to_lanes })
}

struct Pools<T, const WIDTH: usize> {
    own: Windows<T>,
    from_lanes: bool,
    to_lanes: bool,
}

impl<T: Number, const WIDTH: usize> Pools<T, WIDTH> {
    /// Pools planes that lie side by side.
    fn planes(&self, data: &[T], mut store: impl FnMut(usize, [T; WIDTH])) {
        let (own, columns) = (&self.own, self.own.0.window.counts[2]);
        let largest = own.0.pool == Pool::Largest;
        own.each_window(|number, part| {
            let mut all = [if largest { T::LOWEST } else { T::ZERO }; WIDTH];
            own.each_row(part, |start| {
                for side_by_side in data[start * WIDTH..][..part[2].1 * WIDTH].chunks_exact(WIDTH) {
                    for (to, &value) in all.iter_mut().zip(side_by_side) {
                        *to = if largest { larger(*to, value) } else { *to + value };
                    }
                }
            });
            if !largest {
                let share = own.factor(own.rows(number / columns), number % columns);
                all.iter_mut().for_each(|to| *to *= share);
            }
            store(number, all);
        });
    }
}

impl<T: Number, const WIDTH: usize> Blocked for Pools<T, WIDTH> {
    fn blocks(&self) -> usize {
        parts::count(self.own.0.planes / WIDTH, self.operations())
    }

    fn operations(&self) -> usize {
        self.own.0.operations()
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let &[data, out] = arrays else { return Ok(()) };
        let (wide, narrow) = (self.own.0.window.channel(), self.own.0.window.total());
        for number in parts::part(self.own.0.planes / WIDTH, self.blocks(), block) {
            // SAFETY: the caller's promise: operands have these sizes, and planes are disjoint.
            let (data, out): (&[T], &mut [T]) = unsafe {
                let (wide, narrow) = (wide * WIDTH, narrow * WIDTH);
                (slice(data, number * wide, wide), slice_mut(out, number * narrow, narrow))
            };
            if !self.from_lanes {
                with_own(narrow, |found: &mut [T]| {
                    for (lane, data) in data.chunks_exact(wide).enumerate() {
                        self.own.plane(&[data], found);
                        found.iter().enumerate().for_each(|(at, value)| out[at * WIDTH + lane] = *value);
                    }
                });
            } else if self.to_lanes {
                self.planes(data, |at, found| out[at * WIDTH..][..WIDTH].copy_from_slice(&found));
            } else {
                self.planes(data, |at, found| {
                    found.iter().enumerate().for_each(|(lane, value)| out[lane * narrow + at] = *value);
                });
            }
        }
        Ok(())
    }
}
