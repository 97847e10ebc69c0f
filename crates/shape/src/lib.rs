//! Element types and broadcasting: what arrays and graphs of arrays agree on. Depends on no other crate.

mod broadcast;
mod dtype;

pub use broadcast::{aligned, broadcast_into, broadcast_length};
pub use dtype::DType;
