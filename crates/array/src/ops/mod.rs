//! The native ops.

mod again;
mod at_once;
mod blocked;
mod elementwise;
mod fused;
mod idle;
mod large;
mod matmul;
mod reduce;
mod team;

pub use again::push_step;
pub use blocked::{push_blocked, run_blocked};
pub use elementwise::push_elementwise;
pub use idle::run_idle;
pub use matmul::push_matmul;
pub use reduce::push_reduce;
