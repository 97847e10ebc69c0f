//! The note of a push for a trace.

use super::local::{Known, Local};
use super::recorder::Recorder;
use std::sync::Arc;

/// The kind of an op, for traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Kind {
    /// A payload that runs inside the engine's host: a Python callable.
    Callable = 0,
    /// Any other payload: a native function.
    #[default]
    Native = 1,
    /// A computation on arrays.
    Compute = 2,
    /// A copy of arrays.
    Copy = 3,
    /// An op that completes by its token.
    Async = 4,
    /// The launch of a kernel on a device.
    Launch = 5,
    /// A wait: from its begin to its end.
    Wait = 6,
    /// The finalizer of a deleted variable.
    Finalizer = 7,
}

impl Kind {
    pub(super) const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Callable,
            2 => Self::Compute,
            3 => Self::Copy,
            4 => Self::Async,
            5 => Self::Launch,
            6 => Self::Wait,
            7 => Self::Finalizer,
            _ => Self::Native,
        }
    }
}

/// An op's kind, name and place of push, in the numbers of one trace. A small copy: made before the push by
/// [`Engine::note`](crate::Engine::note), by a pusher that knows more than its payload's type.
#[derive(Debug, Clone, Copy, Default)]
pub struct Note {
    /// The trace of these numbers; 0 is none.
    pub(crate) trace: u32,
    pub(crate) name: u32,
    pub(crate) place: u32,
    pub(crate) kind: Option<Kind>,
    /// Where it was pushed, in the pusher's words; 0 if not stated.
    pub(super) key: u64,
}

impl Note {
    /// A note of the op's kind, and no more: its name and place are those of the push.
    #[must_use]
    pub const fn of(kind: Kind) -> Self {
        Self { trace: 0, name: 0, place: 0, kind: Some(kind), key: 0 }
    }

    /// How many bytes behind its start the eight of its [place](Self::at) lie, for payloads that keep a note.
    pub const PLACE: usize = std::mem::offset_of!(Self, key);

    /// The note, which also says where the op is pushed, in a way of the pusher's: for failures, traced or not.
    #[must_use]
    pub const fn at(self, place: u64) -> Self {
        Self { key: place, ..self }
    }

    /// Where the op was pushed; 0 if not stated.
    #[must_use]
    pub const fn key(self) -> u64 {
        self.key
    }

    /// The note, with this kind if it has none.
    #[must_use]
    #[inline]
    pub fn or(self, kind: Kind) -> Self {
        Self { kind: self.kind.or(Some(kind)), ..self }
    }

    /// The note without a name: for an op pushed on behalf of this one.
    #[must_use]
    pub const fn unnamed(self) -> Self {
        Self { name: 0, ..self }
    }
}

/// Tells the pusher's own facts, when a trace first asks.
pub trait Describe {
    /// The place that goes by this key, as text.
    fn place(&self, key: u64) -> String;

    /// The name of the calling thread.
    fn thread(&self) -> Option<String>;
}

/// A note in the numbers of a trace, which `find` answers where the thread has not met the name or the place before. A
/// key of 0 is no place.
pub(crate) fn note(
    trace: u32,
    find: &dyn Fn() -> Option<Arc<Recorder>>,
    kind: Kind,
    name: &str,
    key: u64,
    describe: &dyn Describe,
) -> Note {
    // What describes may run Python, and this trace may end meanwhile and another one begin: its numbers are others.
    let find = &|| find().filter(|recorder| recorder.id() == trace);
    let unnamed = Local::with(trace, find, |local| (!local.named.replace(true)).then(|| local.number.get()));
    if let Some(thread) = unnamed.flatten()
        && let Some(name) = describe.thread()
        && let Some(recorder) = find()
    {
        recorder.name_thread(thread, name);
    }
    let known = Known::with(trace, |known| (known.name(name), if key == 0 { Some(0) } else { known.place(key) }));
    let (name_number, place) = known.unwrap_or_default();
    let name = name_number.or_else(|| Some(find()?.name_number(name))).unwrap_or(0);
    let place = place.or_else(|| Some(find()?.place_number(key, &describe.place(key)))).unwrap_or(0);
    Note { trace, name, place, kind: Some(kind), key }
}
