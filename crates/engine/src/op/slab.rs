//! Op cells, allocated by the chunk.
//!
//! The registrar alone takes and frees cells, so nothing here is atomic. Chunks are made, and
//! returned to the system, by the thread that holds the role but *while it does not hold it*.

use super::Op;
use std::alloc::{self, GlobalAlloc, Layout, System};
use std::ptr;

const CHUNK_BYTES: usize = if cfg!(loom) { 1024 } else { 1 << 16 };
const CELL: usize = size_of::<Op>();
/// The first cell's place holds the chunk's header.
const CELLS: usize = CHUNK_BYTES / CELL - 1;
/// Empty chunks kept for reuse; more are returned. 2 MiB, room for the ops of a full ring: where programs push some thousand
/// ops, wait, and push again, the system would otherwise ask 30 to 100 ns an op for its pages.
const KEPT: usize = 32;

struct Header {
    free: *mut Op,
    used: usize,
    /// Cells never handed out yet start here.
    fresh: usize,
    next: *mut Header,
    previous: *mut Header,
    /// In the list of chunks with free cells.
    listed: bool,
}

/// A chunk that no cell of is in use.
pub(crate) struct Chunk(*mut Header);

// SAFETY: an unused chunk is plain memory with one owner.
unsafe impl Send for Chunk {}

const LAYOUT: Layout = match Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES) {
    Ok(layout) => layout,
    Err(_) => panic!("the chunk's size is a power of two"),
};

#[allow(clippy::cast_ptr_alignment)] // chunks are aligned to their size
impl Chunk {
    pub(crate) fn new() -> Self {
        // SAFETY: the layout has a size.
        let header = unsafe { System.alloc(LAYOUT) }.cast::<Header>();
        if header.is_null() {
            alloc::handle_alloc_error(LAYOUT);
        }
        let empty = Header {
            free: ptr::null_mut(),
            used: 0,
            fresh: 0,
            next: ptr::null_mut(),
            previous: ptr::null_mut(),
            listed: false,
        };
        // SAFETY: the memory is ours, large enough and aligned.
        unsafe { header.write(empty) };
        Self(header)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: made by new() with this layout; no cell is in use.
        unsafe { System.dealloc(self.0.cast(), LAYOUT) };
    }
}

/// All op cells of an engine.
pub(crate) struct Slab {
    /// Chunks that have a free cell.
    open: *mut Header,
    /// Chunks without a used cell; they are not in `open`.
    empty: Vec<Chunk>,
    /// Chunks in use, for the memory figures.
    in_use: usize,
}

// SAFETY: the slab owns its chunks; the registrar's role makes its user alone.
unsafe impl Send for Slab {}

#[allow(clippy::cast_ptr_alignment)] // cells lie at multiples of their size in aligned chunks
impl Slab {
    pub(crate) fn new() -> Self {
        Self { open: ptr::null_mut(), empty: Vec::with_capacity(2 * KEPT), in_use: 0 }
    }

    /// Whether the next cells may need a chunk that is not there.
    #[inline]
    pub(crate) fn is_low(&self) -> bool {
        self.empty.is_empty()
    }

    /// Takes a chunk in for later use.
    pub(crate) fn supply(&mut self, chunk: Chunk) {
        self.empty.push(chunk);
    }

    /// An unused chunk to be returned to the system, if there are more than are worth keeping.
    #[inline]
    pub(crate) fn surplus(&mut self) -> Option<Chunk> {
        if self.empty.len() > KEPT { self.empty.pop() } else { None }
    }

    fn link(&mut self, header: *mut Header) {
        // SAFETY: chunks in `open` are ours and alive.
        unsafe {
            (*header).listed = true;
            (*header).previous = ptr::null_mut();
            (*header).next = self.open;
            if !self.open.is_null() {
                (*self.open).previous = header;
            }
        }
        self.open = header;
    }

    fn unlink(&mut self, header: *mut Header) {
        // SAFETY: as in link(); a listed chunk's neighbours are listed.
        unsafe {
            (*header).listed = false;
            let (next, previous) = ((*header).next, (*header).previous);
            if previous.is_null() {
                self.open = next;
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
        }
    }

    /// Takes a cell.
    #[inline]
    pub(crate) fn take(&mut self) -> *mut Op {
        if self.open.is_null() {
            // The role's holder keeps a chunk in reserve; making one here is the last resort.
            let chunk = std::mem::ManuallyDrop::new(self.empty.pop().unwrap_or_else(Chunk::new));
            self.in_use += 1;
            self.link(chunk.0);
        }
        let header = self.open;
        // SAFETY: a listed chunk has a free or a fresh cell within its bounds.
        unsafe {
            let cell = if (*header).free.is_null() {
                (*header).fresh += 1;
                header.cast::<u8>().add((*header).fresh * CELL).cast::<Op>()
            } else {
                let cell = (*header).free;
                (*header).free = *cell.cast::<*mut Op>();
                cell
            };
            (*header).used += 1;
            if (*header).free.is_null() && (*header).fresh == CELLS {
                self.unlink(header);
            }
            cell
        }
    }

    /// Gives a cell back.
    ///
    /// # Safety
    ///
    /// It was taken from this slab, is empty, and is not known elsewhere.
    #[inline]
    pub(crate) unsafe fn give(&mut self, cell: *mut Op) {
        let header = cell.map_addr(|address| address & !(CHUNK_BYTES - 1)).cast::<Header>();
        // SAFETY: chunks are aligned to their size, so this is the cell's chunk, which lives
        // as long as one of its cells is used. The link overlays the dead op.
        unsafe {
            cell.cast::<*mut Op>().write((*header).free);
            (*header).free = cell;
            (*header).used -= 1;
            if (*header).used == 0 {
                if (*header).listed {
                    // The last open chunk stays, so that a steady flow does not open and close it.
                    if (*header).previous.is_null() && (*header).next.is_null() {
                        return;
                    }
                    self.unlink(header);
                }
                (*header).free = ptr::null_mut();
                (*header).fresh = 0;
                self.in_use -= 1;
                self.empty.push(Chunk(header));
            } else if !(*header).listed {
                self.link(header);
            }
        }
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        while !self.open.is_null() {
            let header = self.open;
            self.unlink(header);
            // Chunks with used cells are full of ops that cannot be settled any more: leaking their memory is what the
            // exit of a process does anyway. SAFETY: a listed chunk is alive.
            if unsafe { (*header).used } == 0 {
                drop(Chunk(header));
            }
        }
    }
}
