//! Windows over the spatial axes of data: always three axes, the first possibly of length 1.

/// Windows over data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// The lengths of the data's axes.
    pub lengths: [usize; 3],
    /// The lengths of a window.
    pub kernel: [usize; 3],
    /// How far windows are apart.
    pub stride: [usize; 3],
    /// How far the first one begins before the data.
    pub before: [usize; 3],
    /// How far elements of a window are apart.
    pub dilation: [usize; 3],
    /// How many windows there are along each axis.
    pub counts: [usize; 3],
}

impl Window {
    /// How many windows there are.
    #[must_use]
    pub fn total(&self) -> usize {
        self.counts.iter().product()
    }

    /// How many elements a window has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.kernel.iter().product()
    }

    /// How many elements a channel of the data has.
    #[must_use]
    pub fn channel(&self) -> usize {
        self.lengths.iter().product()
    }

    /// Whether each window is one element, and they are all.
    pub(crate) fn is_identity(&self) -> bool {
        self.kernel == [1; 3] && self.stride == [1; 3] && self.before == [0; 3] && self.counts == self.lengths
    }

    /// Where the element at a place in a window lies along an axis, if that is in the data.
    #[inline]
    pub(crate) fn at(&self, axis: usize, window: usize, place: usize) -> Option<usize> {
        let at = (window * self.stride[axis] + place * self.dilation[axis]).checked_sub(self.before[axis])?;
        (at < self.lengths[axis]).then_some(at)
    }

    /// The windows along the last axis, among those of a range, with their element at a place in the data.
    pub(crate) fn inside(&self, place: usize, from: usize, to: usize) -> (usize, usize) {
        let (stride, apart) = (self.stride[2], place * self.dilation[2]);
        let first = self.before[2].saturating_sub(apart).div_ceil(stride);
        let reach = (self.lengths[2] + self.before[2]).saturating_sub(apart);
        let last = reach.div_ceil(stride);
        let first = first.clamp(from, to);
        (first, last.clamp(first, to))
    }

    /// The row of windows of this number: places along the first two axes.
    pub(crate) fn row(&self, number: usize) -> [usize; 2] {
        [number / self.counts[1], number % self.counts[1]]
    }

    /// Calls with each place in a window, and its number.
    pub(crate) fn each_place(&self, mut body: impl FnMut(usize, [usize; 3])) {
        let mut number = 0;
        for first in 0..self.kernel[0] {
            for second in 0..self.kernel[1] {
                for third in 0..self.kernel[2] {
                    body(number, [first, second, third]);
                    number += 1;
                }
            }
        }
    }
}
