//! Forks: the child has the forking thread alone, so no other may hold a lock of this crate at that moment.

use super::pool::{self, Pool};
use super::pushing::Pushing;
use super::storage::Exchanging;
use std::sync::MutexGuard;

/// The crate's locks, held by the forking thread.
pub struct Fork {
    _pool: MutexGuard<'static, Pool>,
    _exchanging: Exchanging,
    _pushing: Pushing,
}

/// Before a fork, and before that of the engine: the holder of the first lock may wait for an engine.
///
/// Dropping the answer, in the parent and in the child, ends it.
#[must_use]
pub fn before() -> Fork {
    let pushing = Pushing::lock();
    Fork { _pool: pool::pool(), _exchanging: Exchanging::lock(), _pushing: pushing }
}
