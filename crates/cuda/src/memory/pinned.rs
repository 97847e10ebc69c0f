//! Which blocks of pinned host memory are kept for reuse: pinning takes long.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The smallest class. There are [`STEPS`] classes from each power of two to the next, so that little is pinned in vain.
const SMALLEST: usize = 4096;
const STEPS: usize = 8;
pub(crate) const CLASSES: usize = 30 * STEPS;
/// Bytes kept for reuse at most.
const KEPT: usize = 256 << 20;

struct State {
    free: [Vec<NonNull<u8>>; CLASSES],
    kept: usize,
    lent: usize,
}

// SAFETY: blocks in the lists belong to the pool.
unsafe impl Send for State {}

/// A context's unused blocks, by class of size.
pub(crate) struct PinnedPool(Mutex<State>);

impl Default for PinnedPool {
    fn default() -> Self {
        Self(Mutex::new(State { free: [const { Vec::new() }; CLASSES], kept: 0, lent: 0 }))
    }
}

/// The class of blocks that so many bytes go into; [`CLASSES`] or more if there is none.
pub(crate) fn class_of(bytes: usize) -> usize {
    let bytes = bytes.max(SMALLEST);
    let octave = (bytes / SMALLEST).ilog2() as usize;
    octave * STEPS + (bytes - (SMALLEST << octave)).div_ceil((SMALLEST << octave) / STEPS)
}

/// Bytes of a block.
pub(crate) const fn size_of_class(class: usize) -> usize {
    let octave = SMALLEST << (class / STEPS);
    octave + class % STEPS * (octave / STEPS)
}

impl PinnedPool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes lent out and kept.
    pub(crate) fn bytes(&self) -> usize {
        let state = self.lock();
        state.lent + state.kept
    }

    /// Takes the kept blocks away.
    pub(crate) fn take_kept(&self) -> Vec<NonNull<u8>> {
        let mut state = self.lock();
        state.kept = 0;
        state.free.iter_mut().flat_map(std::mem::take).collect()
    }

    /// Lends a block of this class that is kept, if there is one.
    pub(crate) fn lend(&self, class: usize) -> Option<NonNull<u8>> {
        let mut state = self.lock();
        let reused = state.free[class].pop()?;
        state.kept -= size_of_class(class);
        state.lent += size_of_class(class);
        Some(reused)
    }

    /// Blocks of this class that are kept.
    pub(crate) fn kept(&self, class: usize) -> usize {
        self.lock().free[class].len()
    }

    /// Keeps a pinned block for later. Answers whether it does.
    #[must_use]
    pub(crate) fn add(&self, class: usize, start: NonNull<u8>) -> bool {
        self.lock().keep(class, start)
    }

    /// Counts a block that was pinned for use now.
    pub(crate) fn lent(&self, class: usize) {
        self.lock().lent += size_of_class(class);
    }

    /// Takes a block back. Answers whether it is kept; otherwise it is the caller's to free.
    #[must_use]
    pub(crate) fn give_back(&self, class: usize, start: NonNull<u8>) -> bool {
        let mut state = self.lock();
        state.lent -= size_of_class(class);
        state.keep(class, start)
    }
}

impl State {
    fn keep(&mut self, class: usize, start: NonNull<u8>) -> bool {
        let size = size_of_class(class);
        if self.kept + size > KEPT {
            return false;
        }
        self.kept += size;
        self.free[class].push(start);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{class_of, size_of_class};

    #[test]
    fn classes_hold_what_they_are_for() {
        for bytes in [0, 1, 4096, 4097, 4608, 8191, 8192, 1 << 20, (1 << 20) + 1, 1_000_000_000] {
            let class = class_of(bytes);
            let size = size_of_class(class);
            assert!(size >= bytes && (size == 4096 || size - bytes <= bytes / 8), "{bytes}: {size}");
            assert!(class == 0 || size_of_class(class - 1) < bytes, "{bytes}: a smaller class would do");
        }
    }
}
