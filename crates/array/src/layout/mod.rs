//! Where the elements of an array lie in its buffer.

mod scalar;

pub(crate) use scalar::Element;
pub use scalar::Scalar;

use crate::ArrayError;
use smallvec::SmallVec;
use std::ops::Range;
pub use weft_shape::DType;
use weft_shape::{broadcast_into, broadcast_length};

/// Lengths of the axes.
pub type Shape = SmallVec<[usize; 4]>;
/// Bytes from one element to the next along each axis.
pub type Strides = SmallVec<[isize; 4]>;

/// Shape, strides and the place of the first element, in bytes from the start of the buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// Lengths of the axes.
    pub shape: Shape,
    /// Bytes from one element to the next along each axis.
    pub strides: Strides,
    /// Bytes before the first element.
    pub offset: usize,
}

impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Self {
        Self { shape: copied(&self.shape), strides: copied(&self.strides), offset: self.offset }
    }
}

/// The same numbers. Up to four are copied one by one, because a vector's own clone takes several times as long.
#[inline]
fn copied<T: Copy + Default>(numbers: &[T]) -> SmallVec<[T; 4]> {
    let mut few = [T::default(); 4];
    if numbers.len() > few.len() {
        return SmallVec::from_slice(numbers);
    }
    for (to, from) in few.iter_mut().zip(numbers) {
        *to = *from;
    }
    SmallVec::from_buf_and_len(few, numbers.len())
}

/// So many zeros. Up to four are there at once.
#[inline]
fn zeros(count: usize) -> Strides {
    if count > 4 { Strides::from_elem(0, count) } else { Strides::from_buf_and_len([0; 4], count) }
}

impl Layout {
    /// Row after row, from the buffer's start.
    pub fn contiguous(shape: &[usize], item: usize) -> Result<Self, ArrayError> {
        let shape = copied(shape);
        let too_large = || ArrayError::TooLarge { shape: shape.to_vec(), item };
        let (mut strides, mut step) = (zeros(shape.len()), item);
        for (stride, &length) in strides.iter_mut().zip(&shape).rev() {
            *stride = isize::try_from(step).map_err(|_| too_large())?;
            // An axis of length 0 must not hide that the others are too long.
            step = step.checked_mul(length.max(1)).ok_or_else(too_large)?;
        }
        isize::try_from(step).map_err(|_| too_large())?;
        Ok(Self { shape, strides, offset: 0 })
    }

    /// Whether it has the other one's shape. Axes are few, and compared one by one.
    #[must_use]
    #[inline]
    pub fn is_shaped_like(&self, other: &Self) -> bool {
        self.shape.len() == other.shape.len() && self.shape.iter().zip(&other.shape).all(|(own, other)| own == other)
    }

    /// Number of elements.
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the elements lie row after row without gaps.
    #[must_use]
    pub fn is_contiguous(&self, item: usize) -> bool {
        let mut step = item;
        for (&stride, &length) in self.strides.iter().zip(&self.shape).rev() {
            if length == 0 {
                return true;
            }
            if length != 1 {
                if stride.unsigned_abs() != step || stride < 0 {
                    return false;
                }
                step *= length;
            }
        }
        true
    }

    /// Whether the elements, in some order, fill every byte between the first and the last exactly once.
    #[must_use]
    pub fn is_dense(&self, item: usize) -> bool {
        let axes = self.strides.iter().zip(&self.shape).filter(|(_, length)| **length != 1);
        let mut axes: SmallVec<[(usize, usize); 4]> = axes.map(|(stride, &n)| (stride.unsigned_abs(), n)).collect();
        axes.sort_unstable();
        let mut step = item;
        for (stride, length) in axes {
            if stride != step {
                return false;
            }
            step = step.saturating_mul(length);
        }
        true
    }

    /// The bytes that the elements reach, in numbers wider than `usize`: the layout may be unchecked.
    fn reach(&self, item: usize) -> (i128, i128) {
        let (mut start, mut end) = (self.offset as i128, self.offset as i128);
        if self.shape.contains(&0) {
            return (start, start);
        }
        for (&stride, &length) in self.strides.iter().zip(&self.shape) {
            let far = stride as i128 * (length as i128 - 1);
            if far < 0 { start += far } else { end += far }
        }
        (start, end + item as i128)
    }

    /// The bytes that the elements reach. The layout was accepted by [`check`](Self::check).
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked when the view was made
    pub fn range(&self, item: usize) -> Range<usize> {
        let (start, end) = self.reach(item);
        start as usize..end as usize
    }

