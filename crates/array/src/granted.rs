//! What the op that this thread runs may touch.
//!
//! A payload that knows its arrays says so while it runs ([`granting`]). Then waits for them need not wait, and pushes
//! on them are refused: such an op would come after everything that was pushed since on the same arrays, and what the
//! running op does would no longer be one step.

use crate::order::Access;
use crate::{Array, Buffer};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

struct Grant {
    /// Address of the buffer, which the payload holds.
    buffer: *const Buffer,
    range: Range<usize>,
    writes: bool,
}

thread_local! {
    /// Of the ops that run on this thread, the innermost last.
    static GRANTS: RefCell<Vec<Grant>> = const { RefCell::new(Vec::new()) };
}

/// Takes the grants back, however the op ends.
struct Until(usize);

impl Drop for Until {
    fn drop(&mut self) {
        GRANTS.with_borrow_mut(|grants| grants.truncate(self.0));
    }
}

/// Runs `body` as that of an op to which these accesses were granted.
pub fn granting<T>(arrays: &[(Array, Access)], body: impl FnOnce() -> T) -> T {
    let _until = GRANTS.with_borrow_mut(|grants| {
        let until = Until(grants.len());
        grants.extend(arrays.iter().map(|(array, access)| Grant {
            buffer: Arc::as_ptr(array.buffer()),
            range: array.range(),
            writes: *access != Access::Read,
        }));
        until
    });
    body()
}

/// Whether the running op may touch the array's elements: for writing, if `Some(true)`.
#[must_use]
pub fn granted(array: &Array) -> Option<bool> {
    let covers = |grant: &&Grant, range: &Range<usize>| {
        grant.buffer == Arc::as_ptr(array.buffer()) && grant.range.start <= range.start && range.end <= grant.range.end
    };
    GRANTS.with_borrow(|grants| {
        if grants.is_empty() {
            return None;
        }
        let range = array.range();
        grants.iter().filter(|grant| covers(grant, &range)).map(|grant| grant.writes).max()
    })
}

/// Whether the running op has been granted anything that the array reaches.
#[inline]
pub(crate) fn is_taken(array: &Array) -> bool {
    GRANTS.with_borrow(|grants| {
        grants.iter().any(|grant| {
            let range = array.range();
            grant.buffer == Arc::as_ptr(array.buffer())
                && grant.range.start < range.end
                && range.start < grant.range.end
        })
    })
}
