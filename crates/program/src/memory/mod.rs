//! Where temporaries lie while a program runs.

mod arena;
mod donations;
mod in_place;
mod offsets;
mod storages;

pub(crate) use arena::Lease;
pub(crate) use donations::{Donation, donations};
pub(crate) use offsets::{Life, place, place_apart};
pub(crate) use storages::{Before, Storages};
