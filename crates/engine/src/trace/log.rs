//! A growing list of records that one thread writes and others read, without a lock on the way.
//!
//! Records are groups of words in chunks of fixed size. The writer fills words behind the published length of the last
//! chunk, then publishes them; a reader looks no further. Chunks stay where they are until the log goes.

use crate::sync::{AtomicUsize, Mutex, Ordering, UnsafeCell};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Arc, PoisonError};

/// Words of a chunk, unless one record needs more.
const WORDS: usize = if cfg!(loom) { 4 } else { 1 << 13 };

/// Words of a page.
#[cfg(not(loom))]
const PAGE: usize = 512;

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

/// Chunks for the logs of a trace, in memory that the system has supplied: it does so page by page, and each takes
/// longer than its content.
#[derive(Clone)]
pub(super) struct Reserve(Arc<Mutex<Vec<Arc<Chunk>>>>);

impl Reserve {
    /// So many chunks.
    pub(super) fn new(chunks: usize) -> Self {
        let touched = || {
            let chunk = Chunk::new(WORDS);
            #[cfg(not(loom))]
            for word in chunk.words.iter().step_by(PAGE) {
                // SAFETY: nobody else knows the chunk.
                unsafe { (*word.as_ptr()).with_mut(|word| word.write(0)) };
            }
            Arc::new(chunk)
        };
        Self(Arc::new(Mutex::new(std::iter::repeat_with(touched).take(chunks).collect())))
    }

    fn take(&self) -> Option<Arc<Chunk>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// See the module.
pub(crate) struct Log {
    reserve: Reserve,
    chunks: Mutex<Vec<Arc<Chunk>>>,
    /// The last chunk and the words used of it; the writer's.
    last: Cell<*const Chunk>,
    used: Cell<usize>,
}

// SAFETY: the cells are the writer's, of whom there is one at a time; the rest is Sync.
unsafe impl Sync for Log {}
// SAFETY: as above; `last` points into what the log owns.
unsafe impl Send for Log {}

/// A record that is being written: words behind the published ones.
pub(super) struct Slots<'a> {
    log: &'a Log,
    chunk: &'a Chunk,
    /// The first word, and the next one.
    first: usize,
    next: usize,
}

impl Slots<'_> {
    #[inline]
    fn write(&self, at: usize, value: u64) {
        // SAFETY: the word is not published, so it is the writer's. The cell has no state of its own but its content.
        unsafe { (*self.chunk.words[at].as_ptr()).with_mut(|word| word.write(value)) };
    }

    /// Writes the next one.
    #[inline]
    pub(super) fn put(&mut self, value: u64) {
        self.write(self.next, value);
        self.next += 1;
    }

    /// Ends the record: from now on it may be read.
    #[inline]
    pub(super) fn publish(self) {
        self.log.used.set(self.next);
        // ORDERING: pairs with the Acquire in each(): a reader of the length sees the words.
        self.chunk.published.store(self.next, Ordering::Release);
    }

    /// Writes the first one, in whose place there was something else.
    #[inline]
    pub(super) fn put_first(&mut self, value: u64) {
        self.write(self.first, value);
    }
}

impl Log {
    pub(super) fn new(reserve: Reserve) -> Self {
        Self { reserve, chunks: Mutex::new(Vec::new()), last: Cell::new(ptr::null()), used: Cell::new(0) }
    }

    /// Begins a record of at most so many words.
    ///
    /// # Safety
    ///
    /// No other thread writes meanwhile, and the caller begins no other record before this one is published.
    #[inline]
    pub(super) unsafe fn begin(&self, most: usize) -> Slots<'_> {
        let used = self.used.get();
        // SAFETY: `last` is null or points to a chunk of this log, which keeps it.
        match unsafe { self.last.get().as_ref() } {
            Some(chunk) if used + most <= chunk.words.len() => Slots { log: self, chunk, first: used, next: used },
            _ => Slots { log: self, chunk: self.grow(most), first: 0, next: 0 },
        }
    }

    /// Appends a record.
    ///
    /// # Safety
    ///
    /// No other thread writes meanwhile.
    #[inline]
    pub(super) unsafe fn append<const N: usize>(&self, words: [u64; N]) {
        // SAFETY: the caller's promise.
        let mut slots = unsafe { self.begin(N) };
        for word in words {
            slots.put(word);
        }
        slots.publish();
    }

    #[cold]
    #[inline(never)]
    fn grow(&self, count: usize) -> &Chunk {
        let spare = if count <= WORDS { self.reserve.take() } else { None };
        let chunk = spare.unwrap_or_else(|| Arc::new(Chunk::new(WORDS.max(count))));
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
