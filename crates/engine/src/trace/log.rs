//! A growing list of records that one thread writes and others read, without a lock on the way.
//!
//! Records are groups of words in chunks of fixed size. The writer fills words behind the published length of the last
//! chunk, then publishes them; a reader looks no further. Chunks stay where they are until the log goes.

use super::recording::Outcome;
use super::{Ran, ticks};
use crate::sync::{AtomicUsize, Mutex, Ordering, UnsafeCell};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Arc, PoisonError};

/// Words of a chunk, unless one record needs more.
const WORDS: usize = if cfg!(loom) { 4 } else { 1 << 13 };

struct Chunk {
    words: Box<[MaybeUninit<UnsafeCell<u64>>]>,
    /// Words that may be read.
    published: AtomicUsize,
}

// SAFETY: published words do not change; the others are touched by the log's writer alone.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new(words: usize) -> Self {
        #[cfg(not(loom))]
        let words = Box::new_uninit_slice(words);
        #[cfg(loom)]
        let words = (0..words).map(|_| MaybeUninit::new(UnsafeCell::new(0))).collect();
        Self { words, published: AtomicUsize::new(0) }
    }
}

/// See the module.
pub(crate) struct Log {
    chunks: Mutex<Vec<Arc<Chunk>>>,
    /// The last chunk and the words used of it; the writer's.
    last: Cell<*const Chunk>,
    used: Cell<usize>,
}

// SAFETY: the cells are the writer's, of whom there is one at a time; the rest is Sync.
unsafe impl Sync for Log {}
// SAFETY: as above; `last` points into what the log owns.
unsafe impl Send for Log {}

impl Log {
    pub(crate) fn new() -> Self {
        Self { chunks: Mutex::new(Vec::new()), last: Cell::new(ptr::null()), used: Cell::new(0) }
    }

    /// Appends a record of so many words, which `words` answers one by one.
    ///
    /// # Safety
    ///
    /// No other thread appends meanwhile.
    #[inline]
    pub(crate) unsafe fn append(&self, count: usize, words: impl Iterator<Item = u64>) {
        let mut at = self.used.get();
        // SAFETY: `last` is null or points to a chunk of this log, which keeps it.
        let chunk = match unsafe { self.last.get().as_ref() } {
            Some(chunk) if at + count <= chunk.words.len() => chunk,
            _ => {
                at = 0;
                self.grow(count)
            }
        };
        for word in words.take(count) {
            // SAFETY: the word was not published, so it is the writer's; the pointer is into the chunk.
            unsafe { write(&chunk.words[at], word) };
            at += 1;
        }
        self.used.set(at);
        // ORDERING: pairs with the Acquire in each(): who sees the length sees the words.
        chunk.published.store(at, Ordering::Release);
    }

    #[cold]
    fn grow(&self, count: usize) -> &Chunk {
        let chunk = Arc::new(Chunk::new(WORDS.max(count)));
        let address = Arc::as_ptr(&chunk);
        self.last.set(address);
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
        // SAFETY: the log holds the chunk from now on.
        unsafe { &*address }
    }

    /// Hands the published words of each chunk to `read`, the first ones first. A record lies in one chunk.
    pub(crate) fn each(&self, mut read: impl FnMut(&mut dyn Iterator<Item = u64>)) {
        for chunk in &*self.chunks.lock().unwrap_or_else(PoisonError::into_inner) {
            // ORDERING: pairs with the Release in append().
            let published = chunk.published.load(Ordering::Acquire);
            // SAFETY: published words are written and do not change any more.
            read(&mut chunk.words[..published].iter().map(|word| unsafe { word.assume_init_ref().with(|word| *word) }));
        }
    }
}

/// Writes a word that nobody else looks at.
///
/// # Safety
///
/// It was not published.
#[inline]
unsafe fn write(word: &MaybeUninit<UnsafeCell<u64>>, value: u64) {
    // SAFETY: the cell has no state of its own but its content (under loom it was initialised); the rest is the caller's.
    unsafe { (*word.as_ptr()).with_mut(|word| word.write(value)) };
}

/// What the registrar notes; a part of the tracker.
pub(crate) struct Registered {
    log: Arc<Log>,
    /// The first ticket of the trace.
    first: u32,
    /// When the last op was settled, and how much the registrar had done by then.
    settled: (u64, u64),
    /// Why ops did not run.
    errors: Vec<(u32, String)>,
}

/// Kinds of records, in the top bits of their first word.
pub(super) const READY: u64 = 0;
pub(super) const SETTLED: u64 = 1;
pub(super) const SHIFT: u32 = 60;
/// Words of such a record, the first one included.
pub(super) const READY_WORDS: usize = 2;
pub(super) const SETTLED_WORDS: usize = 4;

impl Registered {
    pub(crate) fn new(log: Arc<Log>, first: u32) -> Self {
        Self { log, first, settled: (0, 0), errors: Vec::new() }
    }

    /// Whether an op that was pushed traced was so in this trace: one before it may have left some running.
    fn has(&self, number: u32) -> bool {
        is_since(self.first, number)
    }

    /// An op is ready. `done` grows with whatever the registrar does: if nothing was done since it settled an op, that
    /// made this one ready just now.
    pub(crate) fn ready(&mut self, number: u32, done: u64) {
        if self.has(number) {
            let now = if self.settled.1 == done { self.settled.0 } else { ticks() };
            let words = [READY << SHIFT | u64::from(number), now];
            // SAFETY: the registrar's role makes the caller alone.
            unsafe { self.log.append(READY_WORDS, words.into_iter()) };
        }
    }

    /// An op is settled. `ran` answers when it ran; it is asked only if it did.
    pub(crate) fn settled(&mut self, number: u32, outcome: Outcome, done: u64, ran: impl FnOnce() -> Option<Ran>) {
        if self.has(number) {
            self.settled = (ticks(), done);
            let [started, span] = ran().map_or([0, 0], Ran::words);
            let head = SETTLED << SHIFT | (outcome as u64) << 32 | u64::from(number);
            // SAFETY: as above.
            unsafe { self.log.append(SETTLED_WORDS, [head, started, span, self.settled.0].into_iter()) };
        }
    }

    /// Says why an op did not run.
    pub(crate) fn explain(&mut self, number: u32, reason: String) {
        if self.has(number) {
            self.errors.push((number, reason));
        }
    }

    /// What it has said so far.
    pub(crate) fn errors(&self) -> &[(u32, String)] {
        &self.errors
    }
}

/// Whether a number, of which the low half is known, is that of a ticket taken since this one.
pub(super) fn is_since(first: u32, number: u32) -> bool {
    number.wrapping_sub(first) < 1 << 31
}

#[cfg(all(test, loom))]
#[path = "../loom_tests/log.rs"]
mod loom_tests;
