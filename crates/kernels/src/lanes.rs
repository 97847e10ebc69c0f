//! Pooling and batch normalisation of data whose channels lie side by side: all of these at a time, as a vector. Each element
//! is computed as it is where data lie in rows, so results are the same, bit for bit.

use crate::buffer::{slice, slice_mut, with_own};
use crate::channels::{Channels, Channelwise, scale_and_shift};
use crate::loops::rectify;
use crate::number::{Number, larger};
use crate::parts;
use crate::pooling::{Pool, Pooling, Windows};
use crate::real::Real;
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, Lanes};
use weft_engine::Cause;

/// Elements of a channel that are brought from lanes to rows, or back, at a time: they fit into the fastest cache.
const TILE: usize = 64;

/// What is made for lanes of this width, under a name of its own; nothing for widths that no processor has.
macro_rules! of_width {
    ($width:expr, $name:ident => $made:expr) => {
        match $width {
            4 => of_width!(@ 4, $name => $made),
            8 => of_width!(@ 8, $name => $made),
            16 => of_width!(@ 16, $name => $made),
            _ => None,
        }
    };
    (@ $width:literal, $name:ident => $made:expr) => {{
        const $name: usize = $width;
        let made: Arc<dyn Blocked> = Arc::new($made);
        Some(made)
    }};
}

/// Data and results in lanes of one width, where either lies so.
pub(crate) fn pooling_likes(own: &Pooling, operands: &[Option<Lanes>]) -> Vec<Option<Lanes>> {
    let (window, forward) = (&own.window, matches!(own.pool, Pool::Largest | Pool::Mean));
    let known = operands.iter().flatten().next().filter(|_| forward);
    let fits = known.filter(|lanes| own.planes.is_multiple_of(lanes.width));
    let lanes = |inner| fits.map(|lanes| Lanes { inner, ..*lanes });
    vec![lanes(window.channel()), lanes(window.total())]
}

/// The same for a normalisation by given statistics.
pub(crate) fn normal_likes(own: &Channels, operands: &[Option<Lanes>]) -> Vec<Option<Lanes>> {
    let known = operands.iter().flatten().next().filter(|_| own.what == Channelwise::Normal);
    let lanes = known.copied().filter(|lanes| lanes.inner == own.inner && own.channels.is_multiple_of(lanes.width));
    vec![lanes, None, None, None, None, lanes]
}

