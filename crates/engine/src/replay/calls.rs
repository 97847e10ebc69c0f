//! Calls linked to each other, and free ones.

use super::Call;
use crate::sync::Mutex;
use std::ptr::{self, NonNull};
use std::sync::TryLockError;

/// Calls that are linked to each other.
pub(crate) struct Calls(*mut Call);

impl Calls {
    pub(crate) const fn new() -> Self {
        Self(ptr::null_mut())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_null()
    }

    /// # Safety
    ///
    /// The call is in no list, and lives until it leaves this one.
    pub(crate) unsafe fn push(&mut self, call: *mut Call) {
        let first = self.0;
        // SAFETY: the caller's promise.
        unsafe { &*call }.desk(|desk| desk.next = first);
        self.0 = call;
    }

    pub(crate) fn pop(&mut self) -> Option<NonNull<Call>> {
        let call = NonNull::new(self.0)?;
        // SAFETY: members of the list live.
        self.0 = unsafe { call.as_ref() }.desk(|desk| desk.next);
        Some(call)
    }
}

impl Default for Calls {
    fn default() -> Self {
        Self::new()
    }
}

/// Free calls. No thread waits for the lock: without it, it makes a call, or lets one go. So it does no harm in a
/// forked child if it was held.
pub(crate) struct Spare(Mutex<Calls>);

// SAFETY: they are free, and the lock's holder is alone.
unsafe impl Send for Calls {}

impl Spare {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Calls::new()))
    }

    pub(super) fn take(&self) -> Option<Box<Call>> {
        let mut calls = match self.0.try_lock() {
            Ok(calls) => calls,
            Err(TryLockError::Poisoned(calls)) => calls.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        // SAFETY: put() made it of a box.
        calls.pop().map(|call| unsafe { Box::from_raw(call.as_ptr()) })
    }

    pub(super) fn put(&self, call: Box<Call>) {
        let mut calls = match self.0.try_lock() {
            Ok(calls) => calls,
            Err(TryLockError::Poisoned(calls)) => calls.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        // SAFETY: it has no owner any more.
        unsafe { calls.push(Box::into_raw(call)) };
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        while let Some(call) = self.take() {
            drop(call);
        }
    }
}
