//! Programs: ops on arrays that were recorded once and are replayed.
//!
//! | room | home of |
//! |---|---|
//! | `recorded` | what a recording becomes: entries, instructions, which of them wait for which |
//! | `passes` | what is done to instructions before they are run again and again: dead ones dropped, equal ones merged, loops fused |
//! | `memory` | where temporaries lie: offsets, arenas |
//! | `part` | parts of a recording that run as one step of it: bodies of loops, branches |
//! | `replay` | one call of a program: arguments checked, entries bound, instructions run here or pushed |
//!
//! Each room knows those before it. The crate knows no Python.

mod error;
mod memory;
mod part;
mod passes;
mod recorded;
mod replay;

pub use error::ProgramError;
pub use part::{Body, Branch, Input, Turns};
pub use recorded::{Argument, Description, EntryAccess, Instruction, Parted, Recorded, Settings, Taken};
pub use replay::{Figures, Noting, Options, Output, Program};
