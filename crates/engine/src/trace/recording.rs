//! The answer of a trace: the ops in the order of their pushes, and the meaning of their numbers.

use super::{Kind, RecordedRun, RecordedStream};
use std::time::Instant;

/// How an op ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Outcome {
    /// It has not.
    #[default]
    Pending = 0,
    /// It did its work.
    Done = 1,
    /// Its payload failed.
    Failed = 2,
    /// It was not run, as its inputs had failed.
    Skipped = 3,
    /// It was not run, as the engine was closed with `cancel`; or it is a wait that ended without an answer.
    Cancelled = 4,
}

impl Outcome {
    pub(super) const fn from_bits(bits: u8) -> Self {
        match bits {
            1 => Self::Done,
            2 => Self::Failed,
            3 => Self::Skipped,
            4 => Self::Cancelled,
            _ => Self::Pending,
        }
    }
}

/// An op. Times are nanoseconds since the start of the trace; 0 says that it has not happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedOp {
    /// Number of the push in its engine; `u64::MAX` for an op that was run at its push, and for a wait for room.
    pub number: u64,
    /// Its name, in [`Recording::names`].
    pub name: u32,
    /// Where it was pushed, in [`Recording::places`]; 0 if that is not known.
    pub place: u32,
    /// What it is.
    pub kind: Kind,
    /// Number of the lane it runs on.
    pub lane: u16,
    /// Its priority.
    pub priority: i32,
    /// Bytes it holds while it is pending.
    pub bytes: u64,
    /// The thread that pushed it, in [`Recording::threads`].
    pub pusher: u16,
    /// The thread that ran it; `None` if it has not started, or is a wait.
    pub worker: Option<u16>,
    /// The op inside which it was pushed, in [`Recording::ops`].
    pub parent: Option<usize>,
    /// When it was pushed.
    pub pushed: i64,
    /// When all its accesses were granted.
    pub ready: i64,
    /// When its payload began to run.
    pub started: i64,
    /// When its payload was over; when its token completed it, if that came later.
    pub ended: i64,
    /// When its variables were left.
    pub settled: i64,
    /// How it ended.
    pub outcome: Outcome,
}

/// An op's access to a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedAccess {
    /// The op, in [`Recording::ops`].
    pub op: usize,
    /// The variable, in [`Recording::variables`].
    pub variable: u32,
    /// What is done. An access that is exclusive and makes no version counts as a mutation.
    pub kind: crate::AccessKind,
    /// The version that it sees, or makes.
    pub version: u64,
}

/// A thread that pushed, ran or waited.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedThread {
    /// Its name.
    pub name: String,
    /// Its lane, if it is a worker.
    pub lane: Option<u16>,
    /// Its number for the engine's [`Host`](crate::Host).
    pub ident: u64,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedVariable {
    /// Its number in its engine.
    pub number: u64,
    /// The given name.
    pub name: Option<String>,
    /// Bytes that it stands for; 0 if that is not known.
    pub bytes: u64,
}

/// Everything recorded.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Recording {
    /// The engine, as [`Engine::id`](crate::Engine::id) answers it.
    pub engine: usize,
    /// The start, on the system's clock; it is there.
    pub start: Option<Instant>,
    /// Seconds from 1970 to the start.
    pub epoch: f64,
    /// Nanoseconds from the start to the end.
    pub duration: i64,
    /// Ops that were not kept.
    pub dropped: u64,
    /// Names of ops; the first one is empty.
    pub names: Vec<String>,
    /// Places of pushes; the first one is empty.
    pub places: Vec<String>,
    /// Threads.
    pub threads: Vec<RecordedThread>,
    /// Variables, in the order of their first sight.
    pub variables: Vec<RecordedVariable>,
    /// Ops, in the order of their pushes.
    pub ops: Vec<RecordedOp>,
    /// Their accesses, op by op.
    pub accesses: Vec<RecordedAccess>,
    /// Streams of devices.
    pub streams: Vec<RecordedStream>,
    /// The ops that ran on them.
    pub runs: Vec<RecordedRun>,
    /// Why ops failed or did not run, each with its place in `ops`.
    pub errors: Vec<(usize, String)>,
}
