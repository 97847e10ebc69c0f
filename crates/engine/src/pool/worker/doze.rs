//! When a worker would only be in the way of others, and how long it keeps out of it; see `sleep.md`.

use crate::sync::spin_hint;
use std::time::{Duration, Instant};

/// Ops that others settle in a microsecond, the longest time between two looks, when theirs are so short that taking some
/// over would cost more than it gains.
const SHORT_OPS: u64 = 4;
/// How long it looks whether they go on.
const LOOK: Duration = Duration::from_micros(1);
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

    /// How long to doze now, by the number of settled tickets; not at all if others are not that quick, at this look or all the
    /// time that it dozed.
    pub(super) fn next(&mut self, mut settled: impl FnMut() -> u64) -> Option<Duration> {
        let mut news = self.news(settled());
        if self.dozed.is_none() && news >= SHORT_OPS {
            // Ops that took a while may have been settled in one turn.
            let began = Instant::now();
            while began.elapsed() < LOOK {
                spin_hint();
            }
            news = self.news(settled());
        }
        let is_quick = news >= self.dozed.map_or(SHORT_OPS, |dozed| SHORT_OPS * dozed);
        self.dozed = is_quick.then(|| self.dozed.map_or(FIRST, |dozed| LONGEST.min(2 * dozed)));
        self.dozed.map(Duration::from_micros)
    }

    /// Tickets settled since the last look.
    fn news(&mut self, settled: u64) -> u64 {
        settled - std::mem::replace(&mut self.settled, settled)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The next doze, if so many ops are settled before each look.
    fn next(doze: &mut Doze, settled: &mut u64, news: u64) -> Option<Duration> {
        doze.next(|| {
            *settled += news;
            *settled
        })
    }

    #[test]
    fn who_is_not_needed_dozes_for_longer_and_longer() {
        let (mut doze, mut settled) = (Doze::new(0), 0);
        assert_eq!(next(&mut doze, &mut settled, SHORT_OPS - 1), None);
        assert_eq!(next(&mut doze, &mut settled, 10 * SHORT_OPS), Some(Duration::from_micros(FIRST)));
        let mut dozed = FIRST;
        while dozed < LONGEST {
            let news = 10 * dozed;
            dozed *= 2;
            assert_eq!(next(&mut doze, &mut settled, news), Some(Duration::from_micros(dozed)));
        }
        assert_eq!(next(&mut doze, &mut settled, 10 * dozed), Some(Duration::from_micros(LONGEST)));
        assert_eq!(next(&mut doze, &mut settled, SHORT_OPS * LONGEST - 1), None, "their ops have turned long");
        assert_eq!(next(&mut doze, &mut settled, SHORT_OPS), Some(Duration::from_micros(FIRST)));
    }

    #[test]
    fn ops_that_were_settled_in_one_turn_are_not_taken_for_short_ones() {
        let (mut doze, mut settled) = (Doze::new(0), [16, 17, 17 + SHORT_OPS, 17 + 2 * SHORT_OPS].into_iter());
        let mut look = || settled.next().expect("four looks");
        assert_eq!(doze.next(&mut look), None, "one more in the next microsecond");
        assert_eq!(doze.next(&mut look), Some(Duration::from_micros(FIRST)));
    }
}
