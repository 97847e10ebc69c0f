//! Computations that are known before they run.
//!
//! | room | home of |
//! |---|---|
//! | `plan` | offsets for intervals: where values lie that live for a while |
//!
//! The crate knows no engine, no arrays and no Python.

pub mod plan;
