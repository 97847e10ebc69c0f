//! The only home of atomics, shared cells and parking.
//!
//! Everything here is a newtype over `std`, or over `loom` under `cfg(loom)`, so that the model
//! checker runs the shipped protocols and not a copy of them. No other module may name
//! `std::sync::atomic`; clippy enforces it.
//!
//! `litmus.md` names the arguments that rest on the one order of `SeqCst` accesses, and the code of these on ARM64.

// The one module where the raw types may be named.
#![allow(clippy::disallowed_types)]

mod atomic;
mod cell;
mod handles;
mod parker;

pub(crate) use atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, full_fence_after_rmw};
pub(crate) use cell::UnsafeCell;
pub use handles::handles;
pub(crate) use parker::{Parker, Unparker};

#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Condvar, Mutex};

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex};

/// Declares cells for each thread. Loom's threads, which share one of the system, have theirs too.
macro_rules! thread_cell {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;)+) => {$(
        #[cfg(not(loom))]
        std::thread_local! { $(#[$attribute])* static $name: std::cell::Cell<$type> = const { std::cell::Cell::new($value) } }
        #[cfg(loom)]
        loom::thread_local! { $(#[$attribute])* static $name: std::cell::Cell<$type> = std::cell::Cell::new($value); }
    )+};
}
pub(crate) use thread_cell;

/// Tells the processor, or the model checker, that this thread is waiting for another one.
pub(crate) fn spin_hint() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Gives the rest of this thread's time slice away.
pub(crate) fn yield_now() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Keeps its content on cache lines of its own (two, as x86 fetches lines in pairs).
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct CachePadded<T>(pub(crate) T);

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// Asks for the cache line at `address`, to write to it. It need not be valid memory.
#[inline]
pub(crate) fn prefetch_to_write<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        // The intrinsic asks to read only, unless the target is known to have this instruction. Where it is unknown it does
        // nothing.
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    let _ = address;
}

/// Asks for the cache line at `address`, which need not be valid memory.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = address;
}
