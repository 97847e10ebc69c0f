//! Tracking: from pushes to ready ops, and from finished ops to the next ready ones.
//!
//! # The protocol
//!
//! Any number of threads push and finish ops; one at a time, the *registrar*, follows up.
//!
//! | party | writes | with |
//! |---|---|---|
//! | pusher | one op into the slot of its ticket ([`ring`]) | one `fetch_add`, one release store |
//! | finisher | its op into the [`inbox`], if it does not get the role; or into its own hand ([`hands`]) | one compare-exchange |
//! | registrar | variables' queues, countdowns, the slab, ordered lanes | plain loads and stores |
//!
//! The registrar's role is one flag ([`turn`]). No push, no grant and no completion waits for it: a thread that does not
//! get it leaves the work where the holder, or the next one, finds it, and goes on. No user code and no allocation of
//! unbounded size runs under it: payloads and failures that die are dropped, and threads are woken, by the
//! [`Outbox`](outbox::Outbox) after the role was given back.
//!
//! A ticket is the op's number and its place in the global order, so a push over many variables is one step, for all
//! threads and all orders of variables.
//!
//! # Why nothing is lost
//!
//! *A finished op.* The finisher puts it into the inbox, then tries to take the role. The holder
//! gives the role back, then looks into the inbox. At least one of the two sees the other (Dekker): the finisher takes the
//! role, or the holder sees the op and takes the role again. `sync/litmus.md` has it as a litmus test, *finisher-and-holder*,
//! in which the holder's accesses are `a` and `b`, the finisher's `c` and `d`.
//!
//! All four are `SeqCst`, so one total order S holds them and agrees with the order of each place. If `b` reads 0, it is
//! before `c` in S; then `a < b < c < d`, and `d`, which is after `a`, does not read the 1 that `a` overwrote. If it reads
//! the 1 of a later holder, that one's `a` is after `d`, hence after `c`, and its `b` sees the op. The same goes for the
//! compare-exchange behind `d`, which reads the same value as `d` or a later one. A relaxed `d` would not do: on aarch64 a
//! plain load may be done before the store of the exclusive pair in `c`. loom cannot tell, as it has no `SeqCst` accesses;
//! it checks the protocol with a fence behind `a` and `c` ([`full_fence_after_rmw`]), which is no weaker.
//!
//! [`full_fence_after_rmw`]: crate::sync::full_fence_after_rmw
//!
//! Ops that take less than a turn are kept by their worker, without that try, as long as nobody can tell: see `pool/sleep.md`.
//!
//! *A pushed op.* The pusher takes a ticket, then looks whether a worker is searching. A worker
//! announces its sleep, then compares tickets with registrations; see `pool/sleep.md`.
//!
//! *Memory.* An op's cell leaves a ring slot when the registrar takes it and is replaced by a free
//! one in the same step. It is freed when it is settled, by the registrar. Between the two it has
//! one owner (table in `op`).

mod by_priority;
mod epoch;
mod hands;
mod inbox;
mod order;
mod outbox;
mod pull;
mod queues;
mod registrar;
mod replays;
mod ring;
mod traced;
mod tracker;
mod turn;
mod unreported;
mod waits;
mod walk;

#[cfg(all(test, loom))]
pub(crate) use hands::Hands;
pub(crate) use order::Order;
pub(crate) use pull::{Pull, PullNothing};
pub(crate) use queues::{LANES, queue_of};
pub(crate) use registrar::Registrar;
#[cfg(all(test, loom))]
pub(crate) use ring::Ring;
pub(crate) use ring::SLOTS;
pub(crate) use tracker::Tracker;
pub(crate) use turn::Turn;
pub(crate) use walk::Blocked;

#[cfg(all(test, not(loom)))]
mod tests;
