//! The rights of the op that this thread runs.
//!
//! A payload that knows its arrays says so while it runs ([`granting`]). Then waits for them need not wait, and pushes
//! on them are refused: such an op would come after every later push on the same arrays, and the running op would no
//! longer be one step.

use super::{Access, Array};
use crate::memory::recorded::{grants, set_grants};
use crate::{ArrayError, Buffer, DType, Layout};
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
        set_grants(self.0);
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
        set_grants(grants.len());
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
    if grants() == 0 {
        return None;
    }
    let range = array.range();
    GRANTS.with_borrow(|grants| grants.iter().filter(|grant| covers(grant, &range)).map(|grant| grant.writes).max())
}

/// Refuses arrays of which the running op has been granted any part.
#[inline]
pub(crate) fn refuse<'a>(arrays: impl Iterator<Item = &'a Array>) -> Result<(), ArrayError> {
    if grants() == 0 { Ok(()) } else { refuse_granted(arrays) }
}

/// Refuses bytes of a buffer of which the running op has been granted any part.
#[inline]
pub(crate) fn refuse_bytes(buffer: &Arc<Buffer>, range: Range<usize>) -> Result<(), ArrayError> {
    if grants() == 0 {
        return Ok(());
    }
    let length = range.len();
    let layout = Layout { offset: range.start, ..Layout::contiguous(&[length], 1)? };
    refuse_granted([&Array::on(Arc::clone(buffer), layout, DType::UInt8)?].into_iter())
}

#[cold]
fn refuse_granted<'a>(mut arrays: impl Iterator<Item = &'a Array>) -> Result<(), ArrayError> {
    let reaches = |grant: &Grant, array: &Array| {
        let range = array.range();
        grant.buffer == Arc::as_ptr(array.buffer()) && grant.range.start < range.end && range.start < grant.range.end
    };
    GRANTS.with_borrow(|grants| match arrays.find(|array| grants.iter().any(|grant| reaches(grant, array))) {
        Some(array) => Err(ArrayError::Granted { shape: array.layout().shape.to_vec() }),
        None => Ok(()),
    })
}
