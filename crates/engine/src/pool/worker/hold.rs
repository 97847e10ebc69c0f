//! How long a worker that draws among ready ops leaves them where they are, so that there is something to draw from.
//!
//! While a thread waits, ops are handed out at once. Ops that set an event or call back have no wait in the engine, so
//! the worker holds back for a limited time only: then it asks until nothing is ready.

use std::time::{Duration, Instant};

/// The time without a push, and the most time that ready ops are held back.
pub(super) const QUIET: Duration = Duration::from_millis(if cfg!(loom) { 0 } else { 50 });
pub(super) const LONGEST_HOLD: Duration = Duration::from_millis(if cfg!(loom) { 0 } else { 2000 });
/// How long the worker sleeps between two looks.
const NAP: Duration = Duration::from_micros(100);

/// A worker's view of ready ops that it is not given.
#[derive(Default)]
pub(super) struct Hold {
    since: Option<Since>,
    /// Whether it has just slept, and looks now.
    slept: bool,
    insists: bool,
}

struct Since {
    began: Instant,
    pushed: u64,
    last_push: Instant,
}

impl Hold {
    /// Whether it takes ready ops though no thread waits.
    pub(super) fn insists(&self) -> bool {
        self.insists
    }

    /// Nothing is ready, or the worker was given something.
    pub(super) fn end(&mut self, is_empty: bool) {
        self.since = None;
        self.slept = false;
        self.insists &= !is_empty;
    }

    /// How long to sleep before the next look, as something is ready and was not given, so many ops having been pushed.
    pub(super) fn next(&mut self, pushed: u64) -> Option<Duration> {
        if std::mem::take(&mut self.slept) || self.insists {
            return None;
        }
        let now = Instant::now();
        let since = self.since.get_or_insert(Since { began: now, pushed, last_push: now });
        if since.pushed != pushed {
            (since.pushed, since.last_push) = (pushed, now);
        }
        self.insists = now - since.last_push >= QUIET || now - since.began >= LONGEST_HOLD;
        self.slept = !self.insists;
        self.slept.then_some(NAP)
    }
}
