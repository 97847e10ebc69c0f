//! What this thread does with the ops that it pushes, and memory that has its place in a recording alone.

use super::buffer::Buffer;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

/// What becomes of the ops that a thread pushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They run.
    Runs,
    /// Those on devices go to a graph of the device, the others run.
    Captures,
    /// They are recorded.
    Records,
}

/// A recording, for the arrays that belong to it.
#[derive(Debug)]
pub struct Tag {
    name: Box<str>,
    /// Whether arrays that are made while it is open, and are held when it ends, last: each replay writes into them.
    keeps: bool,
    /// The recording of which it is a part.
    outer: Option<Arc<Self>>,
}

impl Tag {
    /// A recording of this name.
    #[must_use]
    pub fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), keeps: false, outer: None })
    }

    /// A recording of this name, of which arrays that somebody holds when it ends are states.
    #[must_use]
    pub fn keeping(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), keeps: true, outer: None })
    }

    /// A part of a recording, whose arrays are gone when it ends.
    pub(crate) fn inside(outer: Arc<Self>, name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), keeps: false, outer: Some(outer) })
    }

    /// Whether it is a part of another one.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.outer.is_some()
    }

    /// Whether it is `other`, or a part of it.
    #[must_use]
    pub fn is_within(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        let mut next = Some(self);
        while let Some(tag) = next {
            if Arc::ptr_eq(tag, other) {
                return true;
            }
            next = tag.outer.as_ref();
        }
        false
    }

    /// Whether arrays made in it may last.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The one word that is asked on the way of every push.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word {
    mode: Mode,
    /// Accesses granted to the ops that the thread runs.
    grants: u32,
}

thread_local! {
    static WORD: Cell<Word> = const { Cell::new(Word { mode: Mode::Runs, grants: 0 }) };
    static TAG: RefCell<Option<Arc<Tag>>> = const { RefCell::new(None) };
    /// Buffers made for a recording that keeps them.
    static MADE: RefCell<Vec<Weak<Buffer>>> = const { RefCell::new(Vec::new()) };
}

/// Notes a buffer of a recording that keeps what is held when it ends.
pub(crate) fn note_made(buffer: &Arc<Buffer>) {
    MADE.with_borrow_mut(|made| made.push(Arc::downgrade(buffer)));
}

/// Takes what was noted.
pub(crate) fn take_made() -> Vec<Weak<Buffer>> {
    MADE.take()
}

/// What becomes of the ops that this thread pushes.
#[must_use]
#[inline]
pub fn mode() -> Mode {
    WORD.get().mode
}

fn set_mode(mode: Mode) {
    WORD.set(Word { mode, ..WORD.get() });
}

/// Whether this thread does nothing but push: it neither records nor runs an op that was granted arrays.
#[inline]
pub(crate) fn is_plain() -> bool {
    WORD.get() == Word { mode: Mode::Runs, grants: 0 }
}

/// Accesses granted to the ops that this thread runs.
#[inline]
pub(crate) fn grants() -> usize {
    WORD.get().grants as usize
}

/// From now on so many are granted.
pub(crate) fn set_grants(grants: usize) {
    let grants = u32::try_from(grants).unwrap_or(u32::MAX);
    WORD.set(Word { grants, ..WORD.get() });
}

/// From now on this thread's ops on devices go to a graph, or run again.
pub fn set_captures(captures: bool) {
    set_mode(if captures { Mode::Captures } else { Mode::Runs });
}

/// From now on this thread records for this recording, or does not record.
pub(crate) fn set_tag(tag: Option<Arc<Tag>>) {
    set_mode(if tag.is_some() { Mode::Records } else { Mode::Runs });
    TAG.set(tag);
}

/// Lets this thread run what it pushes, though it records.
struct Recording(Mode);

impl Drop for Recording {
    fn drop(&mut self) {
        set_mode(self.0);
    }
}

/// Runs `body`, whose ops run and are not recorded, whatever this thread does with others.
pub fn suspended<T>(body: impl FnOnce() -> T) -> T {
    let _recording = Recording(mode());
    set_mode(Mode::Runs);
    body()
}

/// The recording for which this thread records.
#[inline]
pub(crate) fn tag() -> Option<Arc<Tag>> {
    if mode() == Mode::Records { TAG.with_borrow(Clone::clone) } else { None }
}

/// Whether this thread records for the recording, or for a part of it.
pub(crate) fn is_open(tag: &Arc<Tag>) -> bool {
    TAG.with_borrow(|open| open.as_ref().is_some_and(|open| open.is_within(tag)))
}
