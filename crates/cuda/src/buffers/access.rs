//! The accesses of ops to bytes.

use super::buffer::DeviceBuffer;
use std::ops::Range;
use std::sync::Arc;
use weft_engine::AccessKind;

/// What an op does with a buffer.
#[derive(Debug, Clone)]
pub struct BufferAccess {
    /// The buffer.
    pub buffer: Arc<DeviceBuffer>,
    /// The bytes of it between the first and the last that it touches.
    pub range: Range<usize>,
    /// What it does. The engine has granted at least that.
    pub kind: AccessKind,
}

impl BufferAccess {
    /// It touches some bytes of the buffer.
    #[must_use]
    pub fn part(buffer: &Arc<DeviceBuffer>, range: Range<usize>, kind: AccessKind) -> Self {
        Self { buffer: Arc::clone(buffer), range, kind }
    }

    /// It touches the whole of the buffer.
    #[must_use]
    pub fn whole(buffer: &Arc<DeviceBuffer>, kind: AccessKind) -> Self {
        Self::part(buffer, 0..buffer.bytes(), kind)
    }

    /// It reads the whole of the buffer.
    #[must_use]
    pub fn read(buffer: &Arc<DeviceBuffer>) -> Self {
        Self::whole(buffer, AccessKind::Read)
    }

    /// It mutates the whole of the buffer.
    #[must_use]
    pub fn mutate(buffer: &Arc<DeviceBuffer>) -> Self {
        Self::whole(buffer, AccessKind::Mutate)
    }

    /// It overwrites the whole of the buffer.
    #[must_use]
    pub fn overwrite(buffer: &Arc<DeviceBuffer>) -> Self {
        Self::whole(buffer, AccessKind::Overwrite)
    }
}
