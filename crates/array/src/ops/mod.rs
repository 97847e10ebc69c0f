//! The native ops.

mod at_once;
mod blocked;
mod elementwise;
mod extreme;
mod here;
mod idle;
mod large;
mod matmul;
mod native;
mod pieces;
mod reduce;
mod rows;
mod team;

pub use at_once::is_short;
pub use blocked::{lay_out, push_blocked, run_alone, run_blocked};
pub use elementwise::push_elementwise;
pub use extreme::push_extreme;
pub use here::{Copied, copy_if_there, copy_to_change, note_computed, places_of_copies, put_back};
pub use idle::run_idle;
pub use matmul::{multiply_here, push_matmul};
pub use pieces::{Piece, push_pieces};
pub use reduce::{RowReduction, push_reduce};
pub use rows::pick_rows;
