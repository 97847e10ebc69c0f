//! Which variables an access to some bytes of a buffer touches.
//!
//! A buffer has one variable for the whole, and variables for ranges that were written on their own. It is in one of
//! two states, which change only by an op of their own:
//!
//! | state | an access to the whole | an access to a range | becomes |
//! |---|---|---|---|
//! | whole | the buffer's variable | to read: the buffer's variable | to write a range: *split*, by a barrier behind all before |
//! | split | to write: becomes whole first; to read: the same if nothing is pending and nothing has failed, else it goes as the largest range | reads the *base* or the *gate*, and takes the variables of all ranges that it overlaps. A writer also has one for its own range. Bytes that a reader sees outside of all ranges become ranges, too | whole, by a *join*: reads the ranges' variables, mutates the buffer's |
//!
//! The base is the buffer's variable. The gate is a variable without values, which the barrier and the join take: its readers come between the two.
//! An op that sees none of the values from before the split reads it instead of the base, and so owes nothing to the buffer's failure: it overwrites
//! its range, or all of its bytes were written since. An overwrite takes its range from those that it overlaps, which keep their failure and the
//! rest: its own bytes get a variable of their own.
//!
//! Ranges that were read before the split, by ops that may be pending, must not hold up writers of other ranges. If that is all that has read the
//! buffer since it was last written to, there are two barriers: one behind the writers, which makes a base of its own, a variable that fails as the
//! buffer's does; and one behind the readers, which takes variables of their ranges.
//!
//! An op that has the whole of a buffer and writes to a range of it too has all of it; so has an op on more than [`RANGES`] ranges.
//!
//! So writes to disjoint ranges run side by side, unless both lie in one that was named before; and two accesses to
//! overlapping ranges meet at the variable of such a one.
//!
//! A failure is told of the bytes that the failed op would have written, and of no others. So a range that is changed is first set apart from those
//! that reach beyond it, by two barriers like those of a split. A range's failure reaches the whole through the join: that comes for a writer of all
//! bytes, and thus fails for all; for a reader of all, when nothing can have failed. Two cases remain in which a failure does spread over the whole:
//! a buffer of more than [`RANGES`] ranges, and a replay that writes to ranges which lie across those that were named before.
//!
//! [`RANGES`]: crate::memory::RANGES
//!
//! The set of ranges is decided together with the push that follows from it, under one lock for all buffers (`memory::pushing`).

mod array;
mod enter;
mod kept;
mod ports;
mod presence;
mod readiness;
mod recover;
mod rename;
mod rights;
mod split;
mod substitutes;
mod uses;
mod watched;

pub use array::Array;
pub(crate) use enter::{check_open, enqueue, unwrite};
pub use kept::{keep_elements, restore_elements};
pub(crate) use ports::{Bound, enter_touched};
pub use ports::{Touch, Touched};
pub(crate) use presence::{are_idle, is_all_there, note_written, place, place_result};
pub use presence::{known_devices, set_known_devices};
pub(crate) use rename::{Renaming, Worth};
pub use rights::{granted, granting};
pub(crate) use rights::{refuse, refuse_bytes};
pub use substitutes::{standing, stands_for};
pub(crate) use watched::{LookAtPush, announce_scalars};
pub use watched::{Origin, Origins, announce, are_finite, take_origins};

use weft_engine::AccessKind;

/// The access of an op to an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Looks at it.
    Read,
    /// Changes it.
    Mutate,
    /// Writes all its elements without looking at them.
    Overwrite,
}

impl Access {
    /// The access to the variable of a buffer that the array fills.
    #[inline]
    #[must_use]
    pub fn kind(self) -> AccessKind {
        match self {
            Self::Read => AccessKind::Read,
            Self::Mutate => AccessKind::Mutate,
            Self::Overwrite => AccessKind::Overwrite,
        }
    }
}
