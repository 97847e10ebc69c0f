//! Pinned host memory: the source and target of copies that devices make by themselves.

use crate::devices::Device;
use crate::error::CudaError;
use crate::memory::{CLASSES, class_of, size_of_class};
use crate::streams::Context;
use std::ptr::NonNull;
use std::sync::Arc;

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
        match context.pinned.lend(class) {
            Some(start) => Ok(Self { start, class, context: Arc::clone(context) }),
            None => Self::pin(context, class),
        }
    }

    /// One that a chunk of a copy goes through: of those that are kept, one for a whole chunk if there is none of its size.
    pub(crate) fn for_chunk(context: &Arc<Context>, bytes: usize) -> Result<Self, CudaError> {
        let class = class_of(bytes);
        let kept = [class, context.chunk_class().max(class)]
            .into_iter()
            .find_map(|class| Some((class, context.pinned.lend(class)?)));
        if let Some((class, start)) = kept {
            return Ok(Self { start, class, context: Arc::clone(context) });
        }
        context.pin_ahead();
        Self::pin(context, class)
    }

    fn pin(context: &Arc<Context>, class: usize) -> Result<Self, CudaError> {
        let size = size_of_class(class);
        let _entered = context.enter()?;
        // SAFETY: the context is current.
        let made = unsafe { context.driver().allocate_pinned(size) };
        let start = made.map_err(|error| context.refused(&format!("pinning {size} bytes of host memory"), error))?;
        context.pinned.lent(class);
        Ok(Self { start, class, context: Arc::clone(context) })
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
        if context.pinned.give_back(self.class, self.start) {
            return;
        }
        let Ok(_entered) = context.enter_to_leave() else { return };
        // SAFETY: whoever drops a block vouches that nobody uses it.
        let _ = unsafe { context.driver().free_pinned(self.start) };
    }
}

impl Device {
    /// A block of pinned host memory.
    pub fn pinned(&self, bytes: usize) -> Result<PinnedBlock, CudaError> {
        PinnedBlock::new(self.context(), bytes)
    }
}
