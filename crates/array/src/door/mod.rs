//! The door: the one way of a call into the engine, or into a recording.
//!
//! | destination | when | does |
//! |---|---|---|
//! | engine | otherwise | checks, decides what the op does to its arrays' ranges, pushes: all under one lock |
//! | recording | this thread records | checks, appends; nothing runs |
//!
//! Which one it is says one word of the thread (`memory::recorded`). Small native ops do not need the engine if all that
//! they read is there (`ops::at_once`).

mod call;
pub mod recording;
mod replay;

pub(crate) use call::note;
pub use call::{Call, Repeatable, push, push_pair, record, submit};
pub(crate) use call::{check, push_opaque};
pub use replay::{ReplayCall, Versions, push_replay};
