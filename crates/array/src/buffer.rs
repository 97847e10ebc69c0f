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
}

// SAFETY: memory is reached by ops whose accesses were granted, whichever thread they run on.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

/// Bytes of the host that are allocated when they are first needed. Ops that write hold it; what only reads holds the buffer.
pub struct Storage {
    bytes: usize,
    place: OnceLock<Place>,
}

impl Storage {
    fn new(bytes: usize, place: OnceLock<Place>) -> Arc<Self> {
        Arc::new(Self { bytes, place })
    }

    /// The first byte. Allocates.
    pub fn start(&self) -> Result<*mut u8, Cause> {
        if let Some(place) = self.place.get() {
            return Ok(place.start());
        }
        let block = Block::new(self.bytes).map_err(|error: OutOfMemory| Cause::Error(Box::new(error)))?;
        Ok(self.place.get_or_init(|| Place::Own(block)).start())
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
            Some(Place::Foreign { .. }) | None => return false,
        };
        root.bytes == self.bytes && self.place.set(Place::Taken(root)).is_ok()
    }
}

impl Place {
    fn start(&self) -> *mut u8 {
        match self {
            Self::Own(block) => block.start(),
            Self::Taken(root) => match root.place.get() {
                Some(place) => place.start(),
                None => unreachable!("what is taken lies somewhere"),
            },
            Self::Foreign { start, .. } => start.as_ptr(),
        }
    }
}

/// What a buffer's bytes are.
enum Memory {
    Host(Arc<Storage>),
    /// Bytes that the host does not reach.
    Elsewhere(Elsewhere),
}

/// Memory shared by an array and its views, and the variables that order accesses to it.
pub struct Buffer {
    bytes: usize,
    memory: Memory,
    engine: Engine,
    /// Orders accesses to the whole: of bytes that are not the host's.
    of_elsewhere: Option<Variable>,
    /// The same, of the host's. Made when an op is first pushed on it: small arrays may never need one.
    of_host: OnceLock<Variable>,
    pub(crate) ranges: Guarded<Ranges>,
    readonly: bool,
}

impl Buffer {
    fn on_host(engine: &Engine, bytes: usize, place: OnceLock<Place>, readonly: bool) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            memory: Memory::Host(Storage::new(bytes, place)),
            engine: engine.clone(),
            of_elsewhere: None,
            of_host: OnceLock::new(),
            ranges: Guarded::default(),
            readonly,
        })
    }

    /// A buffer of so many bytes, allocated when they are first needed.
    #[must_use]
    pub fn new(engine: &Engine, bytes: usize) -> Arc<Self> {
        Self::on_host(engine, bytes, OnceLock::new(), false)
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
        Self::on_host(engine, bytes, place, readonly)
    }

    /// A buffer on memory that the host does not reach, of the device that has this number among the engine's.
    ///
    /// Ops that need the host's memory are refused when they are pushed. Other crates push those that do not
    /// ([`PushRequest::anywhere`](crate::PushRequest)).
    #[must_use]
    #[inline]
    pub fn elsewhere(engine: &Engine, bytes: usize, readonly: bool, device: u16, memory: Elsewhere) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            memory: Memory::Elsewhere(memory),
            engine: engine.clone(),
            of_elsewhere: Some(engine.new_variable_of(bytes as u64)),
            of_host: OnceLock::new(),
            ranges: Guarded::new(Ranges::on(device)),
            readonly,
        })
    }

    /// Its size in bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether its bytes are not the host's.
    #[must_use]
    #[inline]
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.memory, Memory::Elsewhere(_))
    }

    /// Its memory, if that is not the host's.
    #[must_use]
    #[inline]
    pub fn memory_elsewhere(&self) -> Option<&Elsewhere> {
        if let Memory::Elsewhere(memory) = &self.memory { Some(memory) } else { None }
    }

    /// Its bytes, if they are the host's. Whoever holds them and not the buffer must not touch them longer than the op
    /// lasts that gave them: they may become another array's.
    #[inline]
    pub fn storage(&self) -> Result<&Arc<Storage>, ArrayError> {
        match &self.memory {
            Memory::Host(storage) => Ok(storage),
            Memory::Elsewhere(memory) => Err(ArrayError::Elsewhere { device: memory.device().to_owned() }),
        }
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
        match &self.of_elsewhere {
            Some(variable) => variable,
            None => self.of_host.get_or_init(|| self.engine.new_variable_of(self.bytes as u64)),
        }
    }

    /// The same, if there is one: until then nothing was pushed on it.
    #[inline]
    pub(crate) fn known_variable(&self) -> Option<&Variable> {
        self.of_elsewhere.as_ref().or_else(|| self.of_host.get())
    }

    /// Whether it must not be written to.
    #[must_use]
    pub fn is_readonly(&self) -> bool {
        self.readonly
    }

    /// Refuses to be used by the host, if its bytes are elsewhere.
    #[inline]
    pub(crate) fn check_host(&self) -> Result<(), ArrayError> {
        self.storage().map(drop)
    }

    /// Refuses to be written to, if that is so.
    pub(crate) fn check_writable(&self) -> Result<(), ArrayError> {
        if self.readonly { Err(ArrayError::ReadOnly) } else { Ok(()) }
    }

    /// The first byte, for whoever was granted an access or has waited. Allocates.
    pub fn start(&self) -> Result<*mut u8, Cause> {
        self.storage().map_err(|error| Cause::Error(Box::new(error)))?.start()
    }

    /// Whether these bytes are all.
    #[inline]
    pub(crate) fn is_whole(&self, range: &Range<usize>) -> bool {
        range.start == 0 && range.end == self.bytes
    }
}
