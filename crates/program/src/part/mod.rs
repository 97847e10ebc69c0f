//! Parts of a recording that run as one step of it: bodies of loops, branches.
//!
//! A *part* is a recording inside another one. It takes *inputs*, which have placeholders; it refers to its
//! surroundings; and it makes *results*, each of them fresh memory of its own. The step that runs it binds inputs and
//! results anew in each turn, and runs the part's instructions one after the other in place, on one thread: its
//! surroundings run beside it. Temporaries lie in memory that is taken once for all turns.
//!
//! Memory that foreign code sees (a callable's arrays) is new in each turn, as it is when nothing is recorded.

mod bind;
mod body;
mod branch;
mod turns;

pub use body::Body;
pub use branch::Branch;
pub use turns::{Input, Turns};
