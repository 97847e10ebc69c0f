//! Memory for the temporaries of one call, taken when its first op needs it and given back after its last.

use std::sync::{Mutex, OnceLock, PoisonError};
use weft_array::{Arena, Block, OutOfMemory};

/// The memory of one call.
pub(crate) struct Lease {
    bytes: usize,
    block: OnceLock<Block>,
    /// Held by its taker.
    taking: Mutex<()>,
}

impl Lease {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bytes, block: OnceLock::new(), taking: Mutex::new(()) }
    }

    #[cold]
    fn take(&self) -> Result<*mut u8, OutOfMemory> {
        let _taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = self.block.get() {
            return Ok(block.start());
        }
        let block = Block::arena(self.bytes)?;
        Ok(self.block.get_or_init(|| block).start())
    }
}

impl Arena for Lease {
    #[inline]
    fn start(&self) -> Result<*mut u8, OutOfMemory> {
        match self.block.get() {
            Some(block) => Ok(block.start()),
            None => self.take(),
        }
    }
}
