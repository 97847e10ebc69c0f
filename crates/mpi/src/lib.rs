//! MPI, found at run time: collectives on memory; the caller orders the accesses. Knows no engine, no arrays, no
//! Python.
//!
//! # Protocol
//!
//! A [`Communicator`] stands for two of MPI's, duplicates without other users: *data* carries the requested transfers, *control* carries headers and
//! notices. [`Communicator::begin`] and [`Communicator::carry_on`] are called from one thread at a time for collectives, one for sends and one for
//! receives, in the order that all ranks share.
//!
//! | step of a call | does | ends with an error if |
//! |---|---|---|
//! | refuse | looks at the state | closed, broken, or this process was forked |
//! | agree (checking mode) | a header goes to every other rank, and one comes from each: what is called, on what, from which line | two headers differ |
//! | start | MPI's non-blocking call, on the caller's memory | MPI says so |
//! | poll | tests the request; looks round now and then | a notice has come, a rank has died, or the time is up |
//!
//! A call that has begun is a [`Flight`], which knows how far it has come. The thread that carries it on may be called away
//! at any poll: another one goes on from there, with nothing posted twice.
//!
//! Requests are polled and never waited for: a thread blocked in MPI spins, hears of nothing, and cannot be told to
//! stop. Polls come one after another at first, then with the processor offered to others, then with sleeps ([`Pace`]).
//!
//! | state | goes to | when |
//! |---|---|---|
//! | open | broken | a call has failed here, an op before it was skipped, or a notice has come |
//! | open | closed | its owner says so |
//!
//! A communicator that breaks tells every other rank by a *notice*, once; its receiver does not pass it on. From then on the ranks would not agree on
//! the order any more, so it stays broken. Notices and headers are small enough to be sent eagerly: no rank waits until they are received.
//!
//! Invariant: nothing starts on *data* in checking mode before all ranks have agreed, so ranks that differ touch no memory.
//! Invariant: memory that a collective was given up on may still be written to by MPI. [`MpiError::is_abandoned`] tells the caller,
//! which keeps it for good.

mod agree;
mod communicator;
mod error;
mod flight;
mod header;
mod job;
mod notice;
mod pace;
mod peers;
mod symbols;

pub use communicator::{Communicator, Settings};
pub use error::MpiError;
pub use flight::{Away, Carried, Flight};
pub use job::{Job, Place, Work};
pub use pace::Pace;
pub use symbols::{Constants, Handle, Library};
