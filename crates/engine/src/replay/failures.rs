//! Failures on their way from the thread that met them to the one that notes them.

use super::Call;
use crate::failure::Failure;
use crate::sync::{AtomicPtr, Ordering};
use std::ptr;
use std::sync::Arc;

/// A step that failed, and why.
pub(crate) struct Failed {
    pub(crate) step: u32,
    pub(crate) failure: Arc<Failure>,
    next: *mut Failed,
}

/// A stack of them, taken whole.
pub(crate) struct FailedStack(AtomicPtr<Failed>);

impl FailedStack {
    pub(super) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    pub(super) fn put(&self, failed: Box<Failed>) {
        let failed = Box::into_raw(failed);
        // ORDERING: a guess to start from.
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: it is the caller's until it is in the stack.
            unsafe { (*failed).next = head };
            // ORDERING: pairs with take().
            match self.0.compare_exchange_weak(head, failed, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes all, the first one first.
    #[inline]
    pub(super) fn take(&self, each: impl FnMut(Box<Failed>)) {
        // ORDERING: what happened before the caller looks is seen; see `put`.
        if !self.0.load(Ordering::Acquire).is_null() {
            self.take_now(each);
        }
    }

    #[cold]
    fn take_now(&self, mut each: impl FnMut(Box<Failed>)) {
        // ORDERING: pairs with put().
        let mut at = self.0.swap(ptr::null_mut(), Ordering::AcqRel);
        let mut first = ptr::null_mut::<Failed>();
        while !at.is_null() {
            // SAFETY: what was in the stack is this caller's.
            let next = unsafe { std::mem::replace(&mut (*at).next, first) };
            (first, at) = (at, next);
        }
        while !first.is_null() {
            // SAFETY: as above; put() made it of a box.
            let mut failed = unsafe { Box::from_raw(first) };
            first = std::mem::replace(&mut failed.next, ptr::null_mut());
            each(failed);
        }
    }
}

impl Drop for FailedStack {
    fn drop(&mut self) {
        self.take(drop);
    }
}

impl Failed {
    pub(crate) fn new(step: u32, failure: Arc<Failure>) -> Self {
        Self { step, failure, next: ptr::null_mut() }
    }
}

impl Call {
    /// Failures that nobody was told of, for the engine.
    pub(crate) fn take_told(&self, each: impl FnMut(Box<Failed>)) {
        self.told.take(each);
    }
}
