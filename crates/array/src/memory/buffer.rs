//! The buffers that views share.

use super::elsewhere::Elsewhere;
use super::pushing::Guarded;
use super::ranges::Ranges;
use super::recorded::{self, Tag};
use super::storage::{Place, Storage, Within};
use crate::ArrayError;
use std::any::Any;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use weft_engine::{Cause, Engine, Variable, handles};

/// What a buffer's bytes are.
enum Memory {
    Host(Arc<Storage>),
    /// Bytes that the host does not reach.
    Elsewhere(Elsewhere),
    /// None: they have a place in a recording.
    Recorded(Arc<Tag>),
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
    /// The call to which its memory was given away.
    given: OnceLock<Box<str>>,
}

impl Buffer {
    #[inline]
    fn of(engine: &Engine, bytes: usize, memory: Memory, readonly: bool) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            memory,
            engine: engine.clone(),
            of_elsewhere: None,
            of_host: OnceLock::new(),
            ranges: Guarded::default(),
            readonly,
            given: OnceLock::new(),
        })
    }

    fn on_host(engine: &Engine, bytes: usize, place: OnceLock<Place>, readonly: bool) -> Arc<Self> {
        Self::of(engine, bytes, Memory::Host(Storage::new(bytes, place)), readonly)
    }

    /// A buffer of so many bytes, allocated when they are first needed; while this thread records, one of the recording.
    #[must_use]
    #[inline]
    pub fn new(engine: &Engine, bytes: usize) -> Arc<Self> {
        match recorded::tag() {
            None => Self::on_host(engine, bytes, OnceLock::new(), false),
            Some(tag) if tag.keeps() => {
                let made = Self::on_host(engine, bytes, OnceLock::new(), false);
                recorded::note_made(&made);
                made
            }
            Some(tag) => Self::recorded(engine, bytes, false, tag),
        }
    }

    /// A buffer that has its place in a recording alone.
    #[must_use]
    pub fn recorded(engine: &Engine, bytes: usize, readonly: bool, tag: Arc<Tag>) -> Arc<Self> {
        Self::of(engine, bytes, Memory::Recorded(tag), readonly)
    }

    /// A buffer on bytes of an arena, which need not have memory yet.
    #[must_use]
    pub fn within(engine: &Engine, bytes: usize, place: Within) -> Arc<Self> {
        Self::on_host(engine, bytes, OnceLock::from(Place::Within(place)), false)
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
    /// ([`Call::anywhere`](crate::Call)).
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
            given: OnceLock::new(),
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

    /// The recording in which alone it has its place.
    #[must_use]
    #[inline]
    pub fn recording(&self) -> Option<&Arc<Tag>> {
        if let Memory::Recorded(tag) = &self.memory { Some(tag) } else { None }
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
            Memory::Host(storage) => match self.given.get() {
                None => Ok(storage),
                Some(call) => Err(ArrayError::GivenAway { call: call.to_string() }),
            },
            Memory::Elsewhere(memory) => Err(ArrayError::Elsewhere { device: memory.device().to_owned() }),
            Memory::Recorded(tag) => Err(ArrayError::Recorded { recording: tag.name().to_owned() }),
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

    /// Refuses to be used by the host, if its bytes are elsewhere, or nowhere.
    #[inline]
    pub(crate) fn check_host(&self) -> Result<(), ArrayError> {
        self.storage().map(drop)
    }

    /// Whether its bytes are the host's.
    #[inline]
    pub fn is_host(&self) -> bool {
        matches!(self.memory, Memory::Host(_)) && self.given.get().is_none()
    }

    /// Refuses to be written to, if that is so.
    pub(crate) fn check_writable(&self) -> Result<(), ArrayError> {
        if self.readonly { Err(ArrayError::ReadOnly) } else { Ok(()) }
    }

    /// The first byte, for whoever was granted an access or has waited. Allocates.
    pub fn start(&self) -> Result<*mut u8, Cause> {
        if let Memory::Host(storage) = &self.memory {
            return storage.start(); // who was granted it before it was given away has it
        }
        self.storage().map_err(|error| Cause::Error(Box::new(error)))?.start()
    }

    /// Whether one handle alone is left on it, and no op has it in hand but those that write to it: then nobody else can
    /// come to see it.
    #[must_use]
    pub fn is_alone(self: &Arc<Self>) -> bool {
        handles(self) == 1
    }

    /// Gives its memory away, to the call of this name: from now on it can be neither looked at nor pushed on.
    pub fn give_away(&self, call: &str) {
        let _ = self.given.set(call.into());
    }

    /// The call to which its memory was given away.
    #[must_use]
    pub fn given_to(&self) -> Option<&str> {
        self.given.get().map(|call| &**call)
    }

    /// Whether these bytes are all.
    #[inline]
    pub(crate) fn is_whole(&self, range: &Range<usize>) -> bool {
        range.start == 0 && range.end == self.bytes
    }
}
