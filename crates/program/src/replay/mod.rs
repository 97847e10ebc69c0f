//! One call of a program.

mod check;
mod figures;
mod here;
mod lives;
mod program;
mod pushed;

pub use figures::Figures;
pub use program::{Noting, Options, Output, Program};
