//! Descriptions of memory, and memory of a thread.

use crate::library::Library;
use crate::sys::{ANY, Dims, F32, Handle, SUCCESS, query};
use std::cell::RefCell;
use std::ffi::c_int;
use std::ptr;

/// A description of memory.
pub(crate) struct Description {
    pub(crate) handle: Handle,
    library: &'static Library,
}

// SAFETY: a description does not change.
unsafe impl Send for Description {}
// SAFETY: as above.
unsafe impl Sync for Description {}

impl Description {
    /// Of a dense array.
    pub(crate) fn plain(library: &'static Library, lengths: &[usize]) -> Result<Self, i32> {
        Self::dense(library, lengths, (0..lengths.len()).rev())
    }

    /// Of dense data with its channels, along the second axis, side by side: element by element.
    pub(crate) fn channels_last(library: &'static Library, lengths: &[usize]) -> Result<Self, i32> {
        Self::dense(library, lengths, [1].into_iter().chain((2..lengths.len()).rev()).chain([0]))
    }

    /// Of a dense array with its axes in this order, the closest elements first.
    fn dense(library: &'static Library, lengths: &[usize], axes: impl Iterator<Item = usize>) -> Result<Self, i32> {
        let (dims, count) = dims(lengths);
        let mut strides: Dims = [0; 12];
        let mut step = 1;
        for axis in axes {
            strides[axis] = step;
            step *= i64::try_from(lengths[axis]).unwrap_or(i64::MAX).max(1);
        }
        let mut handle = ptr::null_mut();
        // SAFETY: both arrays have twelve numbers, and `count` are read; the handle is written to.
        let status = unsafe {
            (library.functions.desc_with_strides)(&raw mut handle, count, dims.as_ptr(), F32, strides.as_ptr())
        };
        Self::made(library, handle, status)
    }

    /// Of the library's own choice of layout.
    pub(crate) fn any(library: &'static Library, lengths: &[usize]) -> Result<Self, i32> {
        let (dims, count) = dims(lengths);
        let mut handle = ptr::null_mut();
        // SAFETY: as above.
        let status = unsafe { (library.functions.desc_with_tag)(&raw mut handle, count, dims.as_ptr(), F32, ANY) };
        Self::made(library, handle, status)
    }

    /// A copy of one that the library lends.
    pub(crate) fn lent(library: &'static Library, lent: Handle) -> Result<Self, i32> {
        let mut handle = ptr::null_mut();
        // SAFETY: the description that is lent lives; the handle is written to.
        let status = unsafe { (library.functions.desc_clone)(&raw mut handle, lent) };
        Self::made(library, handle, status)
    }

    fn made(library: &'static Library, handle: Handle, status: i32) -> Result<Self, i32> {
        if status == SUCCESS { Ok(Self { handle, library }) } else { Err(status) }
    }

    pub(crate) fn bytes(&self) -> usize {
        // SAFETY: the description lives.
        unsafe { (self.library.functions.desc_size)(self.handle) }
    }

    fn number(&self, what: c_int) -> Option<c_int> {
        let mut found: c_int = 0;
        // SAFETY: the description lives, and the answer is such a number.
        let status = unsafe { (self.library.functions.desc_query)(self.handle, what, (&raw mut found).cast()) };
        (status == SUCCESS).then_some(found)
    }

    fn numbers(&self, what: c_int) -> Option<Dims> {
        let mut found: *const Dims = ptr::null();
        // SAFETY: the description lives, and the answer is twelve numbers, which it lends.
        unsafe {
            let status = (self.library.functions.desc_query)(self.handle, what, (&raw mut found).cast());
            if status == SUCCESS { found.as_ref().copied() } else { None }
        }
    }

    /// How many channels lie side by side, element by element, in data of these lengths: batch, channels, spatial axes.
    /// Nothing if they lie otherwise, or are filled up.
    pub(crate) fn lanes(&self, lengths: &[usize]) -> Option<usize> {
        let rank = usize::try_from(self.number(query::RANK)?).ok()?;
        let (padded, strides) = (self.numbers(query::PADDED)?, self.numbers(query::STRIDES)?);
        let width = match self.number(query::BLOCKS)? {
            0 if strides[1] == 1 => lengths[1],
            1 if self.numbers(query::BLOCK_AXES)?[0] == 1 => {
                usize::try_from(self.numbers(query::BLOCK_LENGTHS)?[0]).ok()?
            }
            _ => return None,
        };
        if rank != lengths.len() || width < 2 {
            return None;
        }
        let mut step = width;
        for axis in (0..rank).rev() {
            let length = if axis == 1 { lengths[1] / width } else { lengths[axis] };
            let fits = |found: i64, wanted: usize| usize::try_from(found) == Ok(wanted);
            if !fits(padded[axis], lengths[axis]) || (length > 1 && !fits(strides[axis], step)) {
                return None;
            }
            step *= length;
        }
        Some(width)
    }

    /// Whether no axis lies in blocks.
    pub(crate) fn is_without_blocks(&self) -> bool {
        self.number(query::BLOCKS) == Some(0)
    }

    /// Whether there are more channels, along the second axis, than data of these lengths have.
    pub(crate) fn is_filled_up(&self, lengths: &[usize]) -> bool {
        self.numbers(query::PADDED).is_some_and(|padded| usize::try_from(padded[1]) != Ok(lengths[1]))
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        // SAFETY: both live.
        unsafe { (self.library.functions.desc_equal)(self.handle, other.handle) != 0 }
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        // SAFETY: it is not shared.
        unsafe { (self.library.functions.desc_destroy)(self.handle) };
    }
}

/// Lengths as the library takes them, and how many there are.
pub(crate) fn dims(lengths: &[usize]) -> (Dims, i32) {
    let mut found: Dims = [0; 12];
    for (to, &length) in found.iter_mut().zip(lengths) {
        *to = i64::try_from(length).unwrap_or(i64::MAX);
    }
    (found, i32::try_from(lengths.len()).unwrap_or(0))
}

/// Where parts of a thread's memory begin.
pub(crate) const ALIGN: usize = 64;

thread_local! {
    static OWN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Calls with memory of this thread's: a part of each of these sizes.
pub(crate) fn with_own<const N: usize, R>(sizes: [usize; N], body: impl FnOnce([*mut u8; N]) -> R) -> R {
    OWN.with_borrow_mut(|memory| {
        let total: usize = sizes.iter().map(|size| size.next_multiple_of(ALIGN)).sum::<usize>() + ALIGN;
        let words = total.div_ceil(size_of::<u64>());
        if memory.len() < words {
            memory.resize(words, 0);
        }
        let start = memory.as_mut_ptr().cast::<u8>();
        let mut at = start.align_offset(ALIGN);
        body(sizes.map(|size| {
            let part = start.wrapping_add(at);
            at += size.next_multiple_of(ALIGN);
            part
        }))
    })
}
