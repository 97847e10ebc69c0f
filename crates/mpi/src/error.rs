//! The errors between ranks.

/// Why a call of MPI's, or a collective, did not come to its end.
#[derive(Debug, Clone, thiserror::Error)]
pub enum MpiError {
    /// MPI's library lacks a function.
    #[error("the MPI library has no function {0}: weft needs MPI 3.0 or newer")]
    Symbol(&'static str),
    /// MPI's library cannot be opened.
    #[error("the MPI library cannot be opened: {0}")]
    Library(String),
    /// A function of MPI's has refused.
    #[error("{function} failed: {text}")]
    Call {
        /// Its name.
        function: &'static str,
        /// MPI's words for it.
        text: String,
    },
    /// The communicator was closed.
    #[error("communicator '{0}' is closed: make a new one")]
    Closed(String),
    /// The process was forked since the communicator was made.
    #[error(
        "communicator '{name}' was made in process {owner}, from which this one was forked: MPI goes through no fork"
    )]
    Forked {
        /// The communicator.
        name: String,
        /// Who made it.
        owner: u32,
    },
    /// The communicator is broken, or has broken in this call.
    #[error("{reason}")]
    Broken {
        /// What has happened.
        reason: String,
        /// Whether MPI may still write to the memory of this call.
        abandoned: bool,
    },
}

impl MpiError {
    /// Whether MPI may still write to the memory that it was given.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        matches!(self, Self::Broken { abandoned: true, .. })
    }
}
