//! Counting the handles on a value.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// How many handles on a value there are. If the caller has them all, nobody makes another one, and what was done through
/// those that are gone is over, as with [`Arc::get_mut`].
#[must_use]
pub fn handles<T: ?Sized>(value: &Arc<T>) -> usize {
    let count = Arc::strong_count(value);
    // ORDERING: pairs with the Release by which a handle goes.
    fence(Ordering::Acquire);
    count
}
