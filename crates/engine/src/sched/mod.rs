//! Tracking: from pushes to ready ops, and from finished ops to the next ready ones.
//!
//! # The protocol
//!
//! Any number of threads push and finish ops; one at a time, the *registrar*, follows up.
//!
//! | party | writes | with |
//! |---|---|---|
//! | pusher | one op into the slot of its ticket ([`ring`]) | one `fetch_add`, one release store |
//! | finisher | its op into the [`inbox`], if it does not get the role | one compare-exchange |
//! | registrar | variables' queues, countdowns, the slab, ordered lanes | plain loads and stores |
//!
//! The registrar's role is one flag ([`registrar`]). Nobody ever waits for it on the way of a
//! push, a grant or a completion: who wants it and does not get it leaves the work where the
//! holder, or the next one, finds it, and goes on. No user code and no allocation of unbounded
//! size runs under it: payloads and failures that die are dropped, and threads are woken, by the
//! [`Outbox`] after the role was given back.
//!
//! A ticket is the op's number and its place in the global order, so a push over many variables
//! is one step, whichever threads push whatever variables in whatever order.
//!
//! # Why nothing is lost
//!
//! *A finished op.* The finisher puts it into the inbox, then tries to take the role. The holder
//! gives the role back, then looks into the inbox. Both steps are `SeqCst` read-modify-writes, so
//! at least one of the two sees the other (Dekker): the finisher takes the role, or the holder
//! sees the op and takes the role again.
//!
//! *A pushed op.* The pusher takes a ticket, then looks whether a worker is searching. A worker
//! announces its sleep, then compares tickets with registrations; see `pool/sleep.md`.
//!
//! *Memory.* An op's cell leaves a ring slot when the registrar takes it and is replaced by a free
//! one in the same step. It is freed when it is settled, by the registrar. Between the two it has
//! one owner (table in `op`).

mod epoch;
mod inbox;
mod order;
mod outbox;
mod queues;
mod registrar;
mod replays;
mod ring;
mod tracker;
mod walk;

pub(crate) use outbox::Outbox;
pub(crate) use queues::{LANES, queue_of};
pub(crate) use registrar::{Pull, PullNothing, Registrar};
#[cfg(all(test, loom))]
pub(crate) use ring::Ring;
pub(crate) use ring::SLOTS;
pub(crate) use tracker::Tracker;
pub(crate) use walk::Blocked;

#[cfg(all(test, not(loom)))]
mod tests;
