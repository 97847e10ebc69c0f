//! From granted accesses to work on a stream, and the fence behind it.

mod issuing;
mod request;

pub use issuing::Begun;
pub(crate) use issuing::Issuing;
pub use request::{BRIEF, Request};
