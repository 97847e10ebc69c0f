//! Handles on arrays.

use super::presence;
use crate::{ArrayError, Buffer, DType, Layout};
use std::ops::Range;
use std::sync::Arc;
use weft_engine::Engine;

/// A handle on some elements of a buffer. Clones and views share the buffer.
#[derive(Clone)]
pub struct Array {
    buffer: Arc<Buffer>,
    layout: Layout,
    dtype: DType,
    contiguous: bool,
    /// Whether it is all of its buffer, row after row.
    flat: bool,
}

impl Array {
    /// An array of its own, in C order, allocated when something is first written.
    pub fn empty(engine: &Engine, shape: &[usize], dtype: DType) -> Result<Self, ArrayError> {
        let layout = Layout::contiguous(shape, dtype.size())?;
        let buffer = Buffer::new(engine, layout.size() * dtype.size());
        Ok(Self { buffer, layout, dtype, contiguous: true, flat: true })
    }

    /// An array of its own, in C order, of the other one's shape and engine.
    #[inline]
    pub fn like(other: &Self, dtype: DType) -> Result<Self, ArrayError> {
        if !other.contiguous || dtype.size() != other.dtype.size() {
            return Self::empty(other.engine(), &other.layout.shape, dtype);
        }
        let layout = Layout { offset: 0, ..other.layout.clone() };
        let buffer = Buffer::new(other.engine(), other.bytes());
        Ok(Self { buffer, layout, dtype, contiguous: true, flat: true })
    }

    /// An array of its own, in C order, on a buffer of so many bytes that `buffer` makes.
    pub fn made(shape: &[usize], dtype: DType, buffer: impl FnOnce(usize) -> Arc<Buffer>) -> Result<Self, ArrayError> {
        let layout = Layout::contiguous(shape, dtype.size())?;
        let bytes = layout.size() * dtype.size();
        let buffer = buffer(bytes);
        if buffer.bytes() != bytes {
            return Err(ArrayError::Invalid(format!("{bytes} bytes do not fill a buffer of {}", buffer.bytes())));
        }
        Ok(Self { buffer, layout, dtype, contiguous: true, flat: true })
    }

    /// A view of a buffer.
    pub fn on(buffer: Arc<Buffer>, mut layout: Layout, dtype: DType) -> Result<Self, ArrayError> {
        let size = layout.checked_size(dtype.size())?;
        if size == 0 {
            layout.offset = 0; // there is nothing anywhere
        }
        layout.check_reach(dtype.size(), buffer.bytes())?;
        let contiguous = layout.is_contiguous(dtype.size());
        let flat = contiguous && layout.offset == 0 && size * dtype.size() == buffer.bytes();
        Ok(Self { buffer, layout, dtype, contiguous, flat })
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
        if self.flat { self.buffer.bytes() } else { self.layout.size() * self.dtype.size() }
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
    pub fn is_flat(&self) -> bool {
        self.flat
    }

    /// The bytes of the buffer that its elements reach.
    #[must_use]
    #[inline]
    pub fn range(&self) -> Range<usize> {
        if self.flat {
            return 0..self.buffer.bytes();
        }
        if self.contiguous {
            return self.layout.offset..self.layout.offset + self.bytes();
        }
        self.layout.range(self.dtype.size())
    }

    /// The device on which its buffer belongs.
    #[must_use]
    pub fn device(&self) -> u16 {
        presence::device(&self.buffer)
    }

    /// Says on which device its buffer belongs: ops that write to it run there, and results made from it belong
    /// there too.
    pub fn set_device(&self, device: u16) {
        presence::set_device(&self.buffer, device);
    }
}
