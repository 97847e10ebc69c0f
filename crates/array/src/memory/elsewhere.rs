//! Memory that the host does not reach.
//!
//! This crate orders what is done to it and never touches it: what it is, only those know who made it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A device's memory, for those who know the device.
#[derive(Clone)]
pub struct Elsewhere {
    device: &'static str,
    memory: Arc<dyn Any + Send + Sync>,
}

impl Elsewhere {
    /// Memory of the device of this name.
    #[must_use]
    pub fn new(device: &'static str, memory: Arc<dyn Any + Send + Sync>) -> Self {
        Self { device, memory }
    }

    /// The device's name, for messages.
    #[must_use]
    pub fn device(&self) -> &'static str {
        self.device
    }

    /// The memory to look at, if it is of this type.
    #[must_use]
    #[inline]
    pub fn get<M: Any + Send + Sync>(&self) -> Option<&M> {
        self.memory.downcast_ref()
    }

    /// The memory, if it is of this type.
    #[must_use]
    pub fn memory<M: Any + Send + Sync>(&self) -> Option<Arc<M>> {
        Arc::clone(&self.memory).downcast().ok()
    }
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elsewhere").field("device", &self.device).finish_non_exhaustive()
    }
}
