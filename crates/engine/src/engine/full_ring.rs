//! The pusher's part while the ring of pushes is full.
//!
//! Either the workers run long ops, or the registrar has lost its processor: then the pusher registers some pushes itself, so
//! that a push never waits for an op. Or the workers get through short ops, and come to the ring for more when few are left:
//! then it waits. The workers would settle the pusher's ops with cache lines that it has just written, at a quarter of their
//! speed, and the ring would be full again before they came to register by themselves: so once it has begun it goes on.

use super::Core;
use crate::op::Op;
use crate::sched::SLOTS;
use crate::sync::{spin_hint, yield_now};

/// Pauses between two looks at a full ring, and looks at which it stands still before a pusher does something: 15 us.
const PAUSES: u32 = 32;
const PATIENCE: u32 = 32;
/// Ops settled meanwhile by workers that will soon come for more, and how often a pusher lets them: for 1 ms.
const SOON: u64 = 16;
const TIMES: u32 = 64;

/// A ring that stands still, as a pusher sees it.
struct Standstill {
    /// Pushes that were registered at the last look.
    registered: u64,
    /// Ops that were settled when it last lost patience.
    settled: u64,
    /// Looks since it moved.
    looks: u32,
    /// How often it was given more time.
    extended: u32,
}

impl Standstill {
    fn new(registered: u64, settled: u64) -> Self {
        Self { registered, settled, looks: 0, extended: 0 }
    }

    /// Answers whether to help now. A worker that did not come for so long will not come soon: from then on help is due
    /// at each look.
    fn is_help_due(&mut self, registered: u64, settled: impl FnOnce() -> u64) -> bool {
        let before = std::mem::replace(&mut self.registered, registered);
        self.looks = if before == registered { self.looks + 1 } else { 0 };
        if self.looks <= PATIENCE {
            return false;
        }
        self.looks = PATIENCE;
        let before = std::mem::replace(&mut self.settled, settled());
        if self.settled - before < SOON || self.extended == TIMES {
            return true;
        }
        (self.looks, self.extended) = (0, self.extended + 1);
        false
    }
}

impl Core {
    /// Puts something with so many accesses into the ring, helping the registrar while the ring is full.
    #[inline]
    pub(super) fn push_cell(&self, accesses: usize, fill: impl FnOnce(*mut Op, u64)) {
        let pool = self.pool();
        let mut was_full = false;
        pool.registrar.push(accesses, fill, |ticket| {
            was_full = true;
            self.wait_for_slot(ticket);
        });
        if was_full {
            pool.catch_up_later(); // with what make_room() has left
        }
    }

    /// Waits until the ring has some room again, and makes it if no other thread does.
    #[cold]
    fn wait_for_slot(&self, ticket: u64) {
        let pool = self.pool();
        let (registrar, ring) = (&pool.registrar, &pool.registrar.ring);
        let mut standstill = Standstill::new(ring.registered(), registrar.settled());
        // Some slots at a time: a pusher at the heels of the registrar would take its cache lines away.
        while ring.free_after(ticket, standstill.registered) < SLOTS / 8 {
            (0..PAUSES).for_each(|_| spin_hint());
            if standstill.is_help_due(ring.registered(), || registrar.settled()) {
                registrar.make_room();
                pool.wake_workers(); // not inline: this thread's ticket is not published
                yield_now();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Looks until help is due; at each, so many pushes and ops more are registered and settled.
    fn looks_until_help(registered: u64, settled: u64) -> Option<u64> {
        let mut standstill = Standstill::new(0, 0);
        (1..100_000).find(|look| standstill.is_help_due(look * registered, || look * settled))
    }

    #[test]
    fn who_stands_still_is_helped() {
        assert_eq!(looks_until_help(0, 0), Some(u64::from(PATIENCE) + 1));
        let mut standstill = Standstill::new(0, 0);
        let looks = (0..2 * PATIENCE).filter(|_| standstill.is_help_due(0, || 0)).count();
        assert_eq!(looks, PATIENCE as usize, "and again at each look");
        assert!(!standstill.is_help_due(1, || 0), "until it moves");
    }

    #[test]
    fn who_registers_is_left_alone() {
        assert_eq!(looks_until_help(1, 0), None);
    }

    #[test]
    fn who_settles_short_ops_is_given_time_but_not_for_ever() {
        let patience = u64::from(PATIENCE) + 1;
        assert_eq!(looks_until_help(0, 1), Some((u64::from(TIMES) + 1) * patience));
        // Ops so long that pushes would wait for each.
        let mut standstill = Standstill::new(0, 0);
        let late = (1..100_000).find(|look| standstill.is_help_due(0, || look / patience * (SOON - 1)));
        assert_eq!(late, Some(patience));
    }
}
