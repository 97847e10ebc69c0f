//! How long a worker's ops take, and how far ahead of them pushes are registered therefore.

use std::time::{Duration, Instant};

/// So many ops are timed together: a look at the clock takes as long as a short op.
const OPS: u32 = 32;
/// The least time of a long op.
const LONG: Duration = Duration::from_micros(2);
/// The longest time of an op for which a turn of its own costs more than it is worth to a worker that has nothing to do.
const BRIEF: Duration = Duration::from_nanos(300);
/// Pushes that a worker with something to run wants registered and not settled. Chains of long ops are worth
/// following, which goes as far as they are registered. Short ones pay for it: an op registered long before it
/// runs waits in more queues, and has left the cache by then.
const FAR: u64 = 16384;
const NEAR: u64 = 256;
/// Native ops after which hosted ones are looked for, so that an endless stream does not starve them.
const TURN: u32 = 16;
const TURN_OF_SHORT: u32 = 1024;

pub(super) struct Pace {
    is_long: bool,
    is_brief: bool,
    ran: u32,
    since: Instant,
}

impl Pace {
    /// A pace of long ops, until they turn out to be short.
    pub(super) fn new() -> Self {
        Self { is_long: true, is_brief: false, ran: 0, since: Instant::now() }
    }

    /// A pace of the shortest ops.
    #[cfg(all(test, loom))]
    pub(super) fn brief() -> Self {
        Self { is_long: false, is_brief: true, ..Self::new() }
    }

    /// Leaves out the time without anything to run.
    pub(super) fn resume(&mut self) {
        (self.ran, self.since) = (0, Instant::now());
    }

    /// Counts an op that has run.
    #[inline]
    pub(super) fn count(&mut self) {
        self.ran += 1;
        if self.ran == OPS {
            let elapsed = self.since.elapsed();
            (self.is_long, self.is_brief) = (elapsed > OPS * LONG, elapsed < OPS * BRIEF);
            self.resume();
        }
    }

    /// Whether ops are so long that a turn for each hardly counts.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.is_long
    }

    /// Whether ops are so short that several are better settled in one turn, though another worker waits for what they make ready.
    #[inline]
    pub(super) fn is_brief(&self) -> bool {
        self.is_brief
    }

    /// Native ops in a row.
    #[inline]
    pub(super) fn turn(&self) -> u32 {
        if self.is_long { TURN } else { TURN_OF_SHORT }
    }

    /// Pushes to have registered and not settled, for a worker that has something to run and wants more.
    #[inline]
    pub(super) fn reach(&self, wanted: usize) -> u64 {
        match wanted {
            _ if self.is_long => FAR,
            0 => 0,
            _ => NEAR,
        }
    }
}
