//! What is done to the instructions of a recording before they are run again and again.
//!
//! | pass | does |
//! |---|---|
//! | `dead` | drops native instructions whose results nobody sees; what somebody else wrote stays |
//! | `common` | runs equal loops on equal inputs once |
//! | `early` | lets what frees memory run as soon as it may |
//! | `fuse` | lets neighbours among strided loops run block by block |
//!
//! Each can be left out, and changes no bit of any result.

mod dead;
mod early;
mod equal;
mod fuse;

use crate::recorded::{Instruction, Recorded, Settings};

/// Applies the passes that keep one instruction for each op.
pub(crate) fn simplify(recorded: &mut Recorded, settings: &Settings) {
    if settings.has("common") {
        equal::merge_equal(recorded);
    }
    if settings.has("dead") {
        dead::drop_dead(recorded);
    }
}

/// The instructions to be pushed.
pub(crate) fn lower(recorded: &Recorded, settings: &Settings) -> Vec<Instruction> {
    if settings.sequential {
        return recorded.instructions.clone();
    }
    let ordered = if settings.has("early") { early::early(recorded) } else { recorded.instructions.clone() };
    if settings.has("fuse") { fuse::fuse(recorded, &ordered) } else { ordered }
}
