//! The registrar's tasks for the time after it has given the role back.

use crate::failure::Failure;
use crate::op::{Chunk, Op, OpPtr};
use crate::quiet::quietly;
use crate::replay::Calls;
use crate::var::VarNode;
use crate::waiter::Waiter;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Deaths and wake-ups. All of it may run user code, allocate or enter the system, and has no place under the role.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) sleepers: Vec<Arc<Waiter>>,
    pub(crate) failures: Vec<Arc<Failure>>,
    pub(crate) nodes: Vec<NonNull<VarNode>>,
    pub(crate) chunk: Option<Chunk>,
    /// Replays that have ended.
    pub(crate) calls: Calls,
    /// Skipped ops, linked by `next`: settled, but their payloads are still to be dropped.
    skipped: Option<OpPtr>,
}

impl Outbox {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.sleepers.is_empty()
            && self.failures.is_empty()
            && self.nodes.is_empty()
            && self.chunk.is_none()
            && self.calls.is_empty()
            && self.skipped.is_none()
    }

    pub(crate) fn skip(&mut self, op: OpPtr) {
        // SAFETY: a settled op is the registrar's, and so the outbox's.
        unsafe { (*op.as_ptr()).next = self.skipped.map_or(ptr::null_mut(), OpPtr::as_ptr) };
        self.skipped = Some(op);
    }

    /// Does it all. Answers the emptied skipped ops, linked by `next`: their cells go back to the slab at the next
    /// turn.
    pub(crate) fn deliver(mut self) -> Option<OpPtr> {
        for waiter in &self.sleepers {
            waiter.wake();
        }
        // A panicking drop ends no other work, and must not unwind a pusher.
        let mut failures = self.failures.into_iter();
        while failures.len() > 0 {
            quietly(|| failures.by_ref().for_each(drop));
        }
        for node in self.nodes {
            // SAFETY: made by Box::into_raw; its last access and its last handle are gone.
            drop(unsafe { Box::from_raw(node.as_ptr()) });
        }
        while let Some(call) = self.calls.pop() {
            // SAFETY: made by Box::into_raw() at the push; it has ended, and is not known elsewhere.
            let call = unsafe { Box::from_raw(call.as_ptr()) };
            quietly(|| call.dispose());
        }
        let mut at = self.skipped.map_or(ptr::null_mut::<Op>(), OpPtr::as_ptr);
        while !at.is_null() {
            // SAFETY: skipped ops are this outbox's; their payloads were never run.
            unsafe {
                quietly(|| (*at).payload.assume_init_mut().discard());
                at = (*at).next;
            }
        }
        self.skipped
    }
}

// SAFETY: it owns its target.
unsafe impl Send for Outbox {}
