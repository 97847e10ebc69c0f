//! Memory that is asked for before it is looked at.
//!
//! The nodes of a large graph have left the cache when their turn comes, and a countdown would wait for one after the
//! other. Of a batch they are asked for together.

/// Asks for the cache line of this. A hint: where there is none, nothing is done.
#[inline(always)]
#[allow(clippy::inline_always)] // one instruction
pub(super) fn fetch<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint for an address that is valid; it reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}
