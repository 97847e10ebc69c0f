//! A growing list of records that one thread writes and others read, without a lock on the way.
//!
//! Records are groups of words in chunks of fixed size. The writer fills words behind the published length of the last
//! chunk, then publishes them; a reader looks no further. Chunks stay where they are until the log goes.

use crate::sync::{AtomicUsize, Mutex, Ordering, UnsafeCell};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;
use std::slice;
use std::sync::{Arc, PoisonError};

/// Words of a chunk, unless one record needs more.
const WORDS: usize = if cfg!(loom) { 4 } else { 1 << 13 };

type Word = MaybeUninit<UnsafeCell<u64>>;

struct Chunk {
    words: Box<[Word]>,
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

/// The words of a record that is being written.
pub(super) struct Slots<'a>(slice::Iter<'a, Word>);

impl Slots<'_> {
    /// Writes the next one.
    #[inline]
    pub(super) fn put(&mut self, value: u64) {
        if let Some(word) = self.0.next() {
            // SAFETY: the word is not published, so it is the writer's. The cell has no state of its own but its content.
            unsafe { (*word.as_ptr()).with_mut(|word| word.write(value)) };
        }
    }
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { chunks: Mutex::new(Vec::new()), last: Cell::new(ptr::null()), used: Cell::new(0) }
    }

    /// Appends a record of so many words, all of which `fill` writes.
    ///
    /// # Safety
    ///
    /// No other thread appends meanwhile.
    #[inline]
    pub(super) unsafe fn append(&self, count: usize, fill: impl FnOnce(&mut Slots<'_>)) {
        let mut at = self.used.get();
        // SAFETY: `last` is null or points to a chunk of this log, which keeps it.
        let chunk = match unsafe { self.last.get().as_ref() } {
            Some(chunk) if at + count <= chunk.words.len() => chunk,
            _ => {
                at = 0;
                self.grow(count)
            }
        };
        let mut slots = Slots(chunk.words[at..at + count].iter());
        fill(&mut slots);
        debug_assert!(slots.0.next().is_none(), "a record is as long as it says");
        self.used.set(at + count);
        // ORDERING: pairs with the Acquire in each(): who sees the length sees the words.
        chunk.published.store(at + count, Ordering::Release);
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
    pub(super) fn each(&self, mut read: impl FnMut(&mut dyn Iterator<Item = u64>)) {
        for chunk in &*self.chunks.lock().unwrap_or_else(PoisonError::into_inner) {
            // ORDERING: pairs with the Release in append().
            let published = chunk.published.load(Ordering::Acquire);
            // SAFETY: published words are written and do not change any more.
            read(&mut chunk.words[..published].iter().map(|word| unsafe { word.assume_init_ref().with(|word| *word) }));
        }
    }
}

#[cfg(all(test, loom))]
#[path = "../loom_tests/log.rs"]
mod loom_tests;
