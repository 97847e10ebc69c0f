//! CUDA graphs: ops of a device that are issued as one.
//!
//! | module | home of |
//! |---|---|
//! | `dependencies` | which nodes an op comes after |
//! | `recorder` | a capture under way |
//! | `ready` | a graph that can be launched, and when it may go |
//! | `bundle` | ops that are issued together again and again, on memory that changes: as one graph where it does not |
//!
//! Recorded work is not run, and touches no fences. The nodes depend on each other as their accesses ask for, so those that
//! have nothing to do with each other run side by side. A launch is ordered by the union of these accesses, like any op.

mod bundle;
mod dependencies;
mod ready;
mod recorder;

pub use bundle::{Bundle, CopyWithin, Issued, Member, Shifted};
