//! The use of a device's memory, in figures.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryStats {
    /// In use by buffers of this crate.
    pub in_use: u64,
    /// The most that was in use at the same time.
    pub peak: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Held by this crate's pool, in use or kept for reuse.
    pub held: u64,
    /// Free, any process counted.
    pub free: u64,
    /// All there is.
    pub total: u64,
    /// Pinned host memory, lent out and kept for reuse.
    pub pinned: u64,
    /// Bytes that the driver would not take back: they are gone until the process ends.
    pub lost: u64,
}

#[derive(Default)]
struct Balance {
    in_use: u64,
    peak: u64,
    blocks: u64,
    lost: u64,
}

/// A context's figures.
#[derive(Default)]
pub(crate) struct Accounts(Mutex<Balance>);

impl Accounts {
    fn lock(&self) -> MutexGuard<'_, Balance> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        let balance = self.lock();
        let Balance { in_use, peak, blocks, lost, .. } = *balance;
        MemoryStats { in_use, peak, blocks, lost, ..MemoryStats::default() }
    }

    pub(crate) fn allocated(&self, bytes: usize) {
        let mut balance = self.lock();
        balance.in_use += bytes as u64;
        balance.blocks += 1;
        balance.peak = balance.peak.max(balance.in_use);
    }

    pub(crate) fn freed(&self, bytes: usize) {
        let mut balance = self.lock();
        balance.in_use -= bytes as u64;
        balance.blocks -= 1;
    }

    pub(crate) fn lost(&self, bytes: usize) {
        self.lock().lost += bytes as u64;
    }
}
