//! Unreported failures.
//!
//! A program that pushes ops and never asks for them must not fill the memory with their failures: each may hold a
//! traceback and all its references. The first ones are kept; of the others, how many there were.

use crate::failure::{Cause, Failure};
use std::sync::Arc;

/// Failures that are kept.
pub(crate) const KEPT: usize = if cfg!(test) { 64 } else { 1 << 16 };

/// Failures that need no look at all, and those that come to a full list between two looks at it.
const FEW: usize = 16;
const BETWEEN_LOOKS: u64 = 1024;

#[derive(Default)]
pub(crate) struct Unreported {
    failures: Vec<Arc<Failure>>,
    /// How many there are when those that were told are looked for.
    looked_at: usize,
    /// Failures since the list was full.
    further: u64,
}

impl Unreported {
    /// Takes a failure in. Dropped failures go to `dead`, to be freed elsewhere.
    pub(crate) fn push(&mut self, failure: Arc<Failure>, dead: &mut Vec<Arc<Failure>>) {
        let count = self.failures.len();
        if count >= self.looked_at && (count < KEPT || self.further.is_multiple_of(BETWEEN_LOOKS)) {
            // Those that were told at a wait on their version need not be told again.
            dead.extend(self.failures.extract_if(.., |failure| failure.is_reported()));
            self.looked_at = (2 * self.failures.len()).clamp(FEW, KEPT);
        }
        if self.failures.len() < KEPT {
            self.failures.push(failure);
        } else {
            self.further += 1;
            dead.push(failure);
        }
    }

    /// The untold failures, which now count as told; the last one stands for those that were not kept.
    pub(crate) fn report(&mut self, dead: &mut Vec<Arc<Failure>>) -> Vec<Arc<Failure>> {
        let mut failures = std::mem::take(&mut self.failures);
        dead.extend(failures.extract_if(.., |failure| !failure.report()));
        match std::mem::take(&mut self.further) {
            0 => {}
            count => failures.push(Arc::new(Failure::new("further ops".to_owned(), Cause::Further(count)))),
        }
        failures
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn failures_that_nobody_asks_for_are_counted_when_there_are_many() {
        let (mut unreported, mut dead) = (Unreported::default(), Vec::new());
        let fail = |number| Arc::new(Failure::new(format!("op #{number}"), Cause::Native(1)));
        for number in 0..KEPT + 10 {
            unreported.push(fail(number), &mut dead);
        }
        assert_eq!(dead.len(), 10);
        let failures = unreported.report(&mut dead);
        assert_eq!(failures.len(), KEPT + 1);
        assert_eq!(failures.iter().map(|failure| failure.ops()).sum::<u64>(), KEPT as u64 + 10);
        assert!(failures[KEPT].to_string().starts_with("further ops: 10 more ops failed"), "{}", failures[KEPT]);
        assert!(unreported.report(&mut dead).is_empty());
    }

    #[test]
    fn those_that_were_told_make_room() {
        let (mut unreported, mut dead) = (Unreported::default(), Vec::new());
        for number in 0..10 * KEPT {
            let failure = Arc::new(Failure::new(format!("op #{number}"), Cause::Native(1)));
            failure.report();
            unreported.push(failure, &mut dead);
        }
        assert!(unreported.report(&mut dead).is_empty());
        assert_eq!(dead.len(), 10 * KEPT);
    }
}
