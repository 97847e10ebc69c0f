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
}

impl Tag {
    /// A recording of this name.
    #[must_use]
    pub fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), keeps: false })
    }

    /// A recording of this name, of which arrays that somebody holds when it ends are states.
    #[must_use]
    pub fn keeping(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), keeps: true })
    }

    /// Whether arrays made in it may last.
    #[must_use]
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

thread_local! {
    /// The one word that is asked on the way of every push.
    static MODE: Cell<Mode> = const { Cell::new(Mode::Runs) };
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
    MODE.get()
}

/// From now on this thread's ops on devices go to a graph, or run again.
pub fn set_captures(captures: bool) {
    MODE.set(if captures { Mode::Captures } else { Mode::Runs });
}

/// From now on this thread records for this recording, or does not record.
pub(crate) fn set_tag(tag: Option<Arc<Tag>>) {
    MODE.set(if tag.is_some() { Mode::Records } else { Mode::Runs });
    TAG.set(tag);
}

/// The recording for which this thread records.
#[inline]
pub(crate) fn tag() -> Option<Arc<Tag>> {
    if mode() == Mode::Records { TAG.with_borrow(Clone::clone) } else { None }
}

/// Whether this thread records for the recording.
pub(crate) fn is_open(tag: &Arc<Tag>) -> bool {
    TAG.with_borrow(|open| open.as_ref().is_some_and(|open| Arc::ptr_eq(open, tag)))
}
