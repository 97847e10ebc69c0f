//! The passes over the instructions of a recording, before they are run again and again.
//!
//! | pass | does |
//! |---|---|
//! | `dead` | drops native instructions whose results nobody sees; what somebody else wrote stays |
//! | `common` | runs equal loops on equal inputs once |
//! | `follow` | lets kernels call the loops over their results |
//! | `layout` | lets values between kernels lie as these like them |
//! | `early` | lets what frees memory run as soon as it may; takes an order of the planner's where that uses much less (`early/planned.rs`) |
//! | `fuse` | lets neighbours among strided loops run block by block |
//! | `graphs` | lets a device's steps be issued together (`replay/graphs.rs`) |
//!
//! A pass is a file of its name (`common` is `common_loops`), can be left out, and changes no bit of any result. Its twin on graphs,
//! and why there are two pipelines, is at the head of `weft-graph`'s `passes`.

mod common_loops;
mod dead;
mod early;
mod follow;
mod fuse;
mod layout;

use crate::recorded::{Instruction, Recorded, Settings};

/// Applies the passes that keep one instruction for each op.
pub(crate) fn simplify(recorded: &mut Recorded, settings: &Settings) {
    if settings.has("common") {
        common_loops::merge_equal(recorded);
    }
    if settings.has("dead") {
        dead::drop_dead(recorded);
    }
}

/// The instructions to be run by the caller.
pub(crate) fn lower_small(recorded: &Recorded, settings: &Settings) -> Vec<Instruction> {
    if settings.has("fuse") && !settings.sequential {
        fuse::fuse(recorded, &recorded.instructions)
    } else {
        recorded.instructions.clone()
    }
}

/// The instructions to be pushed.
pub(crate) fn lower(recorded: &Recorded, settings: &Settings) -> Vec<Instruction> {
    let mut instructions = recorded.instructions.clone();
    if settings.sequential {
        return instructions;
    }
    if settings.has("follow") {
        follow::follow(recorded, &mut instructions);
    }
    if settings.has("layout") {
        layout::correct_layout(recorded, &mut instructions);
    }
    if settings.has("early") {
        instructions = early::moved_up(recorded, &instructions);
    }
    if settings.has("fuse") {
        instructions = fuse::fuse(recorded, &instructions);
    }
    if settings.has("early") { early::planned(recorded, instructions) } else { instructions }
}
