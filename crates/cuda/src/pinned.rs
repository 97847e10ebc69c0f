//! Pinned host memory: what devices copy from and to by themselves. Pinning takes long, so blocks are kept for reuse.

use crate::context::Context;
use crate::error::CudaError;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The smallest class. There are [`STEPS`] classes from each power of two to the next, so that little is pinned in vain.
const SMALLEST: usize = 4096;
const STEPS: usize = 8;
const CLASSES: usize = 30 * STEPS;
/// Bytes kept for reuse at most.
const KEPT: usize = 256 << 20;

struct State {
    free: [Vec<NonNull<u8>>; CLASSES],
    kept: usize,
    lent: usize,
}

// SAFETY: blocks in the lists belong to the pool.
unsafe impl Send for State {}

/// A context's blocks that nobody uses, by class of size.
pub(crate) struct PinnedPool(Mutex<State>);

impl Default for PinnedPool {
    fn default() -> Self {
        Self(Mutex::new(State { free: [const { Vec::new() }; CLASSES], kept: 0, lent: 0 }))
    }
}

fn class_of(bytes: usize) -> usize {
    let bytes = bytes.max(SMALLEST);
    let octave = (bytes / SMALLEST).ilog2() as usize;
    octave * STEPS + (bytes - (SMALLEST << octave)).div_ceil((SMALLEST << octave) / STEPS)
}

const fn size_of_class(class: usize) -> usize {
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

    /// Takes away what is kept.
    pub(crate) fn take_kept(&self) -> Vec<NonNull<u8>> {
        let mut state = self.lock();
        state.kept = 0;
        state.free.iter_mut().flat_map(std::mem::take).collect()
    }
}

/// A block of pinned memory, not initialised. Dropping it gives it back for reuse, so it is dropped by whoever knows
/// that no device uses it any more.
pub struct PinnedBlock {
    start: NonNull<u8>,
    class: usize,
    context: Arc<Context>,
}

// SAFETY: it owns its bytes.
unsafe impl Send for PinnedBlock {}
// SAFETY: as above; whoever reads or writes through `start` answers for it.
unsafe impl Sync for PinnedBlock {}

impl PinnedBlock {
    /// A block of at least so many bytes.
    pub(crate) fn new(context: &Arc<Context>, bytes: usize) -> Result<Self, CudaError> {
        let class = class_of(bytes);
        if class >= CLASSES {
            return Err(CudaError::InvalidArgument(format!("{bytes} bytes are too many for a pinned block")));
        }
        let size = size_of_class(class);
        let reused = {
            let mut state = context.pinned.lock();
            state.lent += size;
            let reused = state.free[class].pop();
            state.kept -= reused.map_or(0, |_| size);
            reused
        };
        let made = match reused {
            Some(start) => Ok(start),
            None => context.enter().and_then(|_entered| {
                // SAFETY: the context is current.
                let made = unsafe { context.driver().allocate_pinned(size) };
                made.map_err(|error| context.refused(&format!("pinning {size} bytes of host memory"), error))
            }),
        };
        if made.is_err() {
            context.pinned.lock().lent -= size;
        }
        Ok(Self { start: made?, class, context: Arc::clone(context) })
    }

    /// The first byte.
    #[must_use]
    pub fn first(&self) -> NonNull<u8> {
        self.start
    }

    /// The same, as a pointer.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_class(self.class)
    }
}

impl Drop for PinnedBlock {
    fn drop(&mut self) {
        let context = &self.context;
        if context.runtime.is_abandoned() {
            return;
        }
        let size = self.bytes();
        {
            let mut state = context.pinned.lock();
            state.lent -= size;
            if state.kept + size <= KEPT {
                state.kept += size;
                return state.free[self.class].push(self.start);
            }
        }
        let Ok(_entered) = context.enter_to_leave() else { return };
        // SAFETY: whoever drops a block vouches that nobody uses it.
        let _ = unsafe { context.driver().free_pinned(self.start) };
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
