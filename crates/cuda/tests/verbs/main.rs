//! One file for each verb of the crate, on the simulated driver under an engine.

#[path = "../machine/mod.rs"]
mod machine;
#[path = "../../../engine/tests/watchdog/mod.rs"]
mod watchdog;

mod blocks;
mod captures;
mod copy;
mod end;
mod faults;
mod foreign;
mod graph;
mod launch;
mod memory;
mod order;
mod overlap;
mod renaming;
mod slices;
mod sweeps;
mod teardown;
mod times;

pub(crate) use machine::bundles::{issue, issue_all};
pub(crate) use machine::{Array, CHUNK, KERNEL, Machine, Slice, Sliced, WORDS};
pub(crate) use watchdog::Watchdog;
