//! The mode of this thread's pushes, and memory that has its place in a recording alone.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

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

    /// A recording of this name; arrays that are held when it ends are its states.
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
    /// Whether it records them.
    records: bool,
    /// Accesses granted to the ops that the thread runs.
    grants: u32,
}

thread_local! {
    static WORD: Cell<Word> = const { Cell::new(Word { records: false, grants: 0 }) };
    static TAG: RefCell<Option<Arc<Tag>>> = const { RefCell::new(None) };
}

/// Whether this thread records the ops that it pushes.
#[inline]
pub(crate) fn is_recording() -> bool {
    WORD.get().records
}

fn set_records(records: bool) {
    WORD.set(Word { records, ..WORD.get() });
}

/// Whether this thread does nothing but push: it neither records nor runs an op that was granted arrays.
#[inline]
pub(crate) fn is_plain() -> bool {
    WORD.get() == Word { records: false, grants: 0 }
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

/// From now on this thread records for this recording, or does not record.
pub(crate) fn set_tag(tag: Option<Arc<Tag>>) {
    set_records(tag.is_some());
    TAG.set(tag);
}

/// Lets the pushes of this thread run, though it records.
struct Recording(bool);

impl Drop for Recording {
    fn drop(&mut self) {
        set_records(self.0);
    }
}

/// Runs `body`, whose ops run and are not recorded, also on a thread that records.
pub fn suspended<T>(body: impl FnOnce() -> T) -> T {
    let _recording = Recording(is_recording());
    set_records(false);
    body()
}

/// The recording for which this thread records.
#[inline]
pub(crate) fn tag() -> Option<Arc<Tag>> {
    if is_recording() { TAG.with_borrow(Clone::clone) } else { None }
}

/// Whether this thread records for the recording, or for a part of it.
pub(crate) fn is_open(tag: &Arc<Tag>) -> bool {
    TAG.with_borrow(|open| open.as_ref().is_some_and(|open| open.is_within(tag)))
}
