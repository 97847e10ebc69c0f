//! The queue of accesses of one variable; only the registrar touches it.

use super::{AccessKind, AccessNode};
use crate::failure::Failure;
use crate::sync::prefetch;
use std::ptr;
use std::sync::Arc;

/// How an op ended, as far as its variables care.
#[derive(Clone, Copy)]
pub(crate) enum Settled<'a> {
    /// It did its work.
    Done,
    /// It did not run, for this failure of another one: what it was to write is as it was.
    Skipped {
        /// Of the other one.
        failure: &'a Arc<Failure>,
        /// Whether what it was to write is no longer as it was all the same, as it stands for what the other one wrote.
        begun: bool,
    },
    /// It ran, and failed with this; what it was to write may be half of it.
    Failed(&'a Arc<Failure>),
}

impl<'a> Settled<'a> {
    /// Why there is no new version.
    #[inline]
    pub(crate) fn failure(self) -> Option<&'a Arc<Failure>> {
        match self {
            Self::Done => None,
            Self::Skipped { failure, .. } | Self::Failed(failure) => Some(failure),
        }
    }
}

/// Grants and queued accesses of one variable.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) readers: u32,
    /// Owner of the granted exclusive access.
    pub(super) writer: *mut u8,
    pub(super) head: *mut AccessNode,
    tail: *mut AccessNode,
    pub(super) failure: Option<Arc<Failure>>,
    /// Whether an op that ran has begun to change what the last good version left. Never so without a failure.
    pub(super) begun: bool,
    /// Whether an op has ever made a good version.
    pub(super) made: bool,
    /// All queued accesses, and those that they wait for, are of ops of at least this priority.
    lifted: i32,
    /// The same, but without the reads at the end, which do not wait for each other.
    lifted_for_reads: i32,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self {
            readers: 0,
            writer: ptr::null_mut(),
            head: ptr::null_mut(),
            tail: ptr::null_mut(),
            failure: None,
            begun: false,
            made: false,
            lifted: i32::MIN,
            lifted_for_reads: i32::MIN,
        }
    }

    /// Notes what an op has made of the version that it was to make. Answers the failure that this ends.
    #[inline]
    pub(super) fn note(&mut self, kind: AccessKind, settled: Settled<'_>) -> Option<Arc<Failure>> {
        match settled {
            Settled::Done if kind == AccessKind::Overwrite => {
                (self.begun, self.made) = (false, true);
                self.failure.take()
            }
            Settled::Done => {
                // An op that runs always has changed what was broken.
                let failed = self.failure.is_some();
                self.begun |= failed;
                self.made |= !failed;
                None
            }
            Settled::Skipped { failure, begun } => {
                self.begun |= begun;
                self.failure.replace(Arc::clone(failure))
            }
            Settled::Failed(failure) => {
                self.begun = true;
                self.failure.replace(Arc::clone(failure))
            }
        }
    }

    /// Takes `access` in, of an op of this priority. Answers whether it is granted at once.
    ///
    /// # Safety
    ///
    /// `access` stays where it is, untouched by others, until it has left.
    #[inline]
    pub(super) unsafe fn enter(&mut self, access: *mut AccessNode, priority: i32) -> bool {
        // SAFETY: the caller's promise.
        let entering = unsafe { &mut *access };
        if self.head.is_null() && self.writer.is_null() {
            if !entering.kind().is_exclusive() {
                self.readers += 1;
                return true;
            }
            if self.readers == 0 {
                self.writer = entering.owner();
                return true;
            }
        }
        entering.next = ptr::null_mut();
        if self.head.is_null() {
            self.head = access;
            // Nobody has looked at those who hold the variable.
            (self.lifted, self.lifted_for_reads) = (i32::MIN, i32::MIN);
        } else {
            // SAFETY: `tail` is the last queued access when there is a first; queued accesses live.
            let last = unsafe { &mut *self.tail };
            if last.kind().is_exclusive() {
                self.lifted_for_reads = self.lifted;
            }
            self.lifted = self.lifted.min(priority);
            last.next = access;
        }
        self.tail = access;
        false
    }

    /// Notes that whoever `access` waits for is being lifted to this priority. Answers whether
    /// that may be news.
    pub(super) fn lift(&mut self, access: *mut AccessNode, exclusive: bool, priority: i32) -> bool {
        if self.tail != access {
            return true; // the bounds are those of the last access
        }
        let bound = if exclusive { &mut self.lifted } else { &mut self.lifted_for_reads };
        let news = *bound < priority;
        *bound = priority.max(*bound);
        news
    }

    /// Ends a granted access of this kind and hands every access that this grants to `granted`.
    #[inline]
    pub(super) fn leave(&mut self, kind: AccessKind, mut granted: impl FnMut(*mut AccessNode)) {
        if kind.is_exclusive() {
            self.writer = ptr::null_mut();
        } else {
            self.readers -= 1;
        }
        while !self.head.is_null() {
            let access = self.head;
            // SAFETY: queued accesses live until they have left.
            let (kind, owner, next) = unsafe { ((*access).kind(), (*access).owner::<u8>(), (*access).next) };
            if kind.is_exclusive() {
                if self.readers == 0 {
                    self.head = next;
                    self.writer = owner;
                    granted(access);
                }
                return;
            }
            prefetch(next);
            self.head = next;
            self.readers += 1;
            granted(access);
        }
    }

    /// Takes a queued access out again, as if it had never come. Answers whether it was there.
    /// The accesses that this grants go to `granted`.
    pub(super) fn withdraw(&mut self, access: *mut AccessNode, mut granted: impl FnMut(*mut AccessNode)) -> bool {
        let (mut before, mut at) = (ptr::null_mut::<AccessNode>(), self.head);
        while at != access {
            if at.is_null() {
                return false;
            }
            before = at;
            // SAFETY: queued accesses live until they have left.
            at = unsafe { (*at).next };
        }
        // SAFETY: as above; `at` is `access`, which is queued.
        let next = unsafe { (*at).next };
        if self.tail == at {
            self.tail = before;
        }
        if !before.is_null() {
            // SAFETY: as above.
            unsafe { (*before).next = next };
            return true;
        }
        self.head = next;
        // The new head may stand behind nothing but readers now.
        while self.writer.is_null() && !self.head.is_null() {
            let access = self.head;
            // SAFETY: as above.
            let (kind, next) = unsafe { ((*access).kind(), (*access).next) };
            if kind.is_exclusive() {
                break; // it waits for the readers that made the withdrawn access wait
            }
            self.head = next;
            self.readers += 1;
            granted(access);
        }
        true
    }
}
