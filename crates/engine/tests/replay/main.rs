//! Replays: one push with ports.

#![allow(clippy::disallowed_types)] // counts of the tests, not of the engine

#[path = "../gate/mod.rs"]
mod gate;
#[path = "../watchdog/mod.rs"]
mod watchdog;

mod brief;
mod failures;
mod instances;
mod oracle;
mod ports;
mod sharing;
mod verbs;
