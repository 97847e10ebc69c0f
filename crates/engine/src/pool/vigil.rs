//! Waits that sleep, and whether anything moves while they do.

use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// A wait that sleeps.
pub(crate) struct Sleeping {
    pub(crate) what: &'static str,
    /// The object of the wait, if there is one: the engine's to know. Lives for as long as this is listed.
    pub(crate) subject: Option<NonNull<()>>,
    /// The place of the wait, in the waiting thread's words.
    pub(crate) place: u64,
}

// SAFETY: its target is shared by threads anyway.
unsafe impl Send for Sleeping {}

/// The engine's progress, from looks at it while waits last.
pub(crate) struct Vigil {
    sleeping: Vec<(u64, Sleeping)>,
    next: u64,
    looked: Instant,
    /// When the last wait ended, once one has.
    left: Option<Instant>,
    /// Ops settled, and since when there are no more.
    completed: u64,
    since: Instant,
    /// Whether that was told.
    told: bool,
    /// Numbers of the ops that run, and when they were first seen to.
    running: Vec<(u32, Instant)>,
}

impl Vigil {
    /// Time between two looks.
    const LOOK: Duration = Duration::from_secs(1);
    /// Time without a wait after which the progress is unknown.
    const LAPSE: Duration = Duration::from_secs(3);

    pub(super) fn new() -> Self {
        let now = Instant::now();
        let (sleeping, running) = (Vec::new(), Vec::new());
        Self { sleeping, next: 0, looked: now, left: None, completed: 0, since: now, told: false, running }
    }

    /// Lists a wait. Answers the handle that calls it off.
    pub(crate) fn enter(&mut self, sleeping: Sleeping) -> u64 {
        if self.sleeping.is_empty() && self.left.is_none_or(|left| left.elapsed() > Self::LAPSE) {
            (self.since, self.told) = (Instant::now(), false);
        }
        self.next += 1;
        self.sleeping.push((self.next, sleeping));
        self.next
    }

    pub(crate) fn leave(&mut self, number: u64) {
        self.sleeping.retain(|(other, _)| *other != number);
        self.left = Some(Instant::now());
    }

    /// The waits that sleep, the first ones first.
    pub(crate) fn sleeping(&self) -> impl Iterator<Item = &Sleeping> {
        self.sleeping.iter().map(|(_, sleeping)| sleeping)
    }

    /// Whether it is time for another look, for a wait with this much patience.
    pub(crate) fn is_due(&self, patience: Duration) -> bool {
        self.looked.elapsed() >= Self::LOOK.min(patience / 4)
    }

    /// Takes in how many ops are settled, how many are pending and which ones run. Answers for how long none has been
    /// settled, if that is longer than `patience` and was not told.
    pub(crate) fn look(
        &mut self,
        (completed, pending): (u64, u64),
        running: impl Iterator<Item = u32>,
        patience: Duration,
    ) -> Option<Duration> {
        let now = Instant::now();
        if completed != self.completed || pending == 0 {
            (self.completed, self.since, self.told) = (completed, now, false);
        }
        self.looked = now;
        // All ops that run when nothing moves any more have begun by then.
        let still = self.since;
        let known = std::mem::take(&mut self.running);
        let seen = |number| known.iter().find(|(other, _)| *other == number).map(|(_, since)| *since);
        let first = if known.is_empty() { still } else { now };
        self.running = running.map(|number| (number, seen(number).unwrap_or(first))).collect();
        let idle = now.duration_since(self.since);
        let news = idle >= patience && !self.told;
        self.told |= news;
        news.then_some(idle)
    }

    /// For how long an op has been seen to run.
    pub(crate) fn ran_for(&self, number: u32) -> Duration {
        let seen = self.running.iter().find(|(other, _)| *other == number);
        seen.map_or(Duration::ZERO, |(_, since)| since.elapsed())
    }
}
