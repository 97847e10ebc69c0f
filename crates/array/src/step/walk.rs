//! Walks of loops over operands of any layout.

use super::kernel::{OPERANDS, StridedLoop, signed};
use smallvec::SmallVec;
use std::ops::Range;

/// An innermost axis of at most this many elements changes places with a longer one.
const VERY_SHORT: usize = 16;
/// Elements of operands at most that fit a core's cache together.
const CACHED: usize = 32_768;
/// Elements of an operand at most that lie inside of a part of an axis.
const BLOCK: usize = 4096;
/// The cost of a step from line to line within the cache, in bytes read, about.
const LINE: usize = 24;
/// Nanoseconds for a call of a loop.
const ROW: usize = 8;
/// Picoseconds for a byte read or written.
pub(crate) const PER_BYTE: usize = 20;

/// A walk over operands of one common shape, with as few axes as possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Lengths of the axes, the outermost first; at least one.
    pub(crate) shape: SmallVec<[usize; 2]>,
    /// By axis, then by operand.
    steps: SmallVec<[isize; 6]>,
    operands: usize,
}

impl Walk {
    /// A walk over operands with these strides, with the output's first axis outermost if the order is free.
    ///
    /// `strides` holds those of each operand, all as long as `shape`; the last operand is the (first) output.
    pub(crate) fn new(shape: &[usize], strides: &[&[isize]]) -> Self {
        let operands = strides.len();
        if let ([length], true) = (shape, operands <= 3) {
            let steps = strides.iter().map(|strides| strides[0]).collect();
            return Self { shape: [*length].as_slice().into(), steps, operands };
        }
        let mut axes: SmallVec<[usize; 4]> = (0..shape.len()).filter(|&axis| shape[axis] != 1).collect();
        if let Some(output) = strides.last() {
            // The output's order in memory, by a stable sort, so that C order stays for equal strides.
            axes.sort_by_key(|&axis| std::cmp::Reverse(output[axis].unsigned_abs()));
        }
        let mut walk = Self { shape: SmallVec::new(), steps: SmallVec::new(), operands };
        for axis in axes {
            let length = shape[axis];
            let last = walk.shape.len().checked_sub(1);
            let merges = last.is_some_and(|last| {
                (0..operands).all(|operand| {
                    let outer = walk.steps[last * operands + operand];
                    isize::try_from(length).ok().and_then(|length| strides[operand][axis].checked_mul(length))
                        == Some(outer)
                })
            });
            match last {
                Some(last) if merges => {
                    walk.shape[last] *= length;
                    for (step, strides) in walk.steps[last * operands..].iter_mut().zip(strides) {
                        *step = strides[axis];
                    }
                }
                _ => {
                    walk.shape.push(length);
                    walk.steps.extend(strides.iter().map(|strides| strides[axis]));
                }
            }
        }
        if walk.shape.is_empty() {
            walk.shape.push(1);
            walk.steps.extend(std::iter::repeat_n(0, operands));
        }
        walk
    }

    /// A walk over contiguous operands of `items` bytes an element; 0 for one element that is the same for all.
    #[inline]
    pub(crate) fn flat(size: usize, items: &[u8]) -> Self {
        let steps = items.iter().map(|&item| isize::from(item)).collect();
        Self { shape: SmallVec::from_slice(&[size]), steps, operands: items.len() }
    }

    /// Number of elements.
    pub(crate) fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// The same walk with a longer axis innermost, if the innermost one is very short: calls of a loop cost more than
    /// steps from line to line, as long as these stay in the cache. This changes the order of the elements.
    pub(crate) fn lengthened(mut self) -> Self {
        let inner = self.shape.len() - 1;
        if inner == 0 || self.shape[inner] > VERY_SHORT {
            return self;
        }
        let Some(longest) = (0..inner).max_by_key(|&axis| self.shape[axis]) else { return self };
        if self.shape[longest] < 4 * self.shape[inner] {
            return self;
        }
        if self.size() > CACHED {
            self.in_blocks(longest);
            return self;
        }
        self.shape.swap(longest, inner);
        for operand in 0..self.operands {
            self.steps.swap(longest * self.operands + operand, inner * self.operands + operand);
        }
        self
    }

