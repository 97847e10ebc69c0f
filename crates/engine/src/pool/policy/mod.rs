//! Policies: which lane an op goes to, how many workers a lane has, and the order of a lane's ready ops.
//!
//! A policy is one file here and one line of the list below. Its name, its parsing and all lists of names follow from
//! that. Others ask a policy for its effect ([`Policy::is_inline`], [`Policy::separates_devices`]), never for its name.

mod per_device;
mod serial;
mod shuffled;
mod work_stealing;

use crate::op::{Device, InOrder};
use crate::sched::Order;
use std::fmt;
use std::str::FromStr;

/// The decisions of a policy.
pub(crate) trait Placement: Send + Sync {
    /// Lane of an op for this device.
    fn lane(&self, device: Device) -> u16;

    /// Lane of a queue in the order of the pushes.
    fn lane_in_order(&self, queue: InOrder) -> u16;

    /// The order of a lane's ready ops.
    fn order(&self, lane: u16) -> Order;

    /// Workers of a lane, when the engine is told to have `workers`.
    fn workers(&self, lane: u16, workers: usize) -> usize;

    /// Whether ops run on the thread that makes them ready.
    fn is_inline(&self) -> bool {
        false
    }

    /// Whether ops of different devices run on different workers.
    fn separates_devices(&self) -> bool {
        false
    }
}

/// Declares the policies: the variant, `(seed)` if it takes one, and the file, with the policy's name.
macro_rules! policies {
    ($($(#[$about:meta])* $policy:ident $(($seed:ident))? = $file:ident;)*) => {
        /// How ready ops are spread over threads. It never changes results, only the place and time of each op.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[non_exhaustive]
        pub enum Policy {
            $($(#[$about])* $policy $((policies!(type $seed)))?,)*
        }

        impl Policy {
            /// All policies; those that take a seed with the seed 0.
            pub const ALL: [Self; [$(stringify!($file)),*].len()] = [$(Self::$policy $((policies!(zero $seed)))?),*];

            /// The policy's name, without its seed.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$policy { .. } => stringify!($file),)*
                }
            }

            /// The seed, of a policy that takes one.
            #[must_use]
            pub const fn seed(self) -> Option<u64> {
                match self {
                    $(Self::$policy $(($seed))? => policies!(some $($seed)?),)*
                }
            }

            fn with_seed(self, _seed: u64) -> Self {
                match self {
                    $(Self::$policy { .. } => Self::$policy $(({ let $seed = _seed; $seed }))?,)*
                }
            }

            pub(crate) fn placement(self) -> Box<dyn Placement> {
                match self {
                    $(Self::$policy $(($seed))? => Box::new($file::$policy $(($seed))?),)*
                }
            }
        }
    };
    (type $seed:ident) => { u64 };
    (zero $seed:ident) => { 0 };
    (some) => { None };
    (some $seed:ident) => { Some($seed) };
}

policies! {
    /// One lane; idle workers steal from busy ones.
    #[default]
    WorkStealing = work_stealing;
    /// A lane for each device's work and one for its copies.
    PerDevice = per_device;
    /// No worker: each op runs where it becomes ready, mostly at its push. For debugging.
    Serial = serial;
    /// One op at a time, each drawn at random from the ready ones when a thread waits. For finding missing
    /// dependencies.
    Shuffled(seed) = shuffled;
}

impl Policy {
    /// How each policy is written: its name, with `:SEED` if it takes a seed.
    #[must_use]
    pub fn forms() -> Vec<String> {
        let form = |policy: Self| policy.name().to_owned() + if policy.seed().is_some() { ":SEED" } else { "" };
        Self::ALL.into_iter().map(form).collect()
    }

    /// Whether ops run on the thread that makes them ready, as there are no workers.
    #[must_use]
    pub fn is_inline(self) -> bool {
        self.placement().is_inline()
    }

    /// Whether ops of different devices run on different workers.
    #[must_use]
    pub fn separates_devices(self) -> bool {
        self.placement().separates_devices()
    }

    /// Workers of the first lane, when the engine is told to have `workers`.
    pub(crate) fn workers(self, workers: usize) -> usize {
        self.placement().workers(0, workers)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.seed().map_or(Ok(()), |seed| write!(f, ":{seed}"))
    }
}

impl FromStr for Policy {
    type Err = crate::EngineError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, seed) = text.split_once(':').map_or((text, None), |(name, seed)| (name, Some(seed)));
        let refuse = |why: String| Err(crate::EngineError::InvalidArgument(why));
        let Some(policy) = Self::ALL.into_iter().find(|policy| policy.name() == name) else {
            return refuse(format!("unknown policy '{text}'; the policies are {}", Self::forms().join(", ")));
        };
        match (policy.seed(), seed.map(str::parse)) {
            (None, None) => Ok(policy),
            (Some(_), Some(Ok(seed))) => Ok(policy.with_seed(seed)),
            (None, Some(_)) => refuse(format!("policy '{name}' takes no seed: '{name}', not '{text}'")),
            (Some(_), _) => refuse(format!(
                "policy '{name}' takes a seed, a whole number from 0 to 2**64 - 1, as in '{name}:7', not '{text}'"
            )),
        }
    }
}
