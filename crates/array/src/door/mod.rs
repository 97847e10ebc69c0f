//! The door: the one way of a call into the engine, or into a recording.
//!
//! | destination | when | does |
//! |---|---|---|
//! | engine | otherwise | checks, decides what the op does to its arrays' ranges, pushes: all under one lock |
//! | recording | this thread records | checks, appends; nothing runs |
//!
//! One word of the thread decides between them (`memory::recorded`). A small native op does not need the engine if all
//! its inputs are ready (`ops::at_once`).

mod call;
pub mod recording;
mod replay;

pub use call::{Call, Repeatable, push, push_pair, record, submit, submit_overwriting};
pub(crate) use call::{check, push_opaque};
pub(crate) use call::{note, push_renaming, push_walk};
pub use replay::{ReplayCall, Versions, push_replay};
