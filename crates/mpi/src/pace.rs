//! How often to look whether a request is done.

use std::time::{Duration, Instant};

/// Polls one right after another, before the processor is offered to others.
const EAGER: u32 = 200;
/// How long the processor is offered and not left: the time of most collectives.
const BUSY: Duration = Duration::from_millis(2);
/// How many bytes a transfer is taken to move in a second, at least.
const BYTES_PER_SECOND: f64 = 1e9;
/// When a long call has turned out to be a wait for another rank.
const LONG: Duration = Duration::from_millis(100);

const NAP: Duration = Duration::from_micros(20);
const REST: Duration = Duration::from_micros(500);

/// One wait, from its first poll on.
///
/// A rank that is alone on its processor answers within a microsecond; one that shares it must let the others run, or
/// they cannot come. MPI moves data while it is polled, so a long transfer is polled for as long as it should take.
#[derive(Debug)]
pub struct Pace {
    began: Instant,
    busy: Duration,
    polls: u32,
}

impl Pace {
    /// For a transfer of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        #[allow(clippy::cast_precision_loss)] // an estimate
        let moving = Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND);
        Self { began: Instant::now(), busy: BUSY + moving, polls: 0 }
    }

    /// How long it has lasted.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether it has turned out to be long: from here on polls are apart by sleeps.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.polls >= EAGER && self.elapsed() >= self.busy
    }

    /// Lets some time go by. Answers whether to look round, at notices and ranks, before the next poll.
    pub fn pause(&mut self) -> bool {
        self.polls = self.polls.saturating_add(1);
        if self.polls < EAGER {
            std::hint::spin_loop();
            return false;
        }
        let elapsed = self.elapsed();
        if elapsed < self.busy {
            std::thread::yield_now();
            return self.polls.is_multiple_of(256);
        }
        std::thread::sleep(if elapsed < LONG { NAP } else { REST });
        self.polls.is_multiple_of(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_eager_at_first() {
        let mut pace = Pace::new(0);
        assert!((1..EAGER).all(|_| !pace.pause()));
    }

    #[test]
    fn a_long_transfer_is_polled_for_longer() {
        assert!(Pace::new(1 << 30).busy > Pace::new(0).busy + Duration::from_secs(1));
        assert!(!Pace::new(0).is_long());
    }
}