    /// Makes a part of an axis the innermost one, so that all that lies inside of the part stays in the cache.
    fn in_blocks(&mut self, axis: usize) {
        let (length, size) = (self.shape[axis], self.size());
        let inside: usize = self.shape[axis + 1..].iter().product();
        let fewest = length.div_ceil((BLOCK / inside).max(1)).max(2);
        // Parts of one length alone are a walk. To look for them takes a small part of the walk's own time.
        let found = (fewest..fewest + size / 256)
            .take_while(|&blocks| length / blocks >= 4 * VERY_SHORT)
            .find(|&blocks| length.is_multiple_of(blocks));
        let Some(blocks) = found else { return };
        let (part, at) = (length / blocks, axis * self.operands);
        self.shape[axis] = blocks;
        self.shape.push(part);
        for operand in 0..self.operands {
            let step = self.steps[at + operand];
            self.steps.push(step);
            self.steps[at + operand] = step.wrapping_mul(signed(part)); // to an element of the operand
        }
    }

    /// Nanoseconds for a loop, about, given its picoseconds for an element besides those for its bytes.
    #[inline]
    pub(crate) fn nanoseconds(&self, effort: usize) -> usize {
        let moved: usize = self.inner_steps().iter().map(|step| step.unsigned_abs().min(LINE)).sum();
        let size = self.size();
        let rows = size / self.shape[self.shape.len() - 1].max(1);
        rows.saturating_mul(ROW).saturating_add(size.saturating_mul(effort + moved * PER_BYTE) / 1000)
    }

    /// Elements for each step along the outermost axis.
    pub(crate) fn row(&self) -> usize {
        self.shape[1..].iter().product()
    }

    /// Bytes from one element to the next along the innermost axis, by operand.
    pub(crate) fn inner_steps(&self) -> &[isize] {
        &self.steps[self.steps.len() - self.operands..]
    }

    /// Bytes from one element of the operand to the next along the axis.
    pub(crate) fn step(&self, axis: usize, operand: usize) -> isize {
        self.steps[axis * self.operands + operand]
    }

    /// Calls the loop over a part of the outermost axis.
    ///
    /// # Safety
    ///
    /// As for [`StridedLoop::call`], for all elements of the part.
    pub(crate) unsafe fn run(&self, kernel: &StridedLoop, pointers: &[*mut u8], part: Range<usize>) {
        self.rows(pointers, part, |row, length, steps| {
            // SAFETY: the caller's promise.
            unsafe { kernel.call(row, &[signed(length)], steps) };
        });
    }

    /// Calls `visit` with pointers to each element of the operands.
    pub(crate) fn each(&self, pointers: &[*mut u8], mut visit: impl FnMut(&[*mut u8])) {
        self.each_row(pointers, |row, length, steps| {
            let mut at = [std::ptr::null_mut(); OPERANDS];
            let at = &mut at[..row.len()];
            at.copy_from_slice(row);
            for _ in 0..length {
                visit(at);
                for (pointer, step) in at.iter_mut().zip(steps) {
                    *pointer = pointer.wrapping_offset(*step);
                }
            }
        });
    }

    /// Calls `visit` for each row along the innermost axis, with pointers to its first elements, its length and its
    /// steps.
    #[inline]
    pub(crate) fn each_row(&self, pointers: &[*mut u8], visit: impl FnMut(&[*mut u8], usize, &[isize])) {
        self.rows(pointers, 0..self.shape[0], visit);
    }

