//! The lock of a push on arrays: its effect on their ranges is decided under it.
//!
//! Ops on several buffers would else see them in different orders. No user code runs under it: the engine's runs and drops
//! on this thread wait for its release.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_engine::Quiet;

/// The lock, held.
pub(crate) struct Pushing {
    // Dropped in this order: objects that have waited find the lock free.
    _guard: MutexGuard<'static, ()>,
    _quiet: Quiet,
}

impl Pushing {
    #[inline]
    pub(crate) fn lock() -> Self {
        static LOCK: Mutex<()> = Mutex::new(());
        let quiet = Quiet::begin();
        Self { _guard: LOCK.lock().unwrap_or_else(PoisonError::into_inner), _quiet: quiet }
    }
}

/// The right to touch the state under the lock.
#[derive(Default)]
pub(crate) struct Guarded<T>(UnsafeCell<T>);

// SAFETY: reached with a `Pushing` alone, of which there is one.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    #[inline]
    pub(crate) fn get<'a>(&'a self, _pushing: &'a mut Pushing) -> &'a mut T {
        // SAFETY: there is one `Pushing`, and it is borrowed for as long as the answer is.
        unsafe { &mut *self.0.get() }
    }
}
