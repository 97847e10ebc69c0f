//! Failures on their way from the thread that met them to the one that notes them.

use super::Call;
use crate::failure::Failure;
use crate::sync::{AtomicPtr, Ordering};
use std::collections::HashMap;
use std::ptr;
use std::sync::Arc;

/// The steps and ports of a call that failed, by node: by their own failure, or for that of another one.
#[derive(Default)]
pub(crate) struct Failures(HashMap<u32, (Arc<Failure>, Began)>);

/// Whether a step that failed has begun.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Began {
    /// It ran.
    Yes,
    /// It was skipped.
    No,
}

impl Failures {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Why a node failed, if it did.
    pub(super) fn of(&self, node: u32) -> Option<&Arc<Failure>> {
        self.0.get(&node).map(|(failure, _)| failure)
    }

    /// Of several nodes that failed, the failure of the one that is named first.
    pub(super) fn first_of(&self, nodes: &[u32]) -> Option<Arc<Failure>> {
        nodes.iter().find_map(|node| self.of(*node)).cloned()
    }

    /// Whether a step did not run, for the failure of another one.
    pub(super) fn was_skipped(&self, step: u32) -> bool {
        self.0.get(&step).is_some_and(|(_, began)| *began == Began::No)
    }

    /// Notes a step that ran, and failed.
    pub(super) fn failed(&mut self, step: u32, failure: Arc<Failure>) {
        self.0.insert(step, (failure, Began::Yes));
    }

    /// Notes a step that was skipped, or a port with a value that had failed before the call.
    pub(super) fn skipped(&mut self, node: u32, failure: Arc<Failure>) {
        self.0.insert(node, (failure, Began::No));
    }

    /// Notes a member that its step has left out, unless it is known to have failed.
    pub(super) fn left_out(&mut self, member: u32, failure: &Arc<Failure>) {
        self.0.entry(member).or_insert_with(|| (Arc::clone(failure), Began::No));
    }
}

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
        // ORDERING: the caller sees all that happened before its look; see `put`.
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
            // SAFETY: the stack's content is this caller's.
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
    /// Untold failures, for the engine.
    pub(crate) fn take_told(&self, each: impl FnMut(Box<Failed>)) {
        self.told.take(each);
    }
}
