//! The history of an engine: recorded while it is traced, read after.
//!
//! # Who writes what
//!
//! | what | writer | where | read when |
//! |---|---|---|---|
//! | push, variable | the pusher, between taking its ticket and publishing it | the `Log` of its thread in this trace | any time, up to the published length |
//! | start, end | the running thread; the holder of a completion token | the op's cell | by the registrar, when it settles the op |
//! | ready, settled | the registrar | a log of its own, reached by the role alone | under the role |
//! | ops run at their push, waits, failures | any thread | the `Recorder`, under a lock: none of it is short | any time |
//!
//! A pusher finds its log by a raw pointer, and a trace that stops frees the logs. That is sound because a pusher looks whether it is traced *after*
//! it has taken its ticket, and the end of a trace is set *before* a look at the tickets: earlier pushes are published, and their pushers done, when
//! the registrar has caught up (the handshake of `close`).
//!
//! # What it costs
//!
//! Nothing while there is no trace: each stage asks one question that it asked anyway. Whether a push is traced comes with whether the engine is
//! closed; whether a run is timed, with whether runs are cancelled; the registrar's notes, with a flag of the op beside its priority. Times are raw
//! counts of the processor; names are looked at when an op is pushed, and kept once.
//!
//! A *sample* is a trace that leaves when it is full: the pusher that finds no room takes it out of the engine's state, as the end of a trace does,
//! unless that has another trace by now. Recorder and logs stay until it is stopped.

mod clock;
mod collect;
mod device;
mod local;
mod log;
mod names;
mod note;
mod record;
mod recorder;
mod recording;
mod registered;
mod span;

pub(crate) use clock::ticks;
pub(crate) use collect::Running;
pub use device::{DeviceRun, RecordedRun, RecordedStream, StreamKind};
pub(crate) use local::thread_in;
pub(crate) use log::Log;
pub(crate) use note::note;
pub use note::{Describe, Kind, Note};
pub(crate) use recorder::{Identify, News, Push, Recorder, Seen};
pub use recording::{Outcome, RecordedAccess, RecordedOp, RecordedThread, RecordedVariable, Recording};
pub(crate) use registered::Registered;
pub(crate) use span::Ran;
pub use span::Span;

#[cfg(all(test, not(loom)))]
mod tests;
