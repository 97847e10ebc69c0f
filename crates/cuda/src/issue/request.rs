//! What is asked of a device.

use crate::buffers::BufferAccess;
use crate::devices::Lane;
use crate::label::Label;
use crate::streams::Stream;

/// A device goes over so many bytes in some microseconds.
pub const BRIEF: usize = 1 << 20;

/// What is to be issued.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The op, for messages.
    pub label: &'a Label,
    /// The buffers it uses.
    pub accesses: &'a [BufferAccess],
    /// What it occupies.
    pub lane: Lane,
    /// Ahead of others, if above 0.
    pub priority: i32,
    /// The stream, if it must be this one.
    pub stream: Option<&'a Stream>,
    /// Key of the place of its push, if the label has none; 0 is none.
    pub place: u64,
    /// Bytes that it moves, if it is a copy; for traces.
    pub moves: usize,
    /// Whether it takes the device some microseconds at most: who waits for such an op may as well wait for a few more.
    pub brief: bool,
}

impl<'a> Request<'a> {
    /// A request for multiprocessors, on any stream.
    #[must_use]
    pub const fn new(label: &'a Label, accesses: &'a [BufferAccess]) -> Self {
        Self { label, accesses, lane: Lane::Compute, priority: 0, stream: None, place: 0, moves: 0, brief: false }
    }

    /// The same on this lane.
    #[must_use]
    pub const fn on(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    /// The same for a copy of so many bytes.
    #[must_use]
    pub const fn moving(self, moves: usize) -> Self {
        Self { moves, ..self }
    }
}
