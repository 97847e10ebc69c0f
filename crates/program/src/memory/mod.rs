//! Where temporaries lie while a program runs.

mod arena;
mod offsets;

pub(crate) use arena::Lease;
pub(crate) use offsets::{Life, place};
