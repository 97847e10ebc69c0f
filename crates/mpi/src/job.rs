//! The request of a collective.

use crate::symbols::Handle;
use std::sync::Arc;

/// A collective, or one end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Every rank has the reduction of all.
    AllReduce {
        /// MPI's operation.
        op: Handle,
    },
    /// Every rank has the root's data.
    Broadcast {
        /// The rank that gives.
        root: i32,
    },
    /// Every rank has all ranks' data, one after another.
    AllGather,
    /// Each rank has its part of the reduction of all.
    ReduceScatter {
        /// MPI's operation.
        op: Handle,
    },
    /// Each rank has the others' data for it.
    AllToAll,
    /// A message leaves.
    Send {
        /// The rank that receives it.
        to: i32,
        /// Its tag.
        tag: i32,
    },
    /// A message comes.
    Receive {
        /// The rank that sends it.
        from: i32,
        /// Its tag.
        tag: i32,
    },
    /// All ranks have come here.
    Barrier,
}

/// Where a call was made: in words, or as a function that finds them on request.
pub enum Place {
    /// In words: `train.py:12`.
    Known(String),
    /// To be asked.
    Asked(Box<dyn Fn() -> String + Send + Sync>),
}

impl Place {
    /// In words; empty if unknown.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Known(place) => place.clone(),
            Self::Asked(ask) => ask(),
        }
    }
}

/// A call as it is carried out, on memory that it is given each time.
pub struct Job {
    /// What to do.
    pub work: Work,
    /// Elements that a rank gives to each other, or to all.
    pub count: i32,
    /// Their type.
    pub datatype: Handle,
    /// Bytes that go from this rank or come to it, whichever are more: long transfers are polled for longer.
    pub bytes: usize,
    /// The part that must be the same on all ranks, in words: `all_reduce(sum) of float32 (3, 4)`.
    pub signature: Arc<str>,
    /// Where it was pushed, for headers and messages.
    pub place: Place,
}

impl Job {
    /// Whether it is one end of a message, and no collective.
    #[must_use]
    pub fn is_message(&self) -> bool {
        matches!(self.work, Work::Send { .. } | Work::Receive { .. })
    }

    /// The call and its place, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.place.describe() {
            place if place.is_empty() => self.signature.to_string(),
            place => format!("{} at {place}", self.signature),
        }
    }
}
