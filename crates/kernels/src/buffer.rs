//! Memory of a thread, and slices behind the pointers of arrays.

use std::cell::RefCell;

/// Plain numbers.
///
/// # Safety
///
/// Any bytes are a value of the type, and it is no more aligned than words are.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: all bits are a number.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}

thread_local! {
    /// Kept from block to block: at most a few times the size of a cache.
    static OWN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Calls with so many elements of this thread's, of any value.
pub(crate) fn with_own<T: Plain, R>(count: usize, body: impl FnOnce(&mut [T]) -> R) -> R {
    OWN.with_borrow_mut(|memory| {
        let words = (count * size_of::<T>()).div_ceil(size_of::<u64>());
        if memory.len() < words {
            memory.resize(words, 0);
        }
        // SAFETY: the elements are in the words, aligned, and any bytes are such numbers.
        body(unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<T>(), count) })
    })
}

/// The elements that an operand points to.
///
/// # Safety
///
/// There are so many, and they are not written to for as long as the slice is used.
pub(crate) unsafe fn slice<'a, T>(start: *mut u8, from: usize, count: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start.cast::<T>().add(from), count) }
}

/// The same, to be written.
///
/// # Safety
///
/// As for [`prim@slice`]; they are the caller's alone.
pub(crate) unsafe fn slice_mut<'a, T>(start: *mut u8, from: usize, count: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(start.cast::<T>().add(from), count) }
}
