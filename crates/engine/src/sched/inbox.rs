//! Finished ops that met a taken role: a stack, taken whole.

use crate::op::{Op, OpPtr};
use crate::sync::{AtomicPtr, CachePadded, Ordering, full_fence_after_rmw};
use std::ptr;

pub(crate) struct Inbox(CachePadded<AtomicPtr<Op>>);

impl Inbox {
    pub(crate) fn new() -> Self {
        Self(CachePadded(AtomicPtr::new(ptr::null_mut())))
    }

    /// Leaves a finished op. The caller tries to take the role next. Answers whether there was none.
    #[inline]
    pub(crate) fn put(&self, op: OpPtr) -> bool {
        self.put_list(op.as_ptr(), op)
    }

    /// Leaves a list linked by `next`, likewise.
    #[inline]
    fn put_list(&self, first: *mut Op, last: OpPtr) -> bool {
        // ORDERING: a guess to start from.
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: a finished op belongs to its finisher until it is in the inbox.
            unsafe { (*last.as_ptr()).next = head };
            // ORDERING: SeqCst on success: publishes the op (pairs with take()) and is the
            // finisher's half of the handshake with the role (see `sched`).
            match self.0.compare_exchange_weak(head, first, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => {
                    full_fence_after_rmw();
                    return head.is_null();
                }
                Err(now) => head = now,
            }
        }
    }

    /// Leaves the ops of a list that was taken from another one. Answers whether there were any.
    pub(crate) fn put_taken(&self, first: *mut Op) -> bool {
        let Some(mut last) = OpPtr::from_raw(first) else { return false };
        // SAFETY: ops that were taken are the taker's until they are put again.
        while let Some(next) = OpPtr::from_raw(unsafe { (*last.as_ptr()).next }) {
            last = next;
        }
        self.put_list(first, last);
        true
    }

    /// Takes everything: the first of a list linked by `next`, or null.
    #[inline]
    pub(crate) fn take(&self) -> *mut Op {
        if self.is_empty() {
            return ptr::null_mut();
        }
        // ORDERING: Acquire of the ops that put() has published. Taking all together leaves no room
        // for ABA.
        self.0.swap(ptr::null_mut(), Ordering::Acquire)
    }

    /// Whether there is nothing to take.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // ORDERING: SeqCst: the load behind a role given back, behind an announced sleep, and behind a mark that was cleared;
        // pairs with put().
        self.0.load(Ordering::SeqCst).is_null()
    }
}
