//! How to plan: the price of shared memory, the number of workers, the time to search.

use crate::offsets::Options;

/// How much longer the critical path may become, because values share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// As much as it likes: the smallest arena.
    Min,
    /// By a twentieth.
    #[default]
    Balanced,
    /// Not at all.
    Speed,
}

/// How to plan.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The price that shared memory may have.
    pub memory: Memory,
    /// How many ops are expected to run at the same time.
    pub workers: usize,
    /// Offsets, and how long they are searched for.
    pub options: Options<'a>,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Self { memory: Memory::default(), workers: 2, options: Options::default() }
    }
}
