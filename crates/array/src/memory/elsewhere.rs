//! Memory that the host does not reach.
//!
//! This crate orders the work on it and never touches it: only its maker knows its nature.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A device with a memory of its own, for code that needs some there and does not know the device.
pub trait Home: Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &'static str;

    /// Its number among an engine's devices.
    fn number(&self) -> u16;

    /// Memory of so many bytes, which need not be allocated before an op fills it. An op that overwrites all of it may take other memory for
    /// that, and need not wait for those that use the values before, as long as it has no more than so many `storages` at a time.
    fn memory(&self, bytes: usize, storages: usize) -> Arc<dyn Any + Send + Sync>;
}

/// A device's memory, for code that knows the device.
#[derive(Clone)]
pub struct Elsewhere {
    home: &'static dyn Home,
    memory: Arc<dyn Any + Send + Sync>,
}

impl Elsewhere {
    /// Some memory of a device.
    #[must_use]
    pub fn new(home: &'static dyn Home, memory: Arc<dyn Any + Send + Sync>) -> Self {
        Self { home, memory }
    }

    /// So many bytes of a device's memory, which stay where they are.
    #[must_use]
    pub fn fresh(home: &'static dyn Home, bytes: usize) -> Self {
        Self::renamed(home, bytes, 1)
    }

    /// So many bytes of a device's memory, in as many storages at most.
    #[must_use]
    pub fn renamed(home: &'static dyn Home, bytes: usize, storages: usize) -> Self {
        Self { home, memory: home.memory(bytes, storages) }
    }

    /// The device.
    #[must_use]
    #[inline]
    pub fn home(&self) -> &'static dyn Home {
        self.home
    }

    /// The device's name, for messages.
    #[must_use]
    pub fn device(&self) -> &'static str {
        self.home.name()
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
        f.debug_struct("Elsewhere").field("device", &self.device()).finish_non_exhaustive()
    }
}
