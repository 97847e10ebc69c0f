//! Whether a thread that spins keeps the one it spins for from running.
//!
//! The system may leave two threads that wait for each other on one processor. There each of them spins for an event that
//! needs the other's processor, sleeps, and is woken: 35 us for an op that takes 0.6 us between two processors. If both yield
//! soon, it takes 4 us.
//!
//! But a yield is a system call, and beside a stranger's busy thread it costs a whole slice of time. So a thread yields soon
//! only if that has just paid, or if spinning has not and no yield of late has cost a slice.

use crate::sync::yield_now;
use std::time::{Duration, Instant};

/// A yield without another thread's run takes less.
const SWITCHES: Duration = Duration::from_micros(1);
/// A thread that keeps the processor for longer does not wait for this one.
const TURN: Duration = Duration::from_micros(50);
/// How often a thread that has lost a slice then spins in vain before it tries once more, and one that loses them again and again.
const SHY: u32 = 256;
const SHYEST: u32 = 4096;

/// A thread's view of the others on its processor.
#[derive(Clone, Copy)]
pub(crate) struct Crowd {
    /// Whether to yield soon.
    suspected: bool,
    /// How often spinning in vain is no reason to try, and how often it was after the last slice that was lost.
    shy: u32,
    was_shy: u32,
}

impl Crowd {
    pub(crate) const fn new() -> Self {
        Self { suspected: false, shy: 0, was_shy: 0 }
    }

    /// Whether to yield soon.
    #[inline]
    pub(crate) fn is_suspected(self) -> bool {
        self.suspected
    }

    /// The view after a spin in vain.
    pub(crate) fn after_spin(self) -> Self {
        Self { suspected: self.shy == 0, shy: self.shy.saturating_sub(1), ..self }
    }

    /// Lets others run. The view afterwards.
    pub(crate) fn after_yield(self) -> Self {
        let before = Instant::now();
        yield_now();
        self.after(before.elapsed())
    }

    fn after(self, yielded: Duration) -> Self {
        if yielded >= TURN {
            let shy = (2 * self.was_shy).clamp(SHY, SHYEST);
            Self { suspected: false, shy, was_shy: shy }
        } else if yielded >= SWITCHES {
            Self { suspected: true, shy: 0, was_shy: self.was_shy / 2 }
        } else {
            Self { suspected: false, ..self }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn yields_go_on_while_they_pay() {
        let crowd = Crowd::new();
        assert!(!crowd.is_suspected());
        let crowd = crowd.after_spin();
        assert!(crowd.is_suspected(), "spinning was in vain");
        assert!(crowd.after(SWITCHES).is_suspected(), "somebody has run for a moment");
        assert!(!crowd.after(SWITCHES / 2).is_suspected(), "nobody else was there");
    }

    #[test]
    fn who_loses_slices_tries_less_and_less_often() {
        let spins = |mut crowd: Crowd| {
            let mut spins = 0;
            while !crowd.is_suspected() {
                crowd = crowd.after_spin();
                spins += 1;
            }
            (spins, crowd)
        };
        let (mut before, mut crowd) = spins(Crowd::new());
        assert_eq!(before, 1);
        for _ in 0..20 {
            let (now, next) = spins(crowd.after(TURN));
            assert!(now > before || now == SHYEST + 1);
            (before, crowd) = (now, next);
        }
        assert_eq!(before, SHYEST + 1);
        let (after_two_that_paid, _) = spins(crowd.after(SWITCHES).after(SWITCHES).after(TURN));
        assert!(after_two_that_paid < before);
    }
}
