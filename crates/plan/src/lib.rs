//! The planner of memory: offsets for values with lifetimes, and an order of ops that keeps few of them alive.
//!
//! It knows no arrays, no graphs and no ops' names: intervals and sizes are enough for offsets, a [`Network`] for the rest.
//!
//! | file | home of |
//! |---|---|
//! | `error` | [`PlanError`] |
//! | `problem`, `place`, `portfolio` | intervals made ready, placements by rule, the best of several |
//! | `search` | the exact search |
//! | `offsets` | [`plan_offsets`]: intervals in, offsets out |
//! | `settings` | [`Settings`]: what sharing memory may cost |
//! | `network` | ops and values, and what follows from them |
//! | `schedule`, `op_orders` | when ops run; orders that keep few bytes live |
//! | `storage`, `sharing` | which values share a storage; what sharing memory orders |
//! | `segments` | checkpoints of the forward part, from which the rest runs again segment by segment |
//! | `arena` | [`plan_network`]: all of it |
//! | `recompute` | [`recompute()`]: ops that run again, so that their values need not be kept |
//!
//! Each file knows only those above it.

mod arena;
mod error;
mod network;
mod offsets;
mod op_orders;
mod place;
mod portfolio;
mod problem;
mod recompute;
mod schedule;
mod search;
mod segments;
mod settings;
mod sharing;
mod storage;

pub use arena::{Plan, plan_network, plan_network_also};
pub use error::{Effort, PlanError};
pub use network::{Network, Op, Pair, Share, Value};
pub use offsets::{Options, Placement, plan_offsets, plan_offsets_apart};
pub use op_orders::orders_of;
pub use recompute::{Recomputed, recompute};
pub use settings::{Memory, Settings};
