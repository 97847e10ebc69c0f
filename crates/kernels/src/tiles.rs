//! Pooling of windows of two by two elements, side by side: many at a time, as vectors, without a branch.

use crate::number::{Number, is_larger, larger};
use crate::window::Window;
use std::ops::Range;

/// Windows that are computed at a time.
const TILES: usize = 64;

/// Such windows in one channel.
pub(crate) struct Tiles {
    lines: usize,
    columns: usize,
    /// Elements of a row of the data.
    width: usize,
    /// Lines of windows of a plane, and elements of that.
    plane: (usize, usize),
    /// Whether each element of the data is in a window.
    covers: bool,
}

/// The four elements of each window: the first is above and left, the last below and right.
type Four<T> = [[T; TILES]; 4];

impl Tiles {
    /// The windows, if they are such, all of them in the data.
    pub(crate) fn of(window: &Window) -> Option<Self> {
        let fits = |axis: usize| window.stride[axis] == 2 && window.counts[axis] * 2 <= window.lengths[axis];
        let flat = window.stride[0] == 1 || window.lengths[0] == 1;
        let tiled = window.kernel == [1, 2, 2] && window.before == [0; 3] && flat && fits(1) && fits(2);
        tiled.then(|| Self {
            lines: window.counts[0] * window.counts[1],
            columns: window.counts[2],
            width: window.lengths[2],
            plane: (window.counts[1], window.lengths[1] * window.lengths[2]),
            covers: window.channel() == 4 * window.total(),
        })
    }

    /// Where the upper and the lower elements of some windows of a line are.
    fn rows(&self, line: usize, columns: &Range<usize>) -> [Range<usize>; 2] {
        let (lines, plane) = self.plane;
        let start = line / lines * plane + 2 * (line % lines) * self.width;
        [start, start + self.width].map(|start| start + 2 * columns.start..start + 2 * columns.end)
    }

    /// Calls with each few lines and some of their columns: not more windows than are computed at a time.
    fn each(&self, mut body: impl FnMut(Range<usize>, Range<usize>)) {
        for from in (0..self.columns).step_by(TILES) {
            let columns = from..self.columns.min(from + TILES);
            for first in (0..self.lines).step_by(TILES / columns.len()) {
                body(first..self.lines.min(first + TILES / columns.len()), columns.clone());
            }
        }
    }

    /// Brings the elements of windows together.
    fn gather<T: Number>(&self, data: &[T], lines: &Range<usize>, columns: &Range<usize>, to: &mut Four<T>) {
        let [a, b, c, d] = to;
        for (number, line) in lines.clone().enumerate() {
            let [upper, lower] = self.rows(line, columns);
            let place = number * columns.len()..(number + 1) * columns.len();
            for (row, left, right) in [(upper, &mut *a, &mut *b), (lower, &mut *c, &mut *d)] {
                let to = left[place.clone()].iter_mut().zip(&mut right[place.clone()]);
                for ((left, right), pair) in to.zip(data[row].chunks_exact(2)) {
                    (*left, *right) = (pair[0], pair[1]);
                }
            }
        }
    }

    /// Puts them where they are in the data.
    fn scatter<T: Number>(&self, from: &Four<T>, lines: &Range<usize>, columns: &Range<usize>, data: &mut [T]) {
        let [a, b, c, d] = from;
        for (number, line) in lines.clone().enumerate() {
            let [upper, lower] = self.rows(line, columns);
            let place = number * columns.len()..(number + 1) * columns.len();
            for (row, left, right) in [(upper, a, b), (lower, c, d)] {
                let from = left[place.clone()].iter().zip(&right[place.clone()]);
                for ((left, right), pair) in from.zip(data[row].chunks_exact_mut(2)) {
                    (pair[0], pair[1]) = (*left, *right);
                }
            }
        }
    }

    /// The largest element of each window.
    pub(crate) fn largest<T: Number>(&self, data: &[T], out: &mut [T]) {
        for (line, out) in out.chunks_exact_mut(self.columns.max(1)).enumerate() {
            let [upper, lower] = self.rows(line, &(0..self.columns)).map(|row| data[row].chunks_exact(2));
            for ((to, upper), lower) in out.iter_mut().zip(upper).zip(lower) {
                *to = larger(larger(larger(upper[0], upper[1]), lower[0]), lower[1]);
            }
        }
    }

    /// Gradients to where the largest elements are, and zeros to the others.
    pub(crate) fn to_largest<T: Number>(&self, grads: &[T], data: &[T], out: &mut [T]) {
        if !self.covers {
            out.fill(T::ZERO);
        }
        let (mut four, mut found, mut given) = ([[T::ZERO; TILES]; 4], [[T::ZERO; TILES]; 4], [T::ZERO; TILES]);
        self.each(|lines, columns| {
            self.gather(data, &lines, &columns, &mut four);
            for (line, to) in lines.clone().zip(given.chunks_exact_mut(columns.len())) {
                to.copy_from_slice(&grads[line * self.columns..][columns.clone()]);
            }
            let ([a, b, c, d], [to_a, to_b, to_c, to_d]) = (&four, &mut found);
            for at in 0..TILES {
                let second = is_larger(b[at], a[at]);
                let best = larger(a[at], b[at]);
                let third = is_larger(c[at], best);
                let fourth = is_larger(d[at], larger(best, c[at]));
                // The last of those that were larger has it.
                let left = if fourth { T::ZERO } else { given[at] };
                to_d[at] = if fourth { given[at] } else { T::ZERO };
                to_c[at] = if third { left } else { T::ZERO };
                let left = if third { T::ZERO } else { left };
                to_b[at] = if second { left } else { T::ZERO };
                to_a[at] = if second { T::ZERO } else { left };
            }
            self.scatter(&found, &lines, &columns, out);
        });
    }
}
