//! A thread that waits for one event, and is woken for no other.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | WATCHING | the waiter polls | PARKED by the waiter, DONE by the registrar |
//! | PARKED | the waiter sleeps, or is about to | DONE by the registrar, who then wakes it |
//! | DONE | the answer is there | |

use crate::failure::Failure;
use crate::sync::{AtomicU32, Ordering, Parker, Unparker, UnsafeCell};
use std::sync::Arc;
use std::time::Instant;

const WATCHING: u32 = 0;
const PARKED: u32 = 1;
const DONE: u32 = 2;

/// What the registrar answers, and whom.
pub(crate) struct Waiter {
    state: AtomicU32,
    answer: UnsafeCell<Option<Arc<Failure>>>,
    unparker: Unparker,
}

// SAFETY: `answer` is written by the one registrar before DONE and read by the waiter after it.
unsafe impl Send for Waiter {}
// SAFETY: as above.
unsafe impl Sync for Waiter {}

impl Waiter {
    pub(crate) fn new(parker: &Parker) -> Arc<Self> {
        Arc::new(Self { state: AtomicU32::new(WATCHING), answer: UnsafeCell::new(None), unparker: parker.unparker() })
    }

    /// Gives the answer, once. Answers whether the waiter sleeps and must be [woken](Self::wake).
    #[must_use]
    pub(crate) fn answer(&self, failure: Option<Arc<Failure>>) -> bool {
        // SAFETY: the registrar answers once, and the waiter does not look before DONE.
        self.answer.with_mut(|answer| unsafe { *answer = failure });
        // ORDERING: Release pairs with the Acquire in is_done(); Acquire orders the wake behind PARKED.
        self.state.swap(DONE, Ordering::AcqRel) == PARKED
    }

    /// Wakes the sleeping waiter.
    pub(crate) fn wake(&self) {
        self.unparker.unpark();
    }

    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        // ORDERING: pairs with the Release in answer().
        self.state.load(Ordering::Acquire) == DONE
    }

    /// Sleeps until the answer is there or the deadline has passed. Answers whether it is there.
    pub(crate) fn sleep(&self, parker: &Parker, deadline: Option<Instant>) -> bool {
        loop {
            // ORDERING: pairs with the swap in answer(): one of the two comes first and the other sees it.
            let state = self.state.compare_exchange(WATCHING, PARKED, Ordering::AcqRel, Ordering::Acquire);
            if state == Err(DONE) {
                return true;
            }
            if !parker.park(deadline) {
                return self.is_done();
            }
            // The token may be an old one, of a wait that ended by its deadline: look again.
        }
    }

    /// Takes the answer; call it once, when done.
    pub(crate) fn take(&self) -> Option<Arc<Failure>> {
        debug_assert!(self.is_done());
        // SAFETY: after DONE the answer is the waiter's alone.
        self.answer.with_mut(|answer| unsafe { (*answer).take() })
    }
}
