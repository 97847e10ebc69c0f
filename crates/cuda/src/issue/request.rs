//! A request to a device.

use crate::buffers::BufferAccess;
use crate::devices::Lane;
use crate::label::Label;
use crate::streams::{Marking, Stream};

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
    /// Whether it takes the device some microseconds at most: who waits for such an op may as well wait for a few more. Others
    /// last, for all that is known.
    pub brief: bool,
}

impl<'a> Request<'a> {
    /// A request for multiprocessors, on any stream.
    #[must_use]
    pub const fn new(label: &'a Label, accesses: &'a [BufferAccess]) -> Self {
        Self { label, accesses, lane: Lane::Compute, priority: 0, stream: None, place: 0, moves: 0, brief: false }
    }

    /// When the event behind it is recorded. What comes or goes by a copy is wanted on another stream or by the host, and who
    /// names a stream may look at it.
    #[inline]
    pub(crate) const fn marking(&self) -> Marking {
        match (self.stream, self.lane) {
            (None, _) if self.brief => Marking::Brief,
            (None, Lane::Compute) => Marking::Lasting,
            _ => Marking::Now,
        }
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
