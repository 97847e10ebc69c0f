//! A value that is made when it is first asked for, without a lock: two threads may both make it, and one of the two is kept. So a fork
//! at any moment does no harm.

use crate::sync::{AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::ptr;

/// See the module.
pub(super) struct Once<T> {
    made: AtomicPtr<T>,
    owns: PhantomData<Box<T>>,
}

// SAFETY: it owns its value, as a box does.
unsafe impl<T: Send> Send for Once<T> {}
// SAFETY: it lends the value to any thread, and takes it from any: what is kept was made by one of them.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    pub(super) fn new() -> Self {
        Self { made: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    /// The value, if it was made.
    #[inline]
    pub(super) fn get(&self) -> Option<&T> {
        // ORDERING: pairs with the Release in get_or_make().
        // SAFETY: once made it stays until this is dropped.
        unsafe { self.made.load(Ordering::Acquire).as_ref() }
    }

    /// The value; `make` makes it, if there is none.
    #[inline]
    pub(super) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.keep(Box::new(make())),
        }
    }

    #[cold]
    fn keep(&self, value: Box<T>) -> &T {
        let value = Box::into_raw(value);
        // ORDERING: Release publishes the value; Acquire of that of another thread, which was faster.
        let kept = match self.made.compare_exchange(ptr::null_mut(), value, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => value,
            Err(kept) => {
                // SAFETY: it came from a box above, and is not known elsewhere.
                drop(unsafe { Box::from_raw(value) });
                kept
            }
        };
        // SAFETY: as in get().
        unsafe { &*kept }
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        // ORDERING: `&mut self`: nobody else is here.
        let made = self.made.load(Ordering::Acquire);
        if !made.is_null() {
            // SAFETY: it came from a box, and nobody has it any more.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}
