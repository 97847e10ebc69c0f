//! Ops with their completion tokens out: a list through the tokens, for reports of engines that stand still.
//!
//! A token is in the list from before its payload is told of it until both its ends have come. Its place is a part of
//! it, so nothing is allocated, and nothing of anybody else's runs, under the lock.

use super::OpPtr;
use crate::sync::{Mutex, UnsafeCell};
use std::ptr;
use std::sync::PoisonError;

/// See the module.
pub(crate) struct Deferred(Mutex<Head>);

struct Head {
    first: *const Listing,
    count: usize,
}

// SAFETY: a member of the list leaves it before it dies, so the pointer is valid.
unsafe impl Send for Head {}

/// An op's place in the list.
pub(crate) struct Listing {
    pub(super) op: OpPtr,
    /// Touched under the list's lock alone.
    links: UnsafeCell<Links>,
}

#[derive(Clone, Copy)]
struct Links {
    previous: *const Listing,
    next: *const Listing,
}

impl Listing {
    pub(crate) fn new(op: OpPtr) -> Self {
        Self { op, links: UnsafeCell::new(Links { previous: ptr::null(), next: ptr::null() }) }
    }

    /// # Safety
    ///
    /// The list's lock is held, and `place` is in the list, or is null and nothing is done.
    unsafe fn relink(place: *const Self, change: impl FnOnce(&mut Links)) {
        // SAFETY: the caller's promise.
        if let Some(place) = unsafe { place.as_ref() } {
            // SAFETY: the lock makes the caller alone.
            place.links.with_mut(|links| change(unsafe { &mut *links }));
        }
    }
}

impl Deferred {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Head { first: ptr::null(), count: 0 }))
    }

    /// Puts a place into the list.
    ///
    /// # Safety
    ///
    /// The place is in no list. It stays where it is and lives until it leaves this one.
    pub(crate) unsafe fn enter(&self, place: &Listing) {
        let mut head = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = std::mem::replace(&mut head.first, place);
        head.count += 1;
        // SAFETY: the lock is held, and both are in the list now.
        unsafe {
            Listing::relink(place, |links| *links = Links { previous: ptr::null(), next: first });
            Listing::relink(first, |links| links.previous = place);
        }
    }

    /// Takes a place out of the list.
    ///
    /// # Safety
    ///
    /// The place has entered this list, and leaves it once.
    pub(crate) unsafe fn leave(&self, place: &Listing) {
        let mut head = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        head.count -= 1;
        // SAFETY: the lock is held, and neighbours are in the list.
        let Links { previous, next } = place.links.with(|links| unsafe { *links });
        if previous.is_null() {
            head.first = next;
        }
        // SAFETY: as above.
        unsafe {
            Listing::relink(previous, |links| links.next = next);
            Listing::relink(next, |links| links.previous = previous);
        }
    }

    /// The ops in the list, the latest first. They are pending for as long as the caller has the registrar's role.
    pub(crate) fn ops(&self) -> Vec<OpPtr> {
        let mut ops = Vec::new();
        loop {
            let head = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if ops.capacity() < head.count {
                let count = head.count;
                drop(head); // whoever completes an op does not wait for memory
                ops.reserve(count + count / 8);
                continue;
            }
            let mut at = head.first;
            // SAFETY: the lock is held, so its members stay.
            while let Some(place) = unsafe { at.as_ref() } {
                ops.push(place.op);
                // SAFETY: as above.
                at = place.links.with(|links| unsafe { (*links).next });
            }
            return ops;
        }
    }
}
