//! The one error enum of the crate.

use crate::label::Label;
use std::fmt;
use std::time::Duration;
use weft_engine::in_words;

/// A call that the driver refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverError {
    /// The driver's function.
    pub call: &'static str,
    /// The code it answered.
    pub code: u32,
    /// The code's name.
    pub name: &'static str,
}

impl DriverError {
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    pub const OUT_OF_MEMORY: u32 = 2;
    /// `CUDA_ERROR_NOT_READY`.
    pub const NOT_READY: u32 = 600;
}

impl DriverError {
    /// Whether it tells of work that failed on the device, and not of the call that answers it: then every call
    /// answers it from now on.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        // ECC and NVLINK errors, contained ones; illegal addresses, timeouts, a context that is gone, assertions,
        // illegal instructions, failed launches, leaks of tensor memory; errors without a name.
        matches!(self.code, 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 999)
    }

    /// Whether it tells of a capture that is under way on some stream: the call can be made again when that is over. An event
    /// that was captured itself is none of these (907): it never happens.
    #[must_use]
    pub const fn is_of_capture(&self) -> bool {
        matches!(self.code, 900..=906 | 908)
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answered {} ({})", self.call, self.name, self.code)
    }
}

impl std::error::Error for DriverError {}

/// The errors of a device. A call that fails has issued nothing.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// There is no CUDA to be used.
    #[error("CUDA is not available: {reason}")]
    Unavailable {
        /// What is missing.
        reason: String,
    },
    /// There is no such device.
    #[error("there is no device cuda:{index}; there are {count}")]
    NoDevice {
        /// The number asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The driver refused a call.
    #[error("{op}: {error}")]
    Refused {
        /// The op, or the action under way.
        op: Box<Label>,
        /// The driver's words.
        error: DriverError,
    },
    /// An op failed while it ran on the device. The device is lost to this process.
    #[error(
        "{op}{} failed on {device}: {error}; nothing in this process can use the device any more, other libraries \
         included",
        doubt(behind, *more, beside)
    )]
    Fault {
        /// The first op of the stream that is not known to have ended.
        op: Box<Label>,
        /// Ops of the stream behind it that were not known to have ended either, the first ones.
        behind: Box<[Label]>,
        /// How many more there were.
        more: u64,
        /// The first such op of each other stream of the device.
        beside: Box<[Label]>,
        /// The device.
        device: String,
        /// How it was found out.
        error: DriverError,
    },
    /// The device has no memory left.
    #[error(
        "{device} has no {requested} bytes for {op}: {free} of {total} bytes are free, {in_use} are in use by weft \
         and {held} held by its pool; free arrays, or work in smaller pieces"
    )]
    OutOfMemory {
        /// The device.
        device: String,
        /// The op that asked.
        op: Box<Label>,
        /// Bytes asked for.
        requested: usize,
        /// Bytes that are free.
        free: u64,
        /// Bytes of the device.
        total: u64,
        /// Bytes in use by this crate's buffers.
        in_use: u64,
        /// Bytes held by the device's pool, in use or not.
        held: u64,
    },
    /// The stream that an op was to use is being captured by its owner.
    #[error(
        "{op}: another library is capturing the stream, and its graph cannot have ops of weft's in it: push them before that \
         capture begins or when it is over, or record all of it by weft.capture"
    )]
    Captured {
        /// The op.
        op: Box<Label>,
    },
    /// An op cannot be recorded, or a graph not be made.
    #[error("{0}")]
    Capture(String),
    /// An argument makes no sense.
    #[error("{0}")]
    InvalidArgument(String),
    /// The process was forked, and CUDA does not live on in the child.
    #[error(
        "CUDA was in use when this process was forked, and its contexts do not work in the child; \
         start worker processes with the 'spawn' or 'forkserver' method"
    )]
    Forked,
    /// The time given for a wait ran out.
    #[error("{op} was not finished after {}", in_words(*after))]
    Timeout {
        /// The op.
        op: Box<Label>,
        /// How long.
        after: Duration,
    },
    /// The wait was interrupted by its caller's tick.
    #[error("the wait was interrupted")]
    Interrupted,
}

impl CudaError {
    /// The op that it names, if it names one.
    #[must_use]
    pub fn op(&self) -> Option<&Label> {
        match self {
            Self::Refused { op, .. }
            | Self::Fault { op, .. }
            | Self::OutOfMemory { op, .. }
            | Self::Captured { op }
            | Self::Timeout { op, .. } => Some(op),
            _ => None,
        }
    }

    /// The same, with the places of the pushes in words, as `tell` says them of their keys.
    #[must_use]
    pub fn located(mut self, tell: &dyn Fn(u64) -> Option<String>) -> Self {
        if let Self::Refused { op, .. }
        | Self::Fault { op, .. }
        | Self::OutOfMemory { op, .. }
        | Self::Captured { op }
        | Self::Timeout { op, .. } = &mut self
        {
            **op = op.located(tell);
        }
        if let Self::Fault { behind, beside, .. } = &mut self {
            behind.iter_mut().chain(beside).for_each(|other| *other = other.located(tell));
        }
        self
    }
}

/// Other candidates for the blame of a fault: the driver does not tell.
fn doubt(behind: &[Label], more: u64, beside: &[Label]) -> String {
    let mut others: Vec<_> = behind.iter().map(|op| format!("{op} behind it")).collect();
    if more > 0 {
        others.push(format!("one of {more} more behind these"));
    }
    others.extend(beside.iter().map(ToString::to_string));
    if others.is_empty() { String::new() } else { format!(" (or {})", others.join(", or ")) }
}
