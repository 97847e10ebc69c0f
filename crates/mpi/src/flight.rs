//! Calls under way: how far they have come, and why they go no further.

use crate::pace::Pace;
use crate::{Job, MpiError, header};
use std::ptr::NonNull;
use std::time::Duration;

/// How often ranks of this machine are looked for.
pub(crate) const ALIVE_EVERY: Duration = Duration::from_millis(50);

/// A call that is being carried out, by one thread after another.
pub struct Flight {
    /// Its number among the collectives; none for a message.
    pub(crate) number: Option<u64>,
    pub(crate) phase: Phase,
    pub(crate) pace: Pace,
    /// When ranks of this machine are looked for next.
    pub(crate) alive: Duration,
}

impl Flight {
    pub(crate) fn new(number: Option<u64>, bytes: usize) -> Self {
        Self { number, phase: Phase::New, pace: Pace::new(bytes), alive: ALIVE_EVERY }
    }
}

/// How far a call has come.
pub(crate) enum Phase {
    /// Nothing has left this rank.
    New,
    /// Headers are on their way.
    Agreeing(Lent<Headers>),
    /// The header of a message is.
    Announced(Lent<header::Bytes>, u64),
    /// All ranks agree.
    Agreed,
    /// MPI moves the data.
    Moving(u64),
}

/// Memory that MPI may read and write until its requests are done, wherever the call goes meanwhile: so it is reached by pointers
/// alone. Unless it is [taken back](Self::back) it stays allocated for good.
pub(crate) struct Lent<T>(NonNull<T>);

// SAFETY: it is a box that only MPI shares, which may be called from the thread that has it.
unsafe impl<T: Send> Send for Lent<T> {}

impl<T> Lent<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(NonNull::from(Box::leak(Box::new(value))))
    }

    /// Where it is.
    pub(crate) fn at(&self) -> *mut T {
        self.0.as_ptr()
    }

    /// Takes it back.
    ///
    /// # Safety
    ///
    /// MPI is done with it.
    pub(crate) unsafe fn back(self) -> T {
        // SAFETY: it was made of a box, which is not shared any more.
        *unsafe { Box::from_raw(self.0.as_ptr()) }
    }
}

/// Headers on their way.
pub(crate) struct Headers {
    pub(crate) sent: header::Bytes,
    pub(crate) received: Vec<header::Bytes>,
    /// Of each rank, that of incoming data and that of outgoing data.
    pub(crate) requests: Vec<u64>,
}

impl Headers {
    pub(crate) fn new(size: usize, sent: &header::Bytes) -> Self {
        Self { sent: *sent, received: vec![[0; header::BYTES]; size], requests: vec![0; 2 * size] }
    }
}

/// The state of a call for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// It is complete on this rank.
    Out,
    /// The thread was called away.
    On,
}

/// Answers whether the thread that carries a call out is called away from it; given is whether the call has turned out to be
/// long, so that it is slept for.
pub type Away<'a> = &'a mut dyn FnMut(bool) -> bool;

/// A call while a thread carries it on.
pub(crate) struct Call<'a> {
    pub(crate) flight: &'a mut Flight,
    pub(crate) job: &'a Job,
    pub(crate) away: Away<'a>,
}

/// Why a call goes no further.
pub(crate) enum Halt {
    /// The thread was called away: the call is where its phase says.
    Away,
    /// It has failed.
    Failed(Stopped),
}

/// The outcome of a call, in words, and whether MPI may still touch its memory.
pub(crate) struct Stopped {
    pub(crate) reason: String,
    pub(crate) abandoned: bool,
}

impl Halt {
    pub(crate) fn failed(reason: String) -> Self {
        Self::Failed(Stopped { reason, abandoned: false })
    }

    /// The same, of a call with memory that MPI has not seen.
    pub(crate) fn without_memory(self) -> Self {
        match self {
            Self::Failed(Stopped { reason, .. }) => Self::failed(reason),
            Self::Away => self,
        }
    }
}

impl From<MpiError> for Halt {
    fn from(error: MpiError) -> Self {
        Self::failed(error.to_string())
    }
}
