//! Counting the handles on a value.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// How many handles on a value there are. If the caller has them all, no other one is made, and all work through those
/// that are gone is over, as with [`Arc::get_mut`].
#[must_use]
pub fn handles<T: ?Sized>(value: &Arc<T>) -> usize {
    let count = Arc::strong_count(value);
    // ORDERING: pairs with the Release of a handle's end.
    fence(Ordering::Acquire);
    count
}
