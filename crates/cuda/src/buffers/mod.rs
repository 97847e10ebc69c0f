//! Buffers in a device's memory: the work issued on their bytes, and the life of the memory.

mod access;
mod buffer;
mod freed;
mod parts;
mod pinned;

pub use access::BufferAccess;
pub(crate) use buffer::Fences;
pub use buffer::{DeviceBuffer, PinnedBuffer};
pub use pinned::PinnedBlock;
