//! When a worker would only be in the way of others, and how long it keeps out of it; see `sleep.md`.

use std::time::Duration;

/// Ops that others settle in a microsecond, the longest time between two looks, when theirs are so short that taking some
/// over would cost more than it gains.
const SHORT_OPS: u64 = 4;
/// How long a worker dozes first, and at most, in microseconds. Waking takes the system 15 of them, of a processor that
/// others may push or run on: so the longer they are quick, the less often it looks.
const FIRST: u64 = 50;
pub(super) const LONGEST: u64 = 800;

/// How a searching worker sees the others get on.
pub(super) struct Doze {
    /// Tickets settled at its last look.
    settled: u64,
    /// How long it has just dozed, in microseconds, if it has.
    dozed: Option<u64>,
}

impl Doze {
    pub(super) fn new(settled: u64) -> Self {
        Self { settled, dozed: None }
    }

    /// Begins to look, so many tickets being settled.
    pub(super) fn begin(&mut self, settled: u64) {
        *self = Self::new(settled);
    }

    /// How long to doze now, so many tickets being settled; not at all if others are not that quick, at this look or all the
    /// time that it dozed.
    pub(super) fn next(&mut self, settled: u64) -> Option<Duration> {
        let news = settled - std::mem::replace(&mut self.settled, settled);
        let is_quick = news >= self.dozed.map_or(SHORT_OPS, |dozed| SHORT_OPS * dozed);
        self.dozed = is_quick.then(|| self.dozed.map_or(FIRST, |dozed| LONGEST.min(2 * dozed)));
        self.dozed.map(Duration::from_micros)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_needed_dozes_for_longer_and_longer() {
        let mut doze = Doze::new(0);
        assert_eq!(doze.next(SHORT_OPS - 1), None);
        let mut settled = 10 * SHORT_OPS;
        assert_eq!(doze.next(settled), Some(Duration::from_micros(FIRST)));
        let mut dozed = FIRST;
        while dozed < LONGEST {
            settled += 10 * dozed;
            dozed *= 2;
            assert_eq!(doze.next(settled), Some(Duration::from_micros(dozed)));
        }
        settled += 10 * dozed;
        assert_eq!(doze.next(settled), Some(Duration::from_micros(LONGEST)));
        settled += SHORT_OPS * LONGEST - 1;
        assert_eq!(doze.next(settled), None, "their ops have turned long");
        assert_eq!(doze.next(settled + SHORT_OPS), Some(Duration::from_micros(FIRST)));
    }
}
