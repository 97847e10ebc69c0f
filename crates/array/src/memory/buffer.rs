//! The buffers that views share.

use super::elsewhere::{Elsewhere, Home};
use super::pushing::Guarded;
use super::ranges::Ranges;
use super::recorded::{self, Tag};
use super::storage::{Backing, Storage, Within};
use crate::ArrayError;
use std::any::Any;
use std::cell::RefCell;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock, Weak};
use weft_engine::{Cause, Engine, Variable, handles};

thread_local! {
    /// Buffers made for a recording that keeps them.
    static MADE: RefCell<Vec<Weak<Buffer>>> = const { RefCell::new(Vec::new()) };
}

/// Notes a buffer of a recording that keeps the arrays held at its end.
fn note_made(buffer: &Arc<Buffer>) {
    MADE.with_borrow_mut(|made| made.push(Arc::downgrade(buffer)));
}

/// Takes the notes.
pub(crate) fn take_made() -> Vec<Weak<Buffer>> {
    MADE.take()
}

/// The kind of a buffer's bytes.
enum Memory {
    Host(Arc<Storage>),
    /// Bytes that the host does not reach; or that have a place in a recording alone, as the next ones.
    Elsewhere(Elsewhere, Option<InRecording>),
    /// None: they have a place in a recording.
    Recorded(InRecording),
}

/// The place that bytes have in a recording alone.
struct InRecording {
    tag: Arc<Tag>,
    /// The address of the buffer for which they stand there, if it is not 0.
    stands_for: usize,
}

/// Why a buffer has memory no more that anybody may use.
enum Gone {
    /// It was given away, to the call of this name.
    To(Box<str>),
    /// It was made in a recording that came to nothing.
    With(Arc<Tag>),
}

