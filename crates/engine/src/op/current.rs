//! The running op, as seen by code that acts on its behalf.

use super::OpFlags;
use super::context::running;
use std::num::NonZeroUsize;

/// The op that a thread runs, or ran: a small copy, for messages, and for records of work that goes on after its
/// payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CurrentOp {
    engine: NonZeroUsize,
    number: u32,
    traced: bool,
}

impl CurrentOp {
    /// The op that the calling thread runs.
    #[must_use]
    #[inline]
    pub fn get() -> Option<Self> {
        let (engine, op) = running()?;
        // SAFETY: the running thread owns the op; neither field changes while it runs.
        let (number, flags) = unsafe { ((*op.as_ptr()).number, (*op.as_ptr()).flags) };
        Some(Self { engine: NonZeroUsize::new(engine)?, number, traced: flags.has(OpFlags::TRACED) })
    }

    /// The engine that runs it, as [`Engine::id`](crate::Engine::id) answers it.
    #[must_use]
    pub fn engine(self) -> usize {
        self.engine.get()
    }

    /// Number of its push in its engine; the low half.
    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    /// Whether a trace has recorded its push. That trace may be over.
    #[must_use]
    #[inline]
    pub fn is_traced(self) -> bool {
        self.traced
    }
}