    /// Calls `visit` for each row of a part of the outermost axis. Short rows leave room for little code around them.
    #[inline]
    fn rows(&self, pointers: &[*mut u8], part: Range<usize>, mut visit: impl FnMut(&[*mut u8], usize, &[isize])) {
        if part.is_empty() || self.shape[1..].contains(&0) {
            return;
        }
        let (operands, inner) = (self.operands, self.shape.len() - 1);
        let mut at = [std::ptr::null_mut::<u8>(); OPERANDS];
        let at = &mut at[..operands];
        for ((pointer, first), step) in at.iter_mut().zip(pointers).zip(&self.steps) {
            *pointer = first.wrapping_offset(step.wrapping_mul(signed(part.start)));
        }
        let steps = self.inner_steps();
        if inner == 0 {
            return visit(at, part.len(), steps);
        }
        let length = |axis: usize| if axis == 0 { part.len() } else { self.shape[axis] };
        let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, inner);
        loop {
            visit(at, self.shape[inner], steps);
            let mut axis = inner;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                let over = index[axis] == length(axis);
                let moved = if over { 1 - signed(length(axis)) } else { 1 };
                let steps = &self.steps[axis * operands..];
                for (pointer, step) in at.iter_mut().zip(steps) {
                    *pointer = pointer.wrapping_offset(step.wrapping_mul(moved));
                }
                if !over {
                    break;
                }
                index[axis] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Walk;
    use crate::DType;
    use crate::step::copy_loop;

    #[test]
    fn axes_merge_where_all_operands_allow_it() {
        let rows: [isize; 3] = [96, 32, 8];
        let walk = Walk::new(&[2, 3, 4], &[&rows, &rows]);
        assert_eq!((&walk.shape[..], walk.step(0, 0)), (&[24][..], 8));
        let columns: [isize; 3] = [8, 16, 48];
        let walk = Walk::new(&[2, 3, 4], &[&rows, &columns]);
        assert_eq!(walk.shape[..], [4, 3, 2], "in the output's order");
        let repeated: [isize; 2] = [0, 8];
        let walk = Walk::new(&[5, 4], &[&repeated, &[32, 8]]);
        assert_eq!(walk.shape[..], [5, 4]);
        assert_eq!(Walk::new(&[], &[&[], &[]]).size(), 1);
    }

    #[test]
    fn short_rows_become_long_ones_by_blocks() {
        let long = 40_000_isize;
        let walk = Walk::new(&[40_000, 2], &[&[16, 8], &[8, 0], &[16, 8]]).lengthened();
        assert_eq!(walk.shape[..], [20, 2, 2000]);
        assert_eq!(walk.inner_steps(), [16, 8, 16]);
        assert_eq!((walk.step(0, 1), walk.step(1, 1), walk.step(1, 2)), (8 * long / 20, 0, 8));
        assert_eq!(walk.size(), 80_000);
        let prime = Walk::new(&[39_989, 2], &[&[16, 8], &[8, 0], &[16, 8]]).lengthened();
        assert_eq!(prime.shape[..], [39_989, 2], "it has no parts of one length");
        let small = Walk::new(&[100, 2], &[&[16, 8], &[8, 0], &[16, 8]]).lengthened();
        assert_eq!(small.shape[..], [2, 100]);
        // Each element is visited once, and the pointers are where the strides say.
        let source: Vec<u32> = (0..40_000).collect();
        let mut target = vec![0_u32; 80_000];
        let walk = Walk::new(&[40_000, 2], &[&[4, 0], &[8, 4]]).lengthened();
        let pointers = [source.as_ptr().cast_mut().cast::<u8>(), target.as_mut_ptr().cast::<u8>()];
        let (outer, half) = (walk.shape[0], walk.shape[0] / 2);
        // SAFETY: one reaches 40,000 elements, the other twice as many.
        unsafe { walk.run(&copy_loop(DType::UInt32), &pointers, 0..half) };
        // SAFETY: as above.
        unsafe { walk.run(&copy_loop(DType::UInt32), &pointers, half..outer) };
        assert!((0_u32..).zip(&target).all(|(at, &value)| value == at / 2));
    }

    #[test]
    fn a_transposed_copy_is_right() {
        let source: Vec<u32> = (0..12).collect();
        let mut target = vec![0_u32; 12];
        let walk = Walk::new(&[4, 3], &[&[4, 16], &[12, 4]]);
        let pointers = [source.as_ptr().cast_mut().cast::<u8>(), target.as_mut_ptr().cast::<u8>()];
        let outer = walk.shape[0];
        // SAFETY: both reach 12 elements.
        unsafe { walk.run(&copy_loop(DType::UInt32), &pointers, 0..outer) };
        let expected: Vec<u32> = (0..4).flat_map(|row| (0..3).map(move |column| column * 4 + row)).collect();
        assert_eq!(target, expected);
    }
}
