//! The gate to the host: one worker at a time waits there.

use super::state::Pool;
use crate::sync::{Ordering, yield_now};
use std::time::{Duration, Instant};

/// How long a thread that has left the host waits for a worker to enter.
const HAND_OVER: Duration = Duration::from_millis(1);

impl Pool {
    #[inline]
    pub(super) fn is_gate_shut(&self) -> bool {
        // ORDERING: SeqCst: a thread that finds it shut leaves its op to the one that shut it; pairs with the store of
        // that one, which opens it and then looks.
        self.gate.load(Ordering::SeqCst)
    }

    /// Shuts the gate, unless it is shut.
    pub(super) fn shut_gate(&self) -> bool {
        // ORDERING: SeqCst, see is_gate_shut().
        if self.gate.swap(true, Ordering::SeqCst) {
            return false;
        }
        // ORDERING: see is_gate_overdue(); a reader that misses it hands over once too often.
        self.gate_shut_at.store(self.now(), Ordering::Relaxed);
        true
    }

    /// Opens it: the host was entered.
    pub(super) fn open_gate(&self) {
        // ORDERING: SeqCst: from here others may come; next we look for ops that were left to us.
        self.gate.store(false, Ordering::SeqCst);
    }

    /// Whether a worker has waited to enter the host for longer than `patience`.
    pub(crate) fn is_gate_overdue(&self, patience: Duration) -> bool {
        // ORDERING: a time to compare with; written before the gate is seen shut.
        self.is_gate_shut() && self.now().saturating_sub(self.gate_shut_at.load(Ordering::Relaxed)) > micros(patience)
    }

    /// Gives a worker that waits to enter the host time to do so, if it has waited for longer than
    /// `patience`. The caller has left the host.
    pub(crate) fn let_hosted_in(&self, patience: Duration) {
        let deadline = Instant::now() + HAND_OVER;
        while self.is_gate_overdue(patience) && Instant::now() < deadline {
            yield_now();
        }
    }

    /// Microseconds since the pool was made.
    fn now(&self) -> u64 {
        micros(self.start.elapsed())
    }
}

#[allow(clippy::cast_possible_truncation)] // half a million years
fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}
