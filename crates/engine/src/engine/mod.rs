//! The public face: an engine, its variables, pushes, waits, and its end.

mod accesses;
mod builder;
mod close;
mod core;
pub mod fork;
mod full_ring;
mod memory;
mod operator;
mod push;
mod recover;
mod replay;
mod settings;
mod stall;
mod stats;
mod task;
mod trace;
mod usage;
mod variable;
mod wait;

pub use accesses::Accesses;
pub use builder::OpBuilder;
pub use close::CloseOptions;
pub(crate) use core::Core;
pub use core::{Engine, WeakEngine};
pub use operator::Operator;
pub use push::PushOptions;
pub use recover::Recoverable;
pub use replay::{Replay, ReplayOptions};
pub use settings::{OnLimit, Settings};
pub use stall::{RunningOp, StallReport, Waiting};
pub use stats::Stats;
pub use task::{Mutate, Read, TaskValues, Var};
pub use variable::Variable;
pub use wait::{StandIn, Tick, Wait};

#[cfg(all(test, not(loom)))]
mod tests;
