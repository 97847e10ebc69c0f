//! Blocks that a stream keeps for its next requests.
//!
//! A block comes here when its stream is behind all of its users, which is when it would be freed. The next allocation
//! for that stream takes it, and neither call of the driver is made. To other streams such a block is like any that was
//! allocated on its stream just now.

use super::Block;
use crate::driver::DeviceAddress;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Blocks of one stream at most.
const BLOCKS: usize = 64;
/// The part of a device's memory that one stream may keep.
const PART: u64 = 128;

#[derive(Default)]
struct Content {
    by_size: HashMap<usize, Vec<DeviceAddress>>,
    blocks: usize,
    bytes: u64,
}

/// The blocks that one stream keeps.
#[derive(Default)]
pub(crate) struct KeptBlocks(Mutex<Content>);

impl KeptBlocks {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a block of exactly so many bytes.
    #[inline]
    pub(crate) fn take(&self, bytes: usize) -> Option<DeviceAddress> {
        let mut content = self.lock();
        let address = content.by_size.get_mut(&bytes)?.pop()?;
        content.blocks -= 1;
        content.bytes -= bytes as u64;
        Some(address)
    }

    /// Keeps a block, on a device with so much memory. Answers whether it does.
    #[inline]
    pub(crate) fn keep(&self, block: Block, memory: u64) -> bool {
        let mut content = self.lock();
        if content.blocks == BLOCKS || content.bytes + block.bytes as u64 > memory / PART {
            return false;
        }
        content.by_size.entry(block.bytes).or_default().push(block.address);
        content.blocks += 1;
        content.bytes += block.bytes as u64;
        true
    }

    /// Takes all of them.
    pub(crate) fn drain(&self) -> Vec<Block> {
        let content = std::mem::take(&mut *self.lock());
        let blocks = |(bytes, addresses): (usize, Vec<DeviceAddress>)| {
            addresses.into_iter().map(move |address| Block { address, bytes })
        };
        content.by_size.into_iter().flat_map(blocks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Block;
    use super::{BLOCKS, KeptBlocks};

    #[test]
    fn sizes_are_exact_and_both_limits_hold() {
        let kept = KeptBlocks::default();
        let block = |address, bytes| Block { address, bytes };
        assert!(!kept.keep(block(1, 100), 128 * 99), "more than its part");
        assert!(kept.keep(block(1, 100), 128 * 100));
        assert!(!kept.keep(block(2, 1), 128 * 100), "it is full");
        assert_eq!((kept.take(99), kept.take(100), kept.take(100)), (None, Some(1), None));
        let limit = u64::try_from(BLOCKS).expect("few");
        assert!((0..limit).all(|address| kept.keep(block(address, 8), 1 << 40)));
        assert!(!kept.keep(block(limit, 8), 1 << 40), "there are enough");
        assert_eq!(kept.drain().len(), BLOCKS);
        assert!(kept.take(8).is_none());
    }
}
