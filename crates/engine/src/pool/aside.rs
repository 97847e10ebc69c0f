//! The rule that keeps a worker of the issuing kind from long work outside of its order.

use super::Pool;
use crate::sched::Order;
use std::sync::Arc;

/// A worker that has stepped aside: another one of its lane issues meanwhile.
struct Aside {
    pool: Arc<Pool>,
    lane: u16,
}

impl Aside {
    /// For a worker of a lane in the order of the pushes; nothing for other threads, and where as many have stepped
    /// aside as other lanes have workers.
    fn step() -> Option<Self> {
        let (pool, number) = Pool::of_worker()?;
        let lane = pool.lane(number);
        if lane.order != Order::Pushed || lane.is_full() || !lane.try_step_aside(pool.workers) {
            return None;
        }
        // One that was to retire takes its place.
        if !lane.take_excess() {
            lane.add_spare();
            pool.wake_one(lane, true);
        }
        Some(Self { pool: Arc::clone(&pool), lane: number })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let lane = self.pool.lane(self.lane);
        lane.step_back();
        lane.remove_spare();
    }
}

/// Whether the calling thread is a worker of some engine, which runs nothing but ops.
#[must_use]
pub fn is_worker() -> bool {
    Pool::of_worker().is_some()
}

/// Does work of a payload that has its turn in a [queue](crate::Payload::queue) and that is long for this thread, as a copy of much
/// memory is: ops pushed behind it are issued meanwhile, by another thread.
pub fn aside<R>(work: impl FnOnce() -> R) -> R {
    let _aside = Aside::step();
    work()
}
