//! Storage that is filled later, and the buffers that views share.

use crate::ArrayError;
use crate::elsewhere::Elsewhere;
use crate::memory::{Block, OutOfMemory};
use crate::order::Ranges;
use crate::pushing::Guarded;
use std::any::Any;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use weft_engine::{Cause, Engine, Variable};

/// Where the bytes lie, once something was written.
enum Place {
    /// In a block of one's own.
    Own(Block),
    /// In that of a temporary that nobody else could see any more.
    Taken(Arc<Storage>),
    /// In memory that someone else keeps.
    Foreign { start: NonNull<u8>, _keeper: Box<dyn Any + Send + Sync> },
    /// In memory that the host does not reach.
    Elsewhere(Elsewhere),
}

// SAFETY: memory is reached by ops whose accesses were granted, whichever thread they run on.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

/// Bytes that are allocated when they are first needed. Ops that write hold it; what only reads holds the buffer.
pub struct Storage {
    bytes: usize,
    place: OnceLock<Place>,
}

impl Storage {
    /// The first byte. Allocates. Memory that is not the host's has none.
    pub fn start(&self) -> Result<*mut u8, Cause> {
        if let Some(place) = self.place.get() {
            return place.start().ok_or_else(|| Cause::Error(Box::new(self.refusal())));
        }
        let block = Block::new(self.bytes).map_err(|error: OutOfMemory| Cause::Error(Box::new(error)))?;
        self.place.get_or_init(|| Place::Own(block)).start().ok_or_else(|| Cause::Error(Box::new(self.refusal())))
    }

    /// The memory, if it is not the host's.
    #[must_use]
    pub fn elsewhere(&self) -> Option<&Elsewhere> {
        if let Some(Place::Elsewhere(memory)) = self.place.get() { Some(memory) } else { None }
    }

    /// What is said to those who ask for the host's memory where there is none.
    #[cold]
    fn refusal(&self) -> ArrayError {
        let device = self.elsewhere().map_or_else(String::new, |memory| memory.device().to_owned());
        ArrayError::Elsewhere { device }
    }

    /// How many there are.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Lies where `other` lies, unless it lies somewhere already. Answers whether it does.
    pub(crate) fn take_place(&self, other: &Arc<Self>) -> bool {
        let root = match other.place.get() {
            Some(Place::Own(_)) => Arc::clone(other),
            Some(Place::Taken(root)) => Arc::clone(root),
            Some(Place::Foreign { .. } | Place::Elsewhere(_)) | None => return false,
        };
        root.bytes == self.bytes && self.place.set(Place::Taken(root)).is_ok()
    }
}

impl Place {
    fn start(&self) -> Option<*mut u8> {
        match self {
            Self::Own(block) => Some(block.start()),
            Self::Taken(root) => root.place.get().and_then(Self::start),
            Self::Foreign { start, .. } => Some(start.as_ptr()),
            Self::Elsewhere(_) => None,
        }
    }
}

/// Memory shared by an array and its views, and the variables that order accesses to it.
pub struct Buffer {
    pub(crate) storage: Arc<Storage>,
    engine: Engine,
    /// Orders accesses to the whole. Made when an op is first pushed on it: small arrays may never need one.
    variable: OnceLock<Variable>,
    pub(crate) ranges: Guarded<Ranges>,
    readonly: bool,
    /// Whether its bytes are not the host's.
    elsewhere: bool,
}

impl Buffer {
    fn with(engine: &Engine, bytes: usize, place: OnceLock<Place>, readonly: bool, device: Option<u16>) -> Arc<Self> {
        let elsewhere = matches!(place.get(), Some(Place::Elsewhere(_)));
        Arc::new(Self {
            storage: Arc::new(Storage { bytes, place }),
            engine: engine.clone(),
            variable: OnceLock::new(),
            ranges: Guarded::new(Ranges::on(device)),
            readonly,
            elsewhere,
        })
    }

    /// A buffer of so many bytes, allocated when they are first needed.
    #[must_use]
    pub fn new(engine: &Engine, bytes: usize) -> Arc<Self> {
        Self::with(engine, bytes, OnceLock::new(), false, None)
    }

    /// A buffer on memory that `keeper` keeps.
    ///
    /// # Safety
    ///
    /// The bytes are valid, and may be written to unless `readonly`, for as long as the keeper lives; nobody else
    /// touches them while ops may.
    #[must_use]
    pub unsafe fn foreign(
        engine: &Engine,
        start: NonNull<u8>,
        bytes: usize,
        readonly: bool,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        let place = OnceLock::from(Place::Foreign { start, _keeper: keeper });
        Self::with(engine, bytes, place, readonly, None)
    }

    /// A buffer on memory that the host does not reach, of the device that has this number among the engine's.
    ///
    /// Ops that need the host's memory are refused when they are pushed. Other crates push those that do not
    /// ([`PushRequest::anywhere`](crate::PushRequest)).
    #[must_use]
    pub fn elsewhere(engine: &Engine, bytes: usize, readonly: bool, device: u16, memory: Elsewhere) -> Arc<Self> {
        Self::with(engine, bytes, OnceLock::from(Place::Elsewhere(memory)), readonly, Some(device))
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.storage.bytes
    }

    /// Whether its bytes are not the host's.
    #[must_use]
    #[inline]
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// Its bytes. Whoever holds them and not the buffer must not touch them longer than the op lasts that gave them:
    /// they may become another array's.
    #[must_use]
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The engine that orders accesses to it.
    #[must_use]
    #[inline]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The variable that orders accesses to the whole.
    #[inline]
    pub(crate) fn variable(&self) -> &Variable {
        self.variable.get_or_init(|| self.engine.new_variable_of(self.storage.bytes as u64))
    }

    /// The same, if anything was pushed on it.
    #[inline]
    pub(crate) fn known_variable(&self) -> Option<&Variable> {
        self.variable.get()
    }

    /// Whether it must not be written to.
    #[must_use]
    pub fn is_readonly(&self) -> bool {
        self.readonly
    }

    /// Refuses to be used by the host, if its bytes are elsewhere.
    #[inline]
    pub(crate) fn check_host(&self) -> Result<(), ArrayError> {
        if self.elsewhere { Err(self.storage.refusal()) } else { Ok(()) }
    }

    /// Refuses to be written to, if that is so.
    pub(crate) fn check_writable(&self) -> Result<(), ArrayError> {
        if self.readonly { Err(ArrayError::ReadOnly) } else { Ok(()) }
    }

    /// The first byte, for whoever was granted an access or has waited. Allocates.
    pub fn start(&self) -> Result<*mut u8, Cause> {
        self.storage.start()
    }

    /// Whether these bytes are all.
    #[inline]
    pub(crate) fn is_whole(&self, range: &Range<usize>) -> bool {
        range.start == 0 && range.end == self.storage.bytes
    }
}
