//! Storage that is filled later.

use super::pool::{Block, OutOfMemory};
use std::any::Any;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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

/// Where a storage's bytes lie, once they lie somewhere.
///
/// It changes in two ways: an empty one is filled, at any time; and two are exchanged, by an op that has both storages alone
/// ([`Storage::exchange`]). It is looked at by ops that were granted the storage, by holders of the lock of pushes that have found
/// no op pending on it, by those who alone know it, and by those who have pinned it.
struct Place(UnsafeCell<OnceLock<Backing>>);

// SAFETY: an exchange excludes all other looks, as said above.
unsafe impl Sync for Place {}

/// Whose a storage's bytes are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Weft's own.
    Own,
    /// An arena's.
    Arena,
    /// Something else keeps them.
    Foreign,
    /// The same, and others may know them.
    Lent,
}

/// The lock under which storages are pinned, and exchanged. Nothing else happens under it.
pub(super) struct Exchanging {
    _guard: MutexGuard<'static, ()>,
}

impl Exchanging {
    pub(super) fn lock() -> Self {
        static LOCK: Mutex<()> = Mutex::new(());
        Self { _guard: LOCK.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

/// How many know where a storage lies, for a while; and how many of these are exports, which may last.
#[derive(Default)]
struct Pins(UnsafeCell<Counts>);

#[derive(Default)]
struct Counts {
    all: u16,
    exports: u16,
}

// SAFETY: reached with an `Exchanging` alone, of which there is one.
unsafe impl Sync for Pins {}

impl Pins {
    fn get<'a>(&'a self, _: &'a mut Exchanging) -> &'a mut Counts {
        // SAFETY: there is one `Exchanging`, and it is borrowed for as long as the answer is.
        unsafe { &mut *self.0.get() }
    }
}

/// Bytes that stay where they are while this lives: somebody knows their address.
pub struct Pinned {
    storage: Arc<Storage>,
    is_counted: bool,
    is_export: bool,
}

impl Pinned {
    /// The storage.
    #[must_use]
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.is_counted {
            let mut exchanging = Exchanging::lock();
            let pins = self.storage.pins.get(&mut exchanging);
            pins.all -= 1;
            pins.exports -= u16::from(self.is_export);
        }
    }
}

/// Bytes of the host that are allocated when they are first needed. Ops that write hold it; those that only read hold the buffer.
pub struct Storage {
    bytes: usize,
    /// Whether they lie in `few`, and have no other place.
    is_few: bool,
    owner: Owner,
    pins: Pins,
    /// Set once somebody may know the address for good.
    known: OnceLock<()>,
    place: Place,
    few: Few,
}

impl Storage {
    /// Bytes that have no place yet.
    #[inline]
    #[must_use]
    pub fn new(bytes: usize) -> Arc<Self> {
        Self::of(bytes, bytes <= FEW, Owner::Own, OnceLock::new())
    }

    /// Bytes that lie there.
    pub(super) fn at(bytes: usize, place: Backing) -> Arc<Self> {
        let owner = match &place {
            Backing::Own(_) | Backing::Taken(_) => Owner::Own,
            Backing::Within(_) => Owner::Arena,
            Backing::Foreign { is_lent: false, .. } => Owner::Foreign,
            Backing::Foreign { is_lent: true, .. } => Owner::Lent,
        };
        Self::of(bytes, false, owner, OnceLock::from(place))
    }

    #[inline]
    fn of(bytes: usize, is_few: bool, owner: Owner, place: OnceLock<Backing>) -> Arc<Self> {
        let (place, few) = (Place(UnsafeCell::new(place)), Few(UnsafeCell::new(MaybeUninit::uninit())));
        Arc::new(Self { bytes, is_few, owner, pins: Pins::default(), known: OnceLock::new(), place, few })
    }

    #[inline]
    fn place(&self) -> &OnceLock<Backing> {
        // SAFETY: no exchange goes on meanwhile (see `Place`).
        unsafe { &*self.place.0.get() }
    }

    /// Keeps the bytes where they are: for a running op that gives their address away, and for a look that is no op.
    #[must_use]
    pub fn pin(self: &Arc<Self>) -> Pinned {
        self.pin_as(false)
    }

    /// The same, for the owner of an address that may last: meanwhile no push counts on other memory.
    #[must_use]
    pub fn export(self: &Arc<Self>) -> Pinned {
        self.pin_as(true)
    }

    fn pin_as(self: &Arc<Self>, is_export: bool) -> Pinned {
        let mut exchanging = Exchanging::lock();
        let pins = self.pins.get(&mut exchanging);
        let is_counted = pins.all < u16::MAX;
        if is_counted {
            pins.all += 1;
            pins.exports += u16::from(is_export);
        } else {
            let _ = self.known.set(()); // nobody counts so far
        }
        Pinned { storage: Arc::clone(self), is_counted, is_export }
    }

    /// Whether an export of it lives.
    pub(crate) fn is_exported(&self) -> bool {
        self.pins.get(&mut Exchanging::lock()).exports > 0
    }

    /// Keeps the bytes where they are, for ever.
    #[inline]
    pub fn pin_for_good(&self) {
        if self.known.get().is_none() {
            let _exchanging = Exchanging::lock();
            let _ = self.known.set(());
        }
    }

    /// Whether an op may find these bytes elsewhere than the op before: they are weft's own, and nobody knows them for good.
    pub(crate) fn may_move(&self) -> bool {
        self.owner == Owner::Own && !self.is_few && self.known.get().is_none()
    }

    /// Exchanges the memory of two storages of as many bytes, unless somebody knows where one of them lies. Answers whether it has.
    ///
    /// # Safety
    ///
    /// An op that was granted both of them alone calls it, and holds no address of theirs.
    pub(crate) unsafe fn exchange(&self, other: &Self) -> bool {
        let mut exchanging = Exchanging::lock();
        let mut stays = |storage: &Self| !storage.may_move() || storage.pins.get(&mut exchanging).all > 0;
        if self.bytes != other.bytes || stays(self) || stays(other) {
            return false;
        }
        // SAFETY: the op has both alone; who is no op has pinned them, or holds the lock of pushes and has found no op pending.
        unsafe { std::ptr::swap(self.place.0.get(), other.place.0.get()) };
        true
    }

    /// The first byte. Allocates.
    #[inline]
    pub fn start(&self) -> Result<*mut u8, Cause> {
        if self.is_few {
            Ok(self.few.0.get().cast())
        } else if let Some(Backing::Own(block)) = self.place().get() {
            Ok(block.start())
        } else {
            self.start_elsewhere()
        }
    }

    /// The same of bytes that lie nowhere yet, or are others'.
    fn start_elsewhere(&self) -> Result<*mut u8, Cause> {
        loop {
            if let Some(place) = self.place().get() {
                return place.start();
            }
            Block::fill(self.bytes, self.place(), Backing::Own).map_err(|error| Cause::Error(Box::new(error)))?;
        }
    }

    /// How many there are.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it lies in memory that others may know.
    pub(super) fn is_lent(&self) -> bool {
        self.owner == Owner::Lent
    }

    /// Whether it lies in memory that something else keeps.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self.owner, Owner::Foreign | Owner::Lent)
    }

    /// The first byte: where `other` lies, if it lies nowhere yet and the other has as many bytes of its own.
    ///
    /// # Safety
    ///
    /// No op on the other storage is pending or will be pushed: its buffer was given away.
    pub unsafe fn start_in(self: &Arc<Self>, other: &Arc<Self>) -> Result<*mut u8, Cause> {
        if self.place().get().is_none() {
            self.take_place(other);
        }
        self.start()
    }

    /// Lies where `other` lies, unless it lies somewhere already. Answers whether it does.
    pub(crate) fn take_place(&self, other: &Arc<Self>) -> bool {
        if self.is_few {
            return false;
        }
        let root = match other.place().get() {
            Some(Backing::Own(_)) => Arc::clone(other),
            Some(Backing::Taken(root)) => Arc::clone(root),
            Some(Backing::Foreign { .. } | Backing::Within(_)) | None => return false,
        };
        root.bytes == self.bytes && self.place().set(Backing::Taken(root)).is_ok()
    }
}

impl Backing {
    fn start(&self) -> Result<*mut u8, Cause> {
        match self {
            Self::Own(block) => Ok(block.start()),
            Self::Taken(root) => match root.place().get() {
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
