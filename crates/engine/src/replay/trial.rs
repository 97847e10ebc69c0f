//! Whether the steps of a plan are shared among workers or go one by one, found by trial.
//!
//! The times of steps tell it where they are long, or next to nothing. Between the two it depends on how fast lines travel between
//! processors, on who else uses these, and on the memory that steps touch: so now and then one call goes either way and is timed.

use super::plan::TIMED_FIRST;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Calls from one trial to the next, if both ways take about as long, and at most.
const OFTEN: u32 = 64;
const RARELY: u32 = 4096;

/// How a call is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) one_by_one: bool,
    /// Whether it is to be timed as a whole.
    pub(super) is_tried: bool,
}

impl Way {
    pub(super) const SHARED: Self = Self { one_by_one: false, is_tried: false };
    pub(super) const ONE_BY_ONE: Self = Self { one_by_one: true, is_tried: false };
}

/// See the module.
pub(super) struct Trial {
    /// Nanoseconds of a call whose steps are shared, and of one whose steps go one by one; 0 if that is not known.
    took: [AtomicU64; 2],
    /// The call that is tried next, with shared steps; the one behind it goes one by one.
    next: AtomicU32,
    /// Calls between two trials.
    gap: AtomicU32,
    one_by_one: AtomicBool,
}

impl Trial {
    pub(super) fn new() -> Self {
        Self {
            took: [(); 2].map(|()| AtomicU64::new(0)),
            next: AtomicU32::new(TIMED_FIRST),
            gap: AtomicU32::new(OFTEN),
            one_by_one: AtomicBool::new(false),
        }
    }

    /// The way of the call of this number.
    #[inline]
    pub(super) fn way(&self, call: u32) -> Way {
        // ORDERING: a guess, as all here: calls of one plan may overlap.
        match call.wrapping_sub(self.next.load(Ordering::Relaxed)).cast_signed() {
            0 => Way { one_by_one: false, is_tried: true },
            1 => {
                // ORDERING: as above.
                self.next.store(call.wrapping_add(self.gap.load(Ordering::Relaxed)), Ordering::Relaxed);
                Way { one_by_one: true, is_tried: true }
            }
            late => {
                if late > 1 {
                    // The call to be tried did not come here.
                    // ORDERING: as above.
                    self.next.store(call.wrapping_add(1), Ordering::Relaxed);
                }
                // ORDERING: as above.
                Way { one_by_one: self.one_by_one.load(Ordering::Relaxed), is_tried: false }
            }
        }
    }

    /// Notes how long a call took that was tried. The time of others on the processor meanwhile counts little.
    pub(super) fn note(&self, one_by_one: bool, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        let place = &self.took[usize::from(one_by_one)];
        // ORDERING: as above.
        let before = place.load(Ordering::Relaxed);
        let now = if before == 0 || took < before {
            took
        } else {
            before + (took.min(before.saturating_mul(2)) - before) / 4
        };
        // ORDERING: as above.
        place.store(now, Ordering::Relaxed);
        // ORDERING: as above.
        let [shared, alone] = [0, 1].map(|way| self.took[way].load(Ordering::Relaxed));
        if shared == 0 || alone == 0 {
            return;
        }
        // ORDERING: as above.
        self.one_by_one.store(alone < shared, Ordering::Relaxed);
        let is_close = shared.max(alone) / 5 <= shared.min(alone) / 4;
        // ORDERING: as above.
        let gap = if is_close { OFTEN } else { RARELY.min(2 * self.gap.load(Ordering::Relaxed)) };
        // ORDERING: as above.
        self.gap.store(gap, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SHARED: Way = Way::SHARED;
    const ALONE: Way = Way::ONE_BY_ONE;

    /// Calls that take so long if they are shared, and if they go one by one. Answers how many were tried, and the way of the last one.
    fn call(trial: &Trial, calls: std::ops::Range<u32>, took: [u64; 2]) -> (usize, Way) {
        let (mut tried, mut last) = (0, SHARED);
        for call in calls {
            let way = trial.way(call);
            if way.is_tried {
                trial.note(way.one_by_one, Duration::from_nanos(took[usize::from(way.one_by_one)]));
                tried += 1;
            } else {
                last = way;
            }
        }
        (tried, last)
    }

    #[test]
    fn the_faster_way_is_gone_from_the_first_trial_on() {
        for (took, way) in [([1000, 2000], SHARED), ([2000, 1000], ALONE)] {
            let trial = Trial::new();
            assert_eq!(call(&trial, 0..2, took), (0, SHARED), "these are timed step by step");
            assert_eq!(call(&trial, 2..10, took), (2, way));
        }
    }

    #[test]
    fn what_is_clear_is_tried_less_and_less_often() {
        let trial = Trial::new();
        let (close, _) = call(&trial, 0..10_000, [1000, 1100]);
        let (clear, way) = call(&trial, 10_000..20_000, [1000, 5000]);
        assert!(close > 300 && clear < 20 && way == SHARED, "{close} and {clear} of ten thousand");
    }

    #[test]
    fn a_way_that_has_become_the_faster_one_is_found() {
        let trial = Trial::new();
        assert_eq!(call(&trial, 0..1000, [1000, 5000]).1, SHARED);
        assert_eq!(call(&trial, 1000..100_000, [1000, 500]).1, ALONE);
        assert_eq!(call(&trial, 100_000..300_000, [200, 500]).1, SHARED);
    }

    #[test]
    fn one_bad_moment_changes_nothing() {
        let trial = Trial::new();
        call(&trial, 0..100, [1000, 2000]);
        trial.note(false, Duration::from_millis(4));
        assert_eq!(call(&trial, 100..101, [1000, 2000]).1, SHARED);
    }

    #[test]
    fn trials_go_on_after_calls_that_went_another_way() {
        for first in [4, 3, 1000, u32::MAX - 10] {
            let trial = Trial::new();
            let mut way = SHARED;
            for at in 0..100 {
                let number = first.wrapping_add(at);
                way = trial.way(number);
                if way.is_tried {
                    trial.note(way.one_by_one, Duration::from_nanos(if way.one_by_one { 1000 } else { 2000 }));
                }
            }
            assert!(way.one_by_one, "from {first} on");
        }
    }
}
