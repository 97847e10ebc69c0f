//! Figures of an engine.

use super::Engine;
use crate::sync::Ordering;

/// Counts since the engine was made, as of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Ops pushed.
    pub pushed: u64,
    /// Ops that have ended, however they did.
    pub completed: u64,
    /// Of these, ops with a failed payload.
    pub failed: u64,
    /// Of these, ops skipped for the failure of another one.
    pub skipped: u64,
    /// Of these, ops cancelled before they started.
    pub cancelled: u64,
    /// Ops that have not ended.
    pub pending: u64,
    /// Ops that run now.
    pub running: u64,
    /// Bytes held by pending ops.
    pub pending_bytes: u64,
    /// Variables alive.
    pub variables: u64,
}

impl Engine {
    /// Figures of this engine.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let pool = self.core.pool();
        let running = pool.running().len() as u64;
        let mut turn = pool.turn();
        turn.catch_up();
        let counts = turn.parts().0.counts;
        let pending_bytes = pool.registrar.bytes();
        drop(turn);
        Stats {
            pushed: counts.registered,
            completed: counts.completed,
            failed: counts.failed,
            skipped: counts.skipped,
            cancelled: counts.cancelled,
            pending: counts.registered - counts.completed,
            running,
            pending_bytes,
            // ORDERING: a count only.
            variables: self.core.variables.load(Ordering::Relaxed).saturating_sub(counts.released),
        }
    }
}