/// Pooling of data in lanes, or to results in lanes, or both: to the largest elements or to means.
pub(crate) fn pooling<T: Number>(own: Windows<T>, operands: &[Option<Lanes>]) -> Option<Arc<dyn Blocked>> {
    let (&[data, out], likes) = (operands, pooling_likes(&own.0, operands)) else { return None };
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

/// Normalisation by given statistics, of data or to results in lanes, or both; and what is less than 0 becomes 0, if that is
/// asked for.
pub(crate) fn normal<T: Real>(own: Channels, rectified: bool, operands: &[Option<Lanes>]) -> Option<Arc<dyn Blocked>> {
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

impl<T: Real, const WIDTH: usize> Normal<T, WIDTH> {
    /// Normalises channels that lie side by side, of one row.
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
        for group in parts::part(groups, self.blocks(), block) {
            let (mut scale, mut shift) = ([T::ZERO; WIDTH], [T::ZERO; WIDTH]);
            for lane in 0..WIDTH {
                // SAFETY: the caller's promise.
                (scale[lane], shift[lane]) = unsafe { scale_and_shift(&self.own, arrays, group * WIDTH + lane) };
            }
            for row in 0..self.own.outer {
                let start = (row * groups + group) * size;
                // SAFETY: the caller's promise; blocks have channels of their own.
                let (data, out) = unsafe { (slice(data, start, size), slice_mut(out, start, size)) };
                self.row(&scale, &shift, data, out);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Channels, Channelwise, Pool, Pooling, Window};
    use std::sync::Arc;
    use weft_array::{Blocked, DType, Lanes};

    /// Numbers of which no two sums are the same, some of them signed zeros, infinite, or none.
    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        let special = [0.0, -0.0, f32::NAN, f32::NEG_INFINITY];
        let small = |at: usize| f32::from(u16::try_from((at + seed) * 40_503 % 65_521).unwrap_or(0)) / 4096.0 - 8.0;
        (0..count).map(|at| if at % 11 == 3 { special[at / 11 % 4] } else { small(at) }).collect()
    }

    /// The same elements, in these lanes.
    fn laid_out(rows: &[f32], lanes: Option<Lanes>) -> Vec<f32> {
        let Some(Lanes { width, inner }) = lanes else { return rows.to_vec() };
        let mut all = vec![0.0; rows.len()];
        for (at, value) in rows.iter().enumerate() {
            let (plane, element) = (at / inner, at % inner);
            all[(plane / width * inner + element) * width + plane % width] = *value;
        }
        all
    }

    fn run(step: &Arc<dyn Blocked>, inputs: &[Vec<f32>], count: usize) -> Vec<f32> {
        let mut out = vec![f32::INFINITY; count];
        let mut arrays: Vec<*mut u8> = inputs.iter().map(|input| input.as_ptr().cast_mut().cast()).collect();
        arrays.push(out.as_mut_ptr().cast());
        let none = std::ptr::null_mut();
        for block in 0..step.blocks() {
            // SAFETY: operands have the sizes that the step was made for, and it asks for no scratch memory.
            assert!(unsafe { step.run_block(&arrays, none, block) }.is_ok());
        }
        out
    }

    /// Checks the step of each way in which its first operand and its last may lie, and how many there are.
    fn check(step: &Arc<dyn Blocked>, inputs: &[Vec<f32>], lanes: [Lanes; 2], count: usize) {
        let wanted = run(step, inputs, count);
        for (first, last) in [(true, true), (true, false), (false, true)] {
            let [first, last] = [first.then_some(lanes[0]), last.then_some(lanes[1])];
            let mut operands = vec![None; inputs.len() + 1];
            (operands[0], operands[inputs.len()]) = (first, last);
            let found = step.in_lanes(&operands).expect("a twin");
            let mut inputs = inputs.to_vec();
            inputs[0] = laid_out(&inputs[0], first);
            let (found, wanted) = (run(&found, &inputs, count), laid_out(&wanted, last));
            assert!(found.iter().zip(&wanted).all(|(one, other)| one.to_bits() == other.to_bits()));
            let liked = step.likes(&operands);
            assert_eq!((liked[0], liked[inputs.len()]), (Some(lanes[0]), Some(lanes[1])));
        }
        let other = Lanes { inner: lanes[0].inner + 1, ..lanes[0] };
        let mut operands = vec![None; inputs.len() + 1];
        operands[0] = Some(other);
        assert!(step.in_lanes(&operands).is_none());
        operands[0] = Some(Lanes { width: 5, ..lanes[0] });
        assert!(step.in_lanes(&operands).is_none());
    }

    #[test]
    fn pooling_gives_the_same_bits() {
        let windows = [
            ([1, 6, 8], [1, 2, 2], [1, 2, 2], [0, 0, 0], [1, 3, 4]),
            ([1, 7, 9], [1, 3, 3], [1, 2, 2], [0, 1, 1], [1, 4, 5]),
            ([3, 4, 5], [2, 3, 2], [1, 2, 3], [1, 1, 0], [4, 2, 2]),
        ];
        for (lengths, kernel, stride, before, counts) in windows {
            let window = Window { lengths, kernel, stride, before, dilation: [1; 3], counts };
            let padded = std::array::from_fn(|axis| lengths[axis] + 2 * before[axis]);
            for (pool, reach) in [(Pool::Largest, None), (Pool::Mean, None), (Pool::Mean, Some(padded))] {
                for width in [4, 8, 16] {
                    let own = Pooling { pool, planes: 32, window, reach };
                    let data = numbers(32 * window.channel(), width);
                    let lanes = [window.channel(), window.total()].map(|inner| Lanes { width, inner });
                    let step = own.step(DType::Float32).expect("a step");
                    check(&step, &[data], lanes, 32 * window.total());
                }
            }
        }
        let window = Window {
            lengths: [1, 2, 2],
            kernel: [1; 3],
            stride: [1; 3],
            before: [0; 3],
            dilation: [1; 3],
            counts: [1, 2, 2],
        };
        let step = Pooling { pool: Pool::ToMean, planes: 16, window, reach: None }.step(DType::Float32);
        let lanes = Some(Lanes { width: 16, inner: 4 });
        assert!(step.expect("a step").in_lanes(&[lanes, lanes]).is_none());
    }

    #[test]
    fn normalisation_gives_the_same_bits() {
        for (outer, inner) in [(3, 35), (1, 130)] {
            let own = Channels { what: Channelwise::Normal, outer, channels: 48, inner, eps: 1e-3 };
            let vector = |seed: usize| {
                numbers(48, seed).iter().map(|value| if value.is_finite() { value.abs() } else { 1.0 }).collect()
            };
            let inputs = [numbers(outer * 48 * inner, 1), vector(2), vector(3), vector(4), vector(5)];
            for rectified in [false, true] {
                let step = own.followed(DType::Float32, rectified).expect("a step");
                for width in [4, 8, 16] {
                    check(&step, &inputs, [Lanes { width, inner }; 2], outer * 48 * inner);
                }
            }
        }
    }
}
