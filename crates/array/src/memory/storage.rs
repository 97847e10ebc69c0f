//! Storage that is filled later.

use super::pool::{Block, OutOfMemory};
use std::any::Any;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use weft_engine::Cause;

/// So many bytes lie in the storage itself: asking for a block of their own would take longer than to compute them.
const FEW: usize = 128;

/// Where bytes lie, once something was written.
pub(super) enum Backing {
    /// In a block of one's own.
    Own(Block),
    /// In that of a temporary that is out of sight.
    Taken(Arc<Storage>),
    /// In memory that something else keeps; it is lent if others may know it.
    Foreign { start: NonNull<u8>, is_lent: bool, _keeper: Box<dyn Any + Send + Sync> },
    /// In an arena.
    Within(Within),
}

/// Some bytes of an arena.
#[derive(Clone)]
pub struct Within {
    arena: Arc<dyn Arena>,
    offset: usize,
}

impl Within {
    /// Those from `offset` on.
    ///
    /// # Safety
    ///
    /// The arena's memory reaches so far as buffers made [there](crate::Buffer::within) do, aligned for what lies in them, for
    /// as long as the arena lives. Ops on the buffers alone touch these bytes meanwhile.
    #[must_use]
    pub unsafe fn new(arena: Arc<dyn Arena>, offset: usize) -> Self {
        Self { arena, offset }
    }
}

/// Memory that several buffers share, each for a while.
pub trait Arena: Send + Sync {
    /// The first byte. Allocates.
    fn start(&self) -> Result<*mut u8, OutOfMemory>;
}

// SAFETY: memory is reached by ops whose accesses were granted, whichever thread they run on.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

/// A few bytes, aligned as the system's small blocks are.
#[repr(align(16))]
struct Few(UnsafeCell<MaybeUninit<[u8; FEW]>>);

// SAFETY: as for `Backing`.
unsafe impl Sync for Few {}

/// Bytes of the host that are allocated when they are first needed. Ops that write hold it; those that only read hold the buffer.
pub struct Storage {
    bytes: usize,
    /// Whether they lie in `few`, and have no other place.
    is_few: bool,
    place: OnceLock<Backing>,
    few: Few,
}

impl Storage {
    /// Bytes that have no place yet.
    #[inline]
    #[must_use]
    pub fn new(bytes: usize) -> Arc<Self> {
        Self::of(bytes, bytes <= FEW, OnceLock::new())
    }

    /// Bytes that lie there.
    pub(super) fn at(bytes: usize, place: Backing) -> Arc<Self> {
        Self::of(bytes, false, OnceLock::from(place))
    }

    #[inline]
    fn of(bytes: usize, is_few: bool, place: OnceLock<Backing>) -> Arc<Self> {
        Arc::new(Self { bytes, is_few, place, few: Few(UnsafeCell::new(MaybeUninit::uninit())) })
    }

    /// The first byte. Allocates.
    #[inline]
    pub fn start(&self) -> Result<*mut u8, Cause> {
        if self.is_few { Ok(self.few.0.get().cast()) } else { self.start_of_many() }
    }

    fn start_of_many(&self) -> Result<*mut u8, Cause> {
        loop {
            if let Some(place) = self.place.get() {
                return place.start();
            }
            Block::fill(self.bytes, &self.place, Backing::Own).map_err(|error| Cause::Error(Box::new(error)))?;
        }
    }

    /// How many there are.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it lies in memory that others may know.
    pub(super) fn is_lent(&self) -> bool {
        matches!(self.place.get(), Some(Backing::Foreign { is_lent: true, .. }))
    }

    /// Whether it lies in memory that something else keeps.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self.place.get(), Some(Backing::Foreign { .. }))
    }

    /// The first byte: where `other` lies, if it lies nowhere yet and the other has as many bytes of its own.
    ///
    /// # Safety
    ///
    /// No op on the other storage is pending or will be pushed: its buffer was given away.
    pub unsafe fn start_in(self: &Arc<Self>, other: &Arc<Self>) -> Result<*mut u8, Cause> {
        if self.place.get().is_none() {
            self.take_place(other);
        }
        self.start()
    }

    /// Lies where `other` lies, unless it lies somewhere already. Answers whether it does.
    pub(crate) fn take_place(&self, other: &Arc<Self>) -> bool {
        if self.is_few {
            return false;
        }
        let root = match other.place.get() {
            Some(Backing::Own(_)) => Arc::clone(other),
            Some(Backing::Taken(root)) => Arc::clone(root),
            Some(Backing::Foreign { .. } | Backing::Within(_)) | None => return false,
        };
        root.bytes == self.bytes && self.place.set(Backing::Taken(root)).is_ok()
    }
}

impl Backing {
    fn start(&self) -> Result<*mut u8, Cause> {
        match self {
            Self::Own(block) => Ok(block.start()),
            Self::Taken(root) => match root.place.get() {
                Some(place) => place.start(),
                None => unreachable!("taken storage has a place"),
            },
            Self::Foreign { start, .. } => Ok(start.as_ptr()),
            Self::Within(Within { arena, offset }) => {
                let start = arena.start().map_err(|error| Cause::Error(Box::new(error)))?;
                Ok(start.wrapping_add(*offset))
            }
        }
    }
}
