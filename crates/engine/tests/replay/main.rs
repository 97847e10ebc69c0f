//! Replays: one push with ports.

#[path = "../gate/mod.rs"]
mod gate;
#[path = "../watchdog/mod.rs"]
mod watchdog;

mod ports;
