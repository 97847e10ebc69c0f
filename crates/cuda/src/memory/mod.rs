//! A device's memory in figures and addresses: no stream and no fence is known here.

mod accounts;
mod kept;
mod pinned;

use crate::driver::DeviceAddress;
pub(crate) use accounts::Accounts;
pub use accounts::MemoryStats;
pub(crate) use kept::KeptBlocks;
pub(crate) use pinned::{CLASSES, PinnedPool, class_of, size_of_class};

/// A block of device memory. Its owner owes its free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) address: DeviceAddress,
    pub(crate) bytes: usize,
}
