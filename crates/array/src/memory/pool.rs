//! Blocks of memory, kept for the next array of about their size.
//!
//! The system gives large blocks back to itself and clears them anew each time: for arrays of megabytes that takes
//! longer than the arithmetic. So blocks go to lists by class of size, up to a limit.

use std::alloc::{GlobalAlloc, Layout as AllocLayout, System};
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Blocks below this size come from the system's allocator, which is as fast for them, and are not counted. (Of larger ones that
/// a loop has held and dropped it gives the pages back, and clears them anew at the next turn.)
const SMALL: usize = 2048;
/// Bytes kept for reuse at most. A sanitizer knows what is freed only if it goes back to the system.
const KEPT: usize = if cfg!(sanitized) { 0 } else { 512 << 20 };
/// Alignment: that of a cache line and of the widest vector registers.
const ALIGN: usize = 64;
const SMALL_ALIGN: usize = 16;
/// Blocks of at least [`LARGE`] bytes lie on pages of this size, where the system has them: those are filled and looked up
/// at once, and MPI, which maps another process's pages to read them, is twice as fast.
const HUGE_PAGE: usize = 2 << 20;
const LARGE: usize = 4 << 20;
/// Four classes for each power of two waste a fifth at most.
const STEPS: usize = 4;
/// Arenas that are kept while nobody uses them.
const ARENAS: usize = if cfg!(sanitized) { 0 } else { 2 };
const CLASSES: usize = usize::BITS as usize * STEPS;

/// Bytes of large blocks, in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Taken from the system: in use and kept.
    pub allocated: usize,
    /// Held by arrays.
    pub in_use: usize,
    /// Kept for reuse.
    pub cached: usize,
    /// The most that was in use at the same time.
    pub peak: usize,
}

/// Unused blocks, by class, and the figures.
pub(crate) struct Pool {
    free: [Vec<NonNull<u8>>; CLASSES],
    /// Arenas, with their sizes.
    arenas: Vec<(NonNull<u8>, usize)>,
    stats: MemoryStats,
    /// When a block was last taken or given back.
    used: Option<Instant>,
}

// SAFETY: blocks in the lists belong to the pool.
unsafe impl Send for Pool {}

impl Pool {
    /// Counts a block of a class as in use. Answers it, unless the caller has to ask the system for one.
    fn take(&mut self, class: usize, size: usize) -> Option<NonNull<u8>> {
        self.used = Some(Instant::now());
        let block = self.free[class].pop();
        let stats = &mut self.stats;
        if block.is_some() {
            stats.cached -= size;
        } else {
            stats.allocated += size;
        }
        stats.in_use += size;
        stats.peak = stats.peak.max(stats.in_use);
        block
    }

    /// The system had none.
    fn untake(&mut self, size: usize) {
        self.stats.allocated -= size;
        self.stats.in_use -= size;
    }
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    free: [const { Vec::new() }; CLASSES],
    arenas: Vec::new(),
    stats: MemoryStats { allocated: 0, in_use: 0, cached: 0, peak: 0 },
    used: None,
});

pub(crate) fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The class of a size, and the bytes of its blocks.
fn class_of(bytes: usize) -> (usize, usize) {
    if cfg!(sanitized) {
        return (0, bytes); // what lies behind the block is nobody's
    }
    let power = bytes.ilog2() as usize;
    let step = (1_usize << power) / STEPS;
    let quarter = (bytes - (1 << power)).div_ceil(step);
    (power * STEPS + quarter, (1 << power) + quarter * step)
}

/// From the system itself: a program's own allocator may promise memory that the system does not have.
fn system(bytes: usize, align: usize) -> Result<NonNull<u8>, OutOfMemory> {
    let align = alignment(bytes, align);
    let layout = AllocLayout::from_size_align(bytes.max(1), align).map_err(|_| OutOfMemory { bytes })?;
    // SAFETY: the size is not 0.
    let start = NonNull::new(unsafe { System.alloc(layout) }).ok_or(OutOfMemory { bytes })?;
    if align == HUGE_PAGE {
        ask_for_huge_pages(start, bytes);
    }
    Ok(start)
}

/// The alignment of a block, of which at least `least` was asked for.
fn alignment(bytes: usize, least: usize) -> usize {
    if cfg!(all(target_os = "linux", not(miri))) && bytes >= LARGE { HUGE_PAGE } else { least }
}

