//! The registrar's notes: a part of the tracker.

use super::record::{write_ready, write_settled};
use super::recording::Outcome;
use super::{Log, Ran, ticks};
use std::sync::Arc;

pub(crate) struct Registered {
    log: Arc<Log>,
    /// The first ticket of the trace; its low half.
    first: u32,
    /// The time, and how much the registrar had done when it was taken.
    now: u64,
    done: u64,
    /// The last moment in the log.
    moment: u64,
    /// Why ops did not run.
    errors: Vec<(u32, String)>,
}

impl Registered {
    pub(crate) fn new(log: Arc<Log>, first: u32) -> Self {
        Self { log, first, now: 0, done: u64::MAX, moment: 0, errors: Vec::new() }
    }

    /// Whether an op that was pushed traced was so in this trace: one before it may have left some running.
    pub(crate) fn has(&self, number: u32) -> bool {
        is_since(self.first, number)
    }

    /// An op is ready. `done` grows with each act of the registrar's: ops that become ready by the same thing do so at
    /// the same time.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as settled()
    pub(crate) fn ready(&mut self, number: u32, done: u64) {
        if self.has(number) {
            if self.done != done {
                (self.now, self.done) = (ticks(), done);
            }
            // SAFETY: the registrar's role makes the caller alone.
            unsafe { write_ready(&self.log, number, self.now, &mut self.moment) };
        }
    }

    /// An op is settled: when its run ends, unless it comes `late` or did not run.
    #[inline(always)]
    #[allow(clippy::inline_always)] // into those that settle what has run
    pub(crate) fn settled(&mut self, number: u32, outcome: Outcome, done: u64, ran: Option<Ran>, late: bool) {
        if self.has(number) {
            // An op taken along by another one ended before that one was settled.
            let now = ran.filter(|ran| !late && ran.ended() >= self.now).map_or_else(ticks, Ran::ended);
            (self.now, self.done) = (now, done);
            // SAFETY: as above.
            unsafe { write_settled(&self.log, number, outcome, ran, now, self.moment) };
        }
    }

    /// Says why an op did not run.
    pub(crate) fn explain(&mut self, number: u32, reason: String) {
        if self.has(number) {
            self.errors.push((number, reason));
        }
    }

    /// Its notes so far.
    pub(crate) fn errors(&self) -> &[(u32, String)] {
        &self.errors
    }
}

/// Whether a number, known by its low half, is that of a ticket taken since this one.
pub(super) fn is_since(first: u32, number: u32) -> bool {
    number.wrapping_sub(first) < 1 << 31
}
