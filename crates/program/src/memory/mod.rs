//! Where temporaries lie while a program runs.

mod arena;
mod donations;
mod offsets;

pub(crate) use arena::Lease;
pub(crate) use donations::{Donation, donations};
pub(crate) use offsets::{Life, place, place_apart};