/// Tells the system that this block may lie on huge pages: as many as fit into it whole, so that it takes no more memory.
#[cfg(all(target_os = "linux", not(miri)))]
fn ask_for_huge_pages(start: NonNull<u8>, bytes: usize) {
    use std::ffi::{c_int, c_void};
    unsafe extern "C" {
        fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    }
    const MADV_HUGEPAGE: c_int = 14;
    // SAFETY: the block is the caller's, and begins with a page. The advice changes no contents.
    unsafe { madvise(start.as_ptr().cast(), bytes - bytes % HUGE_PAGE, MADV_HUGEPAGE) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn ask_for_huge_pages(_: NonNull<u8>, _: usize) {}

/// Gives a block back to the system.
///
/// # Safety
///
/// It came from `system` with the same arguments, and is not used any more.
unsafe fn give_back(block: NonNull<u8>, bytes: usize, align: usize) {
    let align = alignment(bytes, align);
    // SAFETY: the caller's promise; the layout was valid then.
    unsafe { System.dealloc(block.as_ptr(), AllocLayout::from_size_align_unchecked(bytes.max(1), align)) };
}

/// The system has no block of this size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub bytes: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unable to allocate {} bytes for an array", self.bytes)
    }
}

impl std::error::Error for OutOfMemory {}

/// A block of memory that an array's elements lie in. Not initialised.
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    bytes: usize,
    kind: Kind,
}

/// Where a block goes when it is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// To the system, or to the list of its class.
    Array,
    /// To the arenas that are kept.
    Arena,
}

// SAFETY: it owns its bytes.
unsafe impl Send for Block {}
// SAFETY: as above; a writer through `start` answers for it.
unsafe impl Sync for Block {}

impl Block {
    /// A block of at least so many bytes.
    pub fn new(bytes: usize) -> Result<Self, OutOfMemory> {
        if bytes < SMALL {
            return Ok(Self { start: system(bytes, SMALL_ALIGN)?, bytes, kind: Kind::Array });
        }
        let (class, size) = class_of(bytes);
        let reused = pool().take(class, size);
        let made = reused.map_or_else(|| system(size, ALIGN), Ok);
        if made.is_err() {
            pool().untake(size);
        }
        Ok(Self { start: made?, bytes, kind: Kind::Array })
    }

    /// Puts a block of at least so many bytes into a place where there is nothing yet.
    ///
    /// | thread | finds, under the pool's lock | does |
    /// |---|---|---|
    /// | the first one | nothing | takes a block, or asks the system; fills the place; lets go of the lock |
    /// | one that came at the same time | the place filled | nothing |
    /// | one behind a failure | nothing | tries for itself |
    ///
    /// So no thread takes a block in vain, and none waits for one that a fork has left behind: the forking thread holds
    /// the lock. Small blocks are not counted, and ask for no lock: of two, the later one goes.
    pub(super) fn fill<T>(bytes: usize, place: &OnceLock<T>, wrap: impl FnOnce(Self) -> T) -> Result<(), OutOfMemory> {
        if bytes < SMALL {
            let made = wrap(Self::new(bytes)?);
            drop(place.set(made));
            return Ok(());
        }
        let (class, size) = class_of(bytes);
        let mut pool = pool();
        if place.get().is_some() {
            return Ok(());
        }
        let reused = pool.take(class, size);
        let made = reused.map_or_else(|| system(size, ALIGN), Ok).inspect_err(|_| pool.untake(size));
        let filled = place.set(wrap(Self { start: made?, bytes, kind: Kind::Array }));
        drop(pool);
        drop(filled); // a block that came in between without the lock stays, and this one goes back
        Ok(())
    }

    /// A block for a while: one of those that all arenas share, the smallest that suffices, or a new one in the place of
    /// the largest that does not.
    pub fn arena(bytes: usize) -> Result<Self, OutOfMemory> {
        if bytes < SMALL {
            return Self::new(bytes);
        }
        let size = bytes.next_multiple_of(ALIGN);
        let (found, small) = {
            let mut pool = pool();
            let suffices = (0..pool.arenas.len()).filter(|&at| pool.arenas[at].1 >= size);
            let found = suffices.min_by_key(|&at| pool.arenas[at].1).map(|at| pool.arenas.swap_remove(at));
            let largest = (0..pool.arenas.len()).max_by_key(|&at| pool.arenas[at].1);
            let small = if found.is_none() { largest.map(|at| pool.arenas.swap_remove(at)) } else { None };
            let stats = &mut pool.stats;
            if let Some((_, kept)) = found.or(small) {
                stats.cached -= kept;
            }
            let held = found.map_or(size, |(_, kept)| kept);
            stats.allocated += if found.is_some() { 0 } else { size };
            stats.allocated -= small.map_or(0, |(_, kept)| kept);
            stats.in_use += held;
            stats.peak = stats.peak.max(stats.in_use);
            (found, small)
        };
        if let Some((start, bytes)) = small {
            // SAFETY: it was in the list, with its size, and not in use.
            unsafe { give_back(start, bytes, ALIGN) };
        }
        if let Some((start, bytes)) = found {
            return Ok(Self { start, bytes, kind: Kind::Arena });
        }
        let made = system(size, ALIGN);
        if made.is_err() {
            pool().untake(size);
        }
        Ok(Self { start: made?, bytes: size, kind: Kind::Arena })
    }

