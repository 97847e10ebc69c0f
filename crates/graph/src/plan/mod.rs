//! The planner of memory.

mod error;
mod offsets;
mod place;
mod portfolio;
mod problem;
mod search;

pub use error::{Effort, PlanError};
pub use offsets::{Options, Placement, plan_offsets};
