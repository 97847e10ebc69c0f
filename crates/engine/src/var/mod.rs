//! A variable: its current holders, its queue, and the outcome of its last version.
//!
//! This module knows accesses and grants. It knows neither threads nor payloads: an access
//! belongs to an *owner*, a pointer that is handed back when the access is granted.
//!
//! # State
//!
//! | field | holds | changed by |
//! |---|---|---|
//! | `version` | mutations pushed | any pusher, one `fetch_add` |
//! | `completed` | mutations finished | the registrar |
//! | `failed` | whether the last finished version failed | the registrar |
//! | `queue.readers` | reads granted and not yet left | the registrar |
//! | `queue.writer` | owner of the granted exclusive access, or null | the registrar |
//! | `queue.head .. tail` | accesses not yet granted, first come first served | the registrar |
//! | `queue.failure` | the failure of the last finished version | the registrar |
//! | `queue.begun` | whether an op that ran has changed what the last good version left | the registrar |
//! | `queue.made` | whether an op has ever made a good version | the registrar |
//!
//! # Transitions
//!
//! | event | readers | writer | queue | answer |
//! |---|---|---|---|---|
//! | a read enters | any | none | empty | granted, readers + 1 |
//! | an exclusive access enters | 0 | none | empty | granted, writer = owner |
//! | any other access enters | | | | appended |
//! | a read leaves | 1 | none | exclusive at the head | readers = 0, head granted |
//! | an exclusive access leaves | 0 | owner | reads at the head | all leading reads granted |
//! | an exclusive access leaves | 0 | owner | exclusive at the head | head granted |
//!
//! Readers are counted, never listed: a million readers cost a million increments and no scan.
//! No reader overtakes a queued writer, since a non-empty queue is appended to.
//!
//! # Failures and recovery
//!
//! An op that was skipped has not touched its target, so the last good version is still there; one that ran and failed
//! may have left half of its work. `failure` and `begun` tell these apart, for each variable:
//!
//! | a version settles as | failure | begun |
//! |---|---|---|
//! | done, overwrite | none | no |
//! | done, mutate, nothing had failed | none | no |
//! | done, mutate, behind a failure (an op that runs always) | stays | yes |
//! | skipped | that of the other op | stays |
//! | skipped, as an op that stands for what another variable's ops wrote (`PushOptions::hands_on`) | the same | as there |
//! | failed | its own | yes |
//! | taken over by a fork, unfinished | of the fork | yes |
//! | recovered | none | no; refused if yes |
//!
//! Recovery waits until all that was pushed has left, and then clears the failure under the role: nothing runs, no version
//! is made, and what is pushed behind it sees a value. It comes too late, and waits again, while an op holds the variable alone.
//!
//! # Who may act
//!
//! The queue belongs to the *registrar*: the one thread that holds the engine's registrar role
//! (see `sched::turn`). It is proved by a [`Seat`], which only the role hands out.

mod access;
mod node;
mod queue;

pub use access::AccessKind;
pub(crate) use access::AccessNode;
pub(crate) use node::{Health, VarNode};
pub(crate) use queue::Settled;

/// Proof that the caller holds the registrar role of the engine at hand.
///
/// It is not `Send`, not `Clone`, and lives no longer than the role is held.
pub(crate) struct Seat {
    _not_send: std::marker::PhantomData<*mut ()>,
}

impl Seat {
    /// Takes the seat.
    ///
    /// # Safety
    ///
    /// The caller holds the registrar role of the engine whose variables and ops it touches
    /// with this seat, for as long as the seat lives.
    pub(crate) unsafe fn take() -> Self {
        Self { _not_send: std::marker::PhantomData }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
