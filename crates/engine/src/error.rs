//! The one error enum of the engine.

use crate::failure::Failure;
use std::sync::Arc;
use std::time::Duration;

/// The errors of a call on an engine. A call that fails has changed nothing.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The version that was waited for failed, with the failure of the op that failed first.
    #[error("{0}")]
    Failed(Arc<Failure>),
    /// Several ops failed since failures were last reported.
    #[error("{} ops failed; the first: {}", .0.iter().map(|failure| failure.ops()).sum::<u64>(), .0[0])]
    ManyFailed(Vec<Arc<Failure>>),
    /// The variable was deleted.
    #[error("{variable} was deleted; make a new variable for a new value")]
    VariableDeleted {
        /// The variable's label.
        variable: String,
    },
    /// The variable belongs to another engine.
    #[error("{variable} belongs to engine {owner}, not to engine {engine}; use it with the engine that made it")]
    WrongEngine {
        /// The variable's label, or its meaning.
        variable: String,
        /// Label of the engine that made it.
        owner: String,
        /// Label of the engine that was asked.
        engine: String,
    },
    /// The wait could never end.
    #[error("this wait would never end: {reason}; the ops in the cycle: {}", .ops.join(" -> "))]
    Deadlock {
        /// The object of the wait.
        reason: String,
        /// Labels of the ops that wait for each other.
        ops: Vec<String>,
    },
    /// So many ops wait inside ops that no thread is left to stand in for one more, or the system gives none.
    #[error(
        "{blocked} ops wait inside ops already, and each holds a thread; wait outside of ops, or push what comes after"
    )]
    TooManyWaits {
        /// How many wait.
        blocked: usize,
    },
    /// The engine was closed.
    #[error("engine {engine} is closed; make a new engine")]
    Closed {
        /// The engine's label.
        engine: String,
    },
    /// The limit on pending ops or on the bytes they hold was met, and the engine is to raise then.
    #[error(
        "with this op {pending} {unit} would be pending, and the limit is {limit}; wait for some, or raise max_pending_{unit}"
    )]
    PendingLimit {
        /// How many would be pending with this op.
        pending: u64,
        /// How many may be.
        limit: u64,
        /// The counted amount: ops or bytes.
        unit: &'static str,
    },
    /// The time given for a wait ran out.
    #[error("{what} was not finished after {}", in_words(*after))]
    Timeout {
        /// The object of the wait.
        what: String,
        /// How long.
        after: Duration,
    },
    /// The wait was interrupted by its caller's tick.
    #[error("the wait was interrupted")]
    Interrupted,
    /// A completion token was used a second time.
    #[error("{op} was completed already; a completion token is used once")]
    TokenUsed {
        /// Label of the op.
        op: String,
    },
    /// Another trace of the engine has not been stopped.
    #[error("engine {engine} is being traced already; stop that trace first")]
    Traced {
        /// The engine's label.
        engine: String,
    },
    /// There is no trace to be read: none was started, it was stopped, or it stayed in the parent of a fork.
    #[error("engine {engine} is not being traced; start a trace first, in this process")]
    NotTraced {
        /// The engine's label.
        engine: String,
    },
    /// An argument is out of range.
    #[error("{0}")]
    InvalidArgument(String),
}

/// A time as people write it: "50 ms", "2.5 s". Waits end a little late; the time does not matter.
#[must_use]
pub fn in_words(time: Duration) -> String {
    let (value, unit) = match time.as_secs_f64() {
        seconds if seconds >= 1.0 => (seconds, "s"),
        seconds if seconds >= 1e-3 => (seconds * 1e3, "ms"),
        seconds => (seconds * 1e6, "us"),
    };
    let decimals = usize::from(value < 9.95);
    let written = format!("{value:.decimals$}");
    format!("{} {unit}", written.strip_suffix(".0").unwrap_or(&written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_words() {
        let cases = [
            (Duration::from_nanos(49_998_912), "50 ms"),
            (Duration::from_millis(2500), "2.5 s"),
            (Duration::from_secs(30), "30 s"),
            (Duration::from_micros(1), "1 us"),
            (Duration::ZERO, "0 us"),
        ];
        for (time, words) in cases {
            assert_eq!(in_words(time), words);
        }
    }
}
