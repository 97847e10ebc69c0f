//! Where all memory of Rust's comes from: mimalloc.
//!
//! Ops and variables are allocated by the thread that pushes and freed by the one that runs them, and aligned to cache
//! lines: the system's allocator takes several times as long for that.
//!
//! Nearly all requests need no more alignment than C's `malloc` gives, and are made without naming one. Where one is
//! named, mimalloc first looks for a block that happens to lie right, and for most sizes takes a larger one.

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};

pub(crate) struct Allocator;

/// The alignment of blocks that are at least as large, on all that have 64 bits.
const PLAIN: usize = 16;

const fn is_plain(align: usize, size: usize) -> bool {
    align <= align_of::<usize>() || (align <= PLAIN && align <= size)
}

// SAFETY: blocks are mimalloc's, of that size at least, and each is aligned to a word or as asked for; it unwinds never.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size();
        // SAFETY: the alignment is a power of two.
        let block = unsafe {
            if is_plain(layout.align(), size) { mi_malloc(size) } else { mi_malloc_aligned(size, layout.align()) }
        };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let size = layout.size();
        // SAFETY: as above.
        let block = unsafe {
            if is_plain(layout.align(), size) { mi_zalloc(size) } else { mi_zalloc_aligned(size, layout.align()) }
        };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller's block, which is mimalloc's.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let block = block.cast();
        // SAFETY: as above; the alignment stays the same.
        let block = unsafe {
            if is_plain(layout.align(), size) {
                mi_realloc(block, size)
            } else {
                mi_realloc_aligned(block, size, layout.align())
            }
        };
        block.cast()
    }
}
