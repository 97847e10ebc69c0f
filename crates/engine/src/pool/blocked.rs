//! Workers that are blocked in a wait, and the spares in their place.

use super::state::Pool;
use std::sync::Arc;

/// Stands for a worker that is blocked in a wait: another one works in its place meanwhile.
pub(crate) struct BlockedWorker {
    pool: Arc<Pool>,
    lane: u16,
}

impl BlockedWorker {
    /// For a worker thread about to block; nothing for other threads.
    /// Answers an error if there are too many already.
    pub(crate) fn enter() -> Result<Option<Self>, usize> {
        let Some((pool, lane_number)) = Pool::of_worker() else { return Ok(None) };
        let lane = pool.lane(lane_number);
        if lane.is_full() {
            return Err(lane.seats().count());
        }
        lane.block_worker();
        pool.wake_one(lane, true);
        Ok(Some(Self { pool: Arc::clone(&pool), lane: lane_number }))
    }
}

impl BlockedWorker {
    /// How many workers of its lane are blocked, if these are all that there are, as the system gives no further thread.
    pub(crate) fn among_all(&self) -> Option<usize> {
        let lane = self.pool.lane(self.lane);
        lane.is_stuck().then(|| lane.seats().count())
    }
}

impl Drop for BlockedWorker {
    fn drop(&mut self) {
        self.pool.lane(self.lane).unblock_worker();
    }
}
