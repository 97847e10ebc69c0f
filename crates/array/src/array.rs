//! Handles on arrays.

use crate::order::{self, Pushing};
use crate::{ArrayError, Buffer, DType, Layout};
use std::ops::Range;
use std::sync::Arc;
use weft_engine::{Engine, EngineError, Failure, Wait};

/// A handle on some elements of a buffer. Clones and views share the buffer.
#[derive(Clone)]
pub struct Array {
    buffer: Arc<Buffer>,
    layout: Layout,
    dtype: DType,
    contiguous: bool,
}

impl Array {
    /// An array of its own, in C order, allocated when something is first written.
    pub fn empty(engine: &Engine, shape: &[usize], dtype: DType) -> Result<Self, ArrayError> {
        let layout = Layout::contiguous(shape, dtype.size())?;
        let buffer = Buffer::new(engine, layout.size() * dtype.size());
        Ok(Self { buffer, layout, dtype, contiguous: true })
    }

    /// A view of a buffer.
    pub fn on(buffer: Arc<Buffer>, layout: Layout, dtype: DType) -> Result<Self, ArrayError> {
        layout.check(dtype.size(), buffer.bytes())?;
        let contiguous = layout.is_contiguous(dtype.size());
        Ok(Self { buffer, layout, dtype, contiguous })
    }

    /// The buffer.
    #[must_use]
    #[inline]
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }

    /// Where its elements lie in the buffer.
    #[must_use]
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The type of its elements.
    #[must_use]
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its engine.
    #[must_use]
    #[inline]
    pub fn engine(&self) -> &Engine {
        self.buffer.engine()
    }

    /// Bytes of its elements.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.layout.size() * self.dtype.size()
    }

    /// Whether its elements lie row after row without gaps.
    #[must_use]
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// Whether it is all of its buffer, row after row.
    #[must_use]
    #[inline]
    pub(crate) fn is_flat(&self) -> bool {
        self.contiguous && self.layout.offset == 0 && self.bytes() == self.buffer.bytes()
    }

    /// The bytes of the buffer that its elements reach.
    #[must_use]
    #[inline]
    pub fn range(&self) -> Range<usize> {
        if self.contiguous {
            return self.layout.offset..self.layout.offset + self.bytes();
        }
        self.layout.range(self.dtype.size())
    }

    /// Mutations of the buffer that were pushed.
    #[must_use]
    pub fn version(&self) -> u64 {
        order::version(&self.buffer)
    }

    /// Whether everything that was pushed to change the buffer has finished.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let whole = !self.buffer.ranges.get(&mut Pushing::lock()).is_split();
        if !whole && order::make_whole(&self.buffer).is_err() {
            return false; // a closed engine takes no join; a wait will say so
        }
        self.buffer.variable.is_ready()
    }

    /// Whether a wait to read would return at once, without joining anything.
    #[must_use]
    #[inline]
    pub fn is_done(&self) -> bool {
        let whole = !self.buffer.ranges.get(&mut Pushing::lock()).is_split();
        whole && self.engine().is_done(&self.buffer.variable).unwrap_or(false)
    }

    /// Waits until everything that was pushed to change the buffer has finished.
    pub fn wait_to_read(&self, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        order::make_whole(&self.buffer)?;
        self.engine().wait_for_var_with(&self.buffer.variable, wait)
    }

    /// Waits until everything that was pushed on the buffer has finished, reads included.
    pub fn wait_to_write(&self, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        order::make_whole(&self.buffer)?;
        self.engine().wait_to_write_with(&self.buffer.variable, wait)
    }

    /// The failure of the buffer's last finished version.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<Failure>> {
        order::make_whole(&self.buffer).ok()?;
        self.engine().failure(&self.buffer.variable)
    }
}
