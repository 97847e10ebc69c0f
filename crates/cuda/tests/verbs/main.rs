//! One file for each verb of the crate, on the simulated driver under an engine.

#[path = "../machine/mod.rs"]
mod machine;
#[path = "../../../engine/tests/watchdog/mod.rs"]
mod watchdog;

mod copy;
mod faults;
mod memory;
mod order;
mod overlap;
mod teardown;

pub(crate) use machine::{KERNEL, Machine, WORDS};
pub(crate) use watchdog::Watchdog;