/// Whose memory from outside is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Lent by an owner that may change it between ops.
    Borrowed,
    /// The buffer's alone.
    Owned,
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
    /// Why it is of no use any more. Behind a pointer, as it is rare: buffers are made and moved all the time.
    gone: OnceLock<Box<Gone>>,
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
            gone: OnceLock::new(),
        })
    }

    #[inline]
    fn on_host(engine: &Engine, bytes: usize) -> Arc<Self> {
        Self::of(engine, bytes, Memory::Host(Storage::new(bytes)), false)
    }

    /// A buffer of so many bytes, allocated when they are first needed; while this thread records, one of the recording.
    #[must_use]
    #[inline]
    pub fn new(engine: &Engine, bytes: usize) -> Arc<Self> {
        match recorded::tag() {
            None => Self::on_host(engine, bytes),
            Some(tag) if tag.keeps() => {
                let made = Self::on_host(engine, bytes);
                note_made(&made);
                made
            }
            Some(tag) => Self::recorded(engine, bytes, false, tag),
        }
    }

    /// A buffer that has its place in a recording alone.
    #[must_use]
    pub fn recorded(engine: &Engine, bytes: usize, readonly: bool, tag: Arc<Tag>) -> Arc<Self> {
        Self::of(engine, bytes, Memory::Recorded(InRecording { tag, stands_for: 0 }), readonly)
    }

    /// A buffer that stands for this one in a recording, which is over before this one may go.
    #[must_use]
    pub fn standing_in(self: &Arc<Self>, readonly: bool, tag: Arc<Tag>) -> Arc<Self> {
        let place = InRecording { tag, stands_for: Arc::as_ptr(self).addr() };
        match self.home() {
            None => Self::of(&self.engine, self.bytes, Memory::Recorded(place), readonly),
            Some(home) => {
                let memory = Elsewhere::fresh(home, self.bytes);
                Self::on_device(&self.engine, self.bytes, readonly, memory, Some(place))
            }
        }
    }

    /// Whether two buffers are the same memory: one buffer, or one and its stand-in in a recording.
    #[must_use]
    #[inline]
    pub fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        let stands =
            |one: &Self, other: *const Self| one.in_recording().is_some_and(|place| place.stands_for == other.addr());
        Arc::ptr_eq(self, other) || stands(self, Arc::as_ptr(other)) || stands(other, Arc::as_ptr(self))
    }

    /// A buffer on bytes of an arena, which need not have memory yet.
    #[must_use]
    pub fn within(engine: &Engine, bytes: usize, place: Within) -> Arc<Self> {
        Self::of(engine, bytes, Memory::Host(Storage::at(bytes, Backing::Within(place))), false)
    }

    /// A buffer on bytes that others write in turn, after and before it.
    pub(crate) fn beside(&self, storage: Arc<Storage>) -> Arc<Self> {
        Self::of(&self.engine, self.bytes, Memory::Host(storage), false)
    }

    /// Keeps its bytes where they are, if they are the host's.
    #[inline]
    pub fn pin_for_good(&self) {
        if let Memory::Host(storage) = &self.memory {
            storage.pin_for_good();
        }
    }

    /// A buffer on memory that `keeper` keeps.
    ///
    /// # Safety
    ///
    /// The bytes are valid, and may be written to unless `readonly`, for as long as the keeper lives; ops
    /// alone touch them while these may, and at any time where they are [owned](Ownership::Owned). The keeper claims no
    /// more: a `Vec` may be one, a `Box` of the bytes is their only way by Rust's rules.
    #[must_use]
    pub unsafe fn foreign(
        engine: &Engine,
        start: NonNull<u8>,
        bytes: usize,
        readonly: bool,
        ownership: Ownership,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        let is_lent = ownership == Ownership::Borrowed;
        let place = Backing::Foreign { start, is_lent, _keeper: keeper };
        Self::of(engine, bytes, Memory::Host(Storage::at(bytes, place)), readonly)
    }

    /// A buffer on memory that the host does not reach.
    ///
    /// Ops that need the host's memory are refused when they are pushed. Other crates push those that do not
    /// ([`Call::anywhere`](crate::Call)).
    #[must_use]
    #[inline]
    pub fn elsewhere(engine: &Engine, bytes: usize, readonly: bool, memory: Elsewhere) -> Arc<Self> {
        Self::on_device(engine, bytes, readonly, memory, None)
    }

    /// A buffer of so many bytes of a device; while this thread records, one of the recording.
    #[must_use]
    #[inline]
    pub fn new_on(engine: &Engine, bytes: usize, home: &'static dyn Home) -> Arc<Self> {
        let memory = Elsewhere::renamed(home, bytes, engine.rename_limit());
        match recorded::tag() {
            None => Self::on_device(engine, bytes, false, memory, None),
            Some(tag) if tag.keeps() => {
                let made = Self::on_device(engine, bytes, false, memory, None);
                note_made(&made);
                made
            }
            Some(tag) => Self::on_device(engine, bytes, false, memory, Some(InRecording { tag, stands_for: 0 })),
        }
    }

    #[inline]
    fn on_device(
        engine: &Engine,
        bytes: usize,
        readonly: bool,
        memory: Elsewhere,
        place: Option<InRecording>,
    ) -> Arc<Self> {
        let device = memory.home().number();
        Arc::new(Self {
            bytes,
            memory: Memory::Elsewhere(memory, place),
            engine: engine.clone(),
            of_elsewhere: Some(engine.new_variable_of(bytes as u64)),
            of_host: OnceLock::new(),
            ranges: Guarded::new(Ranges::on(device)),
            readonly,
            gone: OnceLock::new(),
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
        matches!(self.memory, Memory::Elsewhere(..))
    }

    /// The recording in which alone it has its place.
    #[must_use]
    #[inline]
    pub fn recording(&self) -> Option<&Arc<Tag>> {
        self.in_recording().map(|place| &place.tag)
    }

    #[inline]
    fn in_recording(&self) -> Option<&InRecording> {
        match &self.memory {
            Memory::Recorded(place) | Memory::Elsewhere(_, Some(place)) => Some(place),
            Memory::Host(_) | Memory::Elsewhere(_, None) => None,
        }
    }

    /// The device in whose memory its bytes are, if they are not the host's.
    #[must_use]
    #[inline]
    pub fn home(&self) -> Option<&'static dyn Home> {
        self.memory_elsewhere().map(Elsewhere::home)
    }

    /// Its memory, if that is not the host's.
    #[must_use]
    #[inline]
    pub fn memory_elsewhere(&self) -> Option<&Elsewhere> {
        if let Memory::Elsewhere(memory, _) = &self.memory { Some(memory) } else { None }
    }

    /// Its bytes, if they are the host's. A holder of them without the buffer touches them only during the
    /// op that gave them: they may become another array's.
    #[inline]
    pub fn storage(&self) -> Result<&Arc<Storage>, ArrayError> {
        match &self.memory {
            Memory::Host(storage) => match self.gone.get().map(|gone| &**gone) {
                None => Ok(storage),
                Some(Gone::To(call)) => Err(ArrayError::GivenAway { call: call.to_string() }),
                Some(Gone::With(tag)) => Err(ArrayError::Recorded { recording: tag.name().to_owned() }),
            },
            Memory::Elsewhere(memory, None) => Err(ArrayError::Elsewhere { device: memory.device().to_owned() }),
            Memory::Recorded(place) | Memory::Elsewhere(_, Some(place)) => {
                Err(ArrayError::Recorded { recording: place.tag.name().to_owned() })
            }
        }
    }

    /// Its bytes, for an op that was granted them before they were given away.
    ///
    /// # Panics
    ///
    /// If they are not the host's.
    pub(crate) fn kept(&self) -> &Arc<Storage> {
        match &self.memory {
            Memory::Host(storage) => storage,
            Memory::Elsewhere(..) | Memory::Recorded(_) => unreachable!("only the host's memory is renamed"),
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
        matches!(self.memory, Memory::Host(_)) && self.gone.get().is_none()
    }

    /// Refuses to be written to, if that is so.
    pub(crate) fn check_writable(&self) -> Result<(), ArrayError> {
        if self.readonly { Err(ArrayError::ReadOnly) } else { Ok(()) }
    }

    /// The first byte, behind a granted access or a wait. Allocates.
    #[inline]
    pub fn start(&self) -> Result<*mut u8, Cause> {
        if let Memory::Host(storage) = &self.memory {
            return storage.start(); // an access granted before it was given away keeps it
        }
        self.storage().map_err(|error| Cause::Error(Box::new(error)))?.start()
    }

    /// Whether one handle alone is left on it, and no op has it in hand but those that write to it: then no other
    /// code can come to see it. A thread that borrows that handle meanwhile has no handle of its own: the caller sees to it that none does.
    #[must_use]
    pub fn is_alone(self: &Arc<Self>) -> bool {
        handles(self) == 1
    }

    /// Whether its memory is the host's, and changed by ops alone: lent memory may be changed by its owner.
    #[must_use]
    pub fn is_own(&self) -> bool {
        matches!(&self.memory, Memory::Host(storage) if !storage.is_lent())
    }

    /// Whether its memory was somebody else's at first, and so has held values before any op.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(&self.memory, Memory::Host(storage) if storage.is_foreign())
    }

    /// Gives its memory away, to the call of this name: from now on it can be neither looked at nor pushed on.
    pub fn give_away(&self, call: &str) {
        let _ = self.gone.set(Box::new(Gone::To(call.into())));
    }

    /// Says that it was made in a recording that came to nothing: nothing will ever be written to it.
    pub(crate) fn abandon(&self, tag: &Arc<Tag>) {
        let _ = self.gone.set(Box::new(Gone::With(Arc::clone(tag))));
    }

    /// Why it has memory no more, in a word or two: `given away`, or `recorded` by a recording that came to nothing.
    #[must_use]
    pub fn fate(&self) -> Option<&'static str> {
        self.gone.get().map(|gone| match **gone {
            Gone::To(_) => "given away",
            Gone::With(_) => "recorded",
        })
    }

    /// Whether these bytes are all.
    #[inline]
    pub(crate) fn is_whole(&self, range: &Range<usize>) -> bool {
        range.start == 0 && range.end == self.bytes
    }
}