    /// Whether there may be an arena of so many bytes: one that is kept, or one that the system would give.
    pub fn probe_arena(bytes: usize) -> Result<(), OutOfMemory> {
        let size = bytes.next_multiple_of(ALIGN);
        if pool().arenas.iter().any(|(_, kept)| *kept >= size) {
            return Ok(());
        }
        let found = system(size, ALIGN)?;
        // SAFETY: it was just made, with this size.
        unsafe { give_back(found, size, ALIGN) };
        Ok(())
    }

    /// Gives an arena back to those that are kept, or the smallest one to the system.
    fn keep_arena(&self) {
        let gone = {
            let mut pool = pool();
            pool.stats.in_use -= self.bytes;
            pool.stats.cached += self.bytes;
            pool.arenas.push((self.start, self.bytes));
            let over = pool.arenas.len() > ARENAS;
            let smallest = (0..pool.arenas.len()).filter(|_| over).min_by_key(|&at| pool.arenas[at].1);
            let gone = smallest.map(|at| pool.arenas.swap_remove(at));
            if let Some((_, bytes)) = gone {
                pool.stats.cached -= bytes;
                pool.stats.allocated -= bytes;
            }
            gone
        };
        if let Some((start, bytes)) = gone {
            // SAFETY: it was in the list, with its size, and not in use.
            unsafe { give_back(start, bytes, ALIGN) };
        }
    }

    /// The first byte.
    #[must_use]
    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.bytes < SMALL {
            // SAFETY: made in new() with the same size.
            return unsafe { give_back(self.start, self.bytes, SMALL_ALIGN) };
        }
        if self.kind == Kind::Arena {
            return self.keep_arena();
        }
        let (class, size) = class_of(self.bytes);
        {
            let mut pool = pool();
            pool.used = Some(Instant::now());
            pool.stats.in_use -= size;
            if pool.stats.cached + size <= KEPT {
                pool.stats.cached += size;
                pool.free[class].push(self.start);
                return;
            }
            pool.stats.allocated -= size;
        }
        // SAFETY: as above.
        unsafe { give_back(self.start, size, ALIGN) };
    }
}

/// Bytes of large blocks in this process. The peak starts anew with each call of [`trim_memory`].
#[must_use]
pub fn memory_stats() -> MemoryStats {
    pool().stats
}

/// Gives the blocks kept for reuse back to the system, and starts the peak anew.
pub fn trim_memory() {
    let kept = {
        let mut pool = pool();
        let kept = Kept::take(&mut pool);
        pool.stats.peak = pool.stats.in_use;
        kept
    };
    drop(kept);
}

/// Whether blocks are kept for reuse.
#[must_use]
pub fn keeps_memory() -> bool {
    pool().stats.cached > 0
}

/// Gives the blocks kept for reuse back to the system, if no array has taken or left one for so long.
pub fn release_memory(unused_for: Duration) {
    let kept = {
        let mut pool = pool();
        if pool.used.is_some_and(|used| used.elapsed() < unused_for) {
            return;
        }
        Kept::take(&mut pool)
    };
    drop(kept);
}

/// Blocks that were kept, on their way to the system, which takes its time: not under the lock.
struct Kept {
    /// With their sizes.
    blocks: Vec<(NonNull<u8>, usize)>,
}

impl Kept {
    fn take(pool: &mut Pool) -> Self {
        let mut blocks = std::mem::take(&mut pool.arenas);
        for (class, free) in pool.free.iter_mut().enumerate() {
            let size = class_size(class);
            blocks.extend(free.drain(..).map(|block| (block, size)));
        }
        pool.stats.allocated -= pool.stats.cached;
        pool.stats.cached = 0;
        Self { blocks }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        for (block, bytes) in self.blocks.drain(..) {
            // SAFETY: it was in a list, with its size, and not in use.
            unsafe { give_back(block, bytes, ALIGN) };
        }
    }
}

fn class_size(class: usize) -> usize {
    let (power, quarter) = (class / STEPS, class % STEPS);
    (1 << power) + quarter * ((1 << power) / STEPS)
}

#[cfg(test)]
mod tests {
    use super::{Block, SMALL, class_of, class_size};

    #[test]
    #[cfg_attr(sanitized, ignore)] // blocks have no classes
    fn classes_hold_what_they_are_for() {
        for bytes in (SMALL..20_000).chain([1 << 20, (1 << 20) + 1, (1 << 30) - 1]) {
            let (class, size) = class_of(bytes);
            assert!(size >= bytes && size * 4 <= bytes * 5 + 8, "{bytes}: {size}");
            assert_eq!(class_size(class), size, "{bytes}");
        }
    }

    #[test]
    #[cfg_attr(sanitized, ignore)] // none is kept
    fn blocks_are_used_again() {
        let size = (1 << 22) + 12_345;
        let first = Block::new(size).unwrap();
        let start = first.start();
        drop(first);
        assert_eq!(Block::new(size - 100).unwrap().start(), start);
        assert_eq!(Block::new(size).unwrap().start().align_offset(64), 0);
    }
}
