//! Memory: blocks, their contents, the buffers that views share, and the pushes on these.

mod buffer;
mod elsewhere;
pub mod fork;
mod pool;
mod pushing;
mod ranges;
pub mod recorded;
mod storage;

pub(crate) use buffer::take_made;
pub use buffer::{Buffer, Ownership};
pub use elsewhere::{Elsewhere, Home};
pub use pool::Block;
pub use pool::{MemoryStats, OutOfMemory, keeps_memory, memory_stats, release_memory, trim_memory};
pub(crate) use pushing::Pushing;
pub(crate) use ranges::{Part, RANGES, Ranges, Spare};
pub use storage::{Arena, Pinned, Storage, Within};
