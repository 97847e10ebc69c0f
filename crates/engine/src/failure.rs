//! The outcome of an op that did not do its work.

use crate::sync::{AtomicBool, Ordering};
use std::error::Error;
use std::fmt;

/// Why an op failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The payload answered with an error.
    #[error(transparent)]
    Error(Box<dyn Error + Send + Sync>),
    /// The payload panicked.
    #[error("the op panicked: {0}")]
    Panic(String),
    /// A native function answered with this code instead of 0.
    #[error("the native function answered {0} instead of 0")]
    Native(i32),
    /// The engine was closed with `cancel` before the op started.
    #[error("the op was cancelled before it started")]
    Cancelled,
    /// The op's completion token was dropped before anybody used it.
    #[error("the op's completion token was dropped unused")]
    TokenDropped,
    /// So many ops failed when the engine kept as many failures as it does of those that nobody asks for.
    #[error(
        "{0} more ops failed, of which the engine keeps the number alone; call wait_for_all, or wait for what ops write"
    )]
    Further(u64),
    /// The process was forked before the op finished; the child does not have its result.
    #[error("the op was unfinished when the process forked")]
    Forked,
}

/// A failed op: who it was and why. Shared by every version that it, or ops after it, spoiled.
#[derive(Debug)]
pub struct Failure {
    op: String,
    cause: Cause,
    /// Where the op was pushed, in the pusher's words; 0 if that is not known.
    place: u64,
    reported: AtomicBool,
}

impl Failure {
    pub(crate) fn new(op: String, cause: Cause) -> Self {
        Self { op, cause, place: 0, reported: AtomicBool::new(false) }
    }

    /// The same of an op that was pushed there.
    pub(crate) fn at(self, place: u64) -> Self {
        Self { place, ..self }
    }

    /// Where it was pushed, as its payload or step says in its own way ([`Payload::PLACE`](crate::Payload::PLACE)); 0 if that is
    /// not known.
    #[must_use]
    pub fn place(&self) -> u64 {
        self.place
    }

    /// The label of the op that failed first: its name, or its number.
    #[must_use]
    pub fn op(&self) -> &str {
        &self.op
    }

    /// Why it failed.
    ///
    /// Where [`std::error::Error`] is in scope, write `Failure::cause(&failure)` of an `Arc<Failure>`: the `Arc` has a
    /// method of that name by itself.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// How many ops it stands for: one, unless it is [`Cause::Further`].
    #[must_use]
    pub fn ops(&self) -> u64 {
        if let Cause::Further(count) = self.cause { count } else { 1 }
    }

    /// Notes that somebody was told. Answers whether nobody had been before.
    pub fn report(&self) -> bool {
        // ORDERING: a flag of its own; nothing is published by it.
        !self.reported.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_reported(&self) -> bool {
        // ORDERING: as in report().
        self.reported.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.op, self.cause)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
