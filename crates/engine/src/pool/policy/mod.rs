//! Policies: which lane an op goes to, and how many workers a lane has. A policy is one file.

mod per_device;
mod serial;
mod work_stealing;

use crate::op::{Device, InOrder};
use std::fmt;
use std::str::FromStr;

/// How ready ops are spread over threads. It never changes results, only who runs what when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Policy {
    /// One lane; idle workers steal from busy ones.
    #[default]
    WorkStealing,
    /// A lane for each device's work and one for its copies.
    PerDevice,
    /// No worker: each op runs where it becomes ready, mostly at its push. For debugging.
    Serial,
}

/// What a policy decides.
pub(crate) trait Placement: Send + Sync {
    /// Lane of an op for this device.
    fn lane(&self, device: Device) -> u16;

    /// Lane of a queue in the order of the pushes.
    fn lane_in_order(&self, queue: InOrder) -> u16;

    /// Whether what is ready in a lane goes in the order of the pushes: it decides the order of work elsewhere, which
    /// who takes what from which cache does not.
    fn is_in_order(&self, lane: u16) -> bool;

    /// Workers of a lane, when the engine is told to have `workers`.
    fn workers(&self, lane: u16, workers: usize) -> usize;

    /// Whether ops run on the thread that makes them ready.
    fn is_inline(&self) -> bool {
        false
    }
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::WorkStealing, Self::PerDevice, Self::Serial];

    /// The policy's name, as `from_str` takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WorkStealing => "work_stealing",
            Self::PerDevice => "per_device",
            Self::Serial => "serial",
        }
    }

    pub(crate) fn placement(self) -> &'static dyn Placement {
        match self {
            Self::WorkStealing => &work_stealing::WorkStealing,
            Self::PerDevice => &per_device::PerDevice,
            Self::Serial => &serial::Serial,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = crate::EngineError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            crate::EngineError::InvalidArgument(format!("unknown policy '{name}'; the policies are {known}"))
        })
    }
}
