//! Where the entries of a part lie while it runs.

use std::sync::{Arc, OnceLock};
use weft_array::{Arena, Array, Block, Buffer, OutOfMemory, Within};
use weft_engine::{Cause, Engine};

/// Where the first byte of an entry is, as it was recorded.
#[derive(Clone)]
pub(super) struct Spot {
    pub(super) start: *mut u8,
    /// Its buffer, where arrays are asked for, and its distance from the buffer's start in bytes.
    pub(super) buffer: Option<Arc<Buffer>>,
    pub(super) shift: isize,
}

impl Spot {
    /// Nowhere.
    pub(super) fn none() -> Self {
        Self { start: std::ptr::null_mut(), buffer: None, shift: 0 }
    }

    /// An array that was recorded with its first element so many bytes from its buffer's start.
    pub(super) fn of(array: &Array, recorded: usize) -> Result<Self, Cause> {
        let shift = array.layout().offset.cast_signed() - recorded.cast_signed();
        let start = array.buffer().start()?.wrapping_offset(shift);
        Ok(Self { start, buffer: Some(Arc::clone(array.buffer())), shift })
    }

    /// Memory of its own.
    pub(super) fn fresh(engine: &Engine, bytes: usize) -> Result<Self, Cause> {
        let buffer = Buffer::new(engine, bytes);
        Ok(Self { start: buffer.start()?, buffer: Some(buffer), shift: 0 })
    }

    /// So many bytes further on.
    pub(super) fn advanced(&self, by: isize) -> Self {
        Self { start: self.start.wrapping_offset(by), buffer: self.buffer.clone(), shift: self.shift + by }
    }
}

/// Memory for private values, taken once for all turns.
pub(super) struct Scratch {
    bytes: usize,
    block: OnceLock<Block>,
}

impl Scratch {
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { bytes, block: OnceLock::new() })
    }

    /// Some of it. `in_arrays` tells whether arrays are asked for there.
    pub(super) fn spot(
        self: &Arc<Self>,
        engine: &Engine,
        offset: usize,
        bytes: usize,
        in_arrays: bool,
    ) -> Result<Spot, Cause> {
        let start = self.start().map_err(|error| Cause::Error(Box::new(error)))?.wrapping_add(offset);
        // SAFETY: spots lie within the bytes of the scratch, which live as long as it does; the plan gives each its
        // turn there.
        let arena = || unsafe { Within::new(Arc::clone(self) as Arc<dyn Arena>, offset) };
        let buffer = in_arrays.then(|| Buffer::within(engine, bytes, arena()));
        Ok(Spot { start, buffer, shift: 0 })
    }
}

impl Arena for Scratch {
    fn start(&self) -> Result<*mut u8, OutOfMemory> {
        if let Some(block) = self.block.get() {
            return Ok(block.start());
        }
        let block = Block::arena(self.bytes)?;
        Ok(self.block.get_or_init(|| block).start())
    }
}
