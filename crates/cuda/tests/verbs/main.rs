//! One file for each verb of the crate, on the simulated driver under an engine.

mod copy;
mod machine;
mod teardown;
