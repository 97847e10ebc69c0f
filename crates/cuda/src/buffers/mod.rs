//! Buffers in a device's memory: what was issued on which of their bytes, and when the memory comes and goes.

mod access;
mod buffer;
mod freed;
mod parts;
mod pinned;

pub use access::BufferAccess;
pub use buffer::DeviceBuffer;
pub(crate) use buffer::Fences;
pub use pinned::PinnedBlock;