    /// Number of elements. Refuses more bytes than memory can have: a view may name one byte many times.
    pub(crate) fn checked_size(&self, item: usize) -> Result<usize, ArrayError> {
        let bytes = self.shape.iter().try_fold(item.max(1), |bytes, &length| bytes.checked_mul(length.max(1)));
        if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return Err(ArrayError::TooLarge { shape: self.shape.to_vec(), item });
        }
        Ok(self.size())
    }

    /// Refuses a layout that reaches outside a buffer of this many bytes, or has too many elements to count.
    pub fn check(&self, item: usize, bytes: usize) -> Result<(), ArrayError> {
        self.checked_size(item)?;
        self.check_reach(item, bytes)
    }

    /// Refuses a layout that reaches outside. Its elements were counted before.
    pub(crate) fn check_reach(&self, item: usize, bytes: usize) -> Result<(), ArrayError> {
        let (start, end) = self.reach(item);
        if start < 0 || end > bytes as i128 { Err(ArrayError::OutOfBounds { start, end, bytes }) } else { Ok(()) }
    }

    /// The strides with which the elements are read as an array of a broadcast shape.
    pub fn broadcast(&self, to: &[usize]) -> Result<Strides, ArrayError> {
        let refuse = || ArrayError::Broadcast { from: self.shape.to_vec(), to: to.to_vec() };
        let missing = to.len().checked_sub(self.shape.len()).ok_or_else(refuse)?;
        let mut strides = Strides::from_elem(0, to.len());
        for axis in 0..self.shape.len() {
            let (from, to) = (self.shape[axis], to[missing + axis]);
            if broadcast_length(from, to) != Some(to) {
                return Err(refuse());
            }
            if from == to {
                strides[missing + axis] = self.strides[axis];
            }
        }
        Ok(strides)
    }
}

/// The broadcast shape of two shapes.
#[must_use]
#[inline]
pub fn broadcast_shapes(one: &[usize], other: &[usize]) -> Option<Shape> {
    let (long, short) = if one.len() < other.len() { (other, one) } else { (one, other) };
    let mut shape = Shape::from_slice(long);
    broadcast_into(&mut shape, short).then_some(shape)
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn contiguous_layouts_are_known() {
        let layout = Layout::contiguous(&[2, 3, 4], 8).unwrap();
        assert_eq!(layout.strides[..], [96, 32, 8]);
        assert!(layout.is_contiguous(8));
        assert_eq!(layout.range(8), 0..192);
        assert!(Layout::contiguous(&[0, usize::MAX, 2], 8).is_err(), "too large in spite of the 0");
        assert!(Layout::contiguous(&[], 8).unwrap().is_contiguous(8));
    }

    #[test]
    fn dense_layouts_are_known() {
        let dense = |shape: &[usize], strides: &[isize]| {
            Layout { shape: shape.into(), strides: strides.into(), offset: 100 }.is_dense(4)
        };
        for (shape, strides) in
            [([3, 2], [8, 4]), ([2, 3], [4, 8]), ([3, 2], [-8, -4]), ([3, 1], [4, 100]), ([1, 2], [0, -4])]
        {
            assert!(dense(&shape, &strides), "{shape:?} {strides:?}");
        }
        for (shape, strides) in [
            ([3, 2], [12, 4]),
            ([3, 2], [4, 4]),
            ([3, 2], [0, 4]),
            ([3, 2], [8, 8]),
            ([2, 1], [8, 4]),
            ([2, 2], [4, 12]),
        ] {
            assert!(!dense(&shape, &strides), "{shape:?} {strides:?}");
        }
    }

    #[test]
    fn views_stay_inside() {
        let backwards = Layout { shape: [5].as_slice().into(), strides: [-8].as_slice().into(), offset: 32 };
        assert_eq!(backwards.range(8), 0..40);
        assert!(backwards.check(8, 40).is_ok());
        assert!(backwards.check(8, 39).is_err());
        let below = Layout { offset: 24, ..backwards };
        assert!(below.check(8, 40).is_err());
    }

    #[test]
    fn sizes_do_not_wrap() {
        let repeated = |shape: &[usize]| {
            let strides = std::iter::repeat_n(0, shape.len()).collect();
            Layout { shape: shape.into(), strides, offset: 0 }.check(8, 8)
        };
        assert!(repeated(&[1 << 30, 1 << 29]).is_ok(), "2^62 bytes, all at one place");
        for shape in [&[1 << 32, 1 << 32][..], &[1 << 30, 1 << 30], &[usize::MAX], &[0, 1 << 32, 1 << 32]] {
            assert!(repeated(shape).is_err(), "{shape:?}");
        }
        let far =
            Layout { shape: [1 << 62; 16].as_slice().into(), strides: [1 << 62; 16].as_slice().into(), offset: 0 };
        assert!(far.check(8, 8).is_err(), "what it reaches is beyond all numbers");
    }

    #[test]
    fn broadcasting_repeats() {
        let row = Layout::contiguous(&[3], 4).unwrap();
        assert_eq!(row.broadcast(&[2, 3]).unwrap()[..], [0, 4]);
        assert!(row.broadcast(&[3, 2]).is_err());
        assert!(Layout::contiguous(&[2, 3], 4).unwrap().broadcast(&[3]).is_err());
    }
}
