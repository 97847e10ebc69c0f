//! Handles on arrays.

use crate::order::{self, Telling};
use crate::{ArrayError, Buffer, DType, Layout};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use weft_engine::{Engine, EngineError, Failure, Variable, Wait};

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
        if layout.size() == 0 {
            layout.offset = 0; // there is nothing anywhere
        }
        layout.check(dtype.size(), buffer.bytes())?;
        let contiguous = layout.is_contiguous(dtype.size());
        let flat = contiguous && layout.offset == 0 && layout.size() * dtype.size() == buffer.bytes();
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
        order::device(&self.buffer)
    }

    /// Says on which device its buffer belongs: ops that write to it run there, and what is made from it belongs
    /// there too.
    pub fn set_device(&self, device: u16) {
        order::set_device(&self.buffer, device);
    }

    /// Whether this is the one handle on a buffer on which nothing was ever pushed: then nothing ever will be but through
    /// this one.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.buffer) == 1 && order::is_untouched(&self.buffer)
    }

    /// Mutations of the buffer that were pushed.
    #[must_use]
    pub fn version(&self) -> u64 {
        order::version(&self.buffer)
    }

    /// Whether everything that was pushed to change the elements has finished.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        Telling::of(self).iter().all(Variable::is_ready)
    }

    /// Whether a wait to read would return at once.
    #[must_use]
    #[inline]
    pub fn is_done(&self) -> bool {
        let done = |variable| self.engine().is_done(variable).unwrap_or(false);
        order::is_whole(&self.buffer) && self.buffer.known_variable().is_none_or(done)
    }

    /// Waits until everything that was pushed to change the elements has finished.
    pub fn wait_to_read(&self, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        self.wait_for_each(wait, |engine, (variable, _), wait| engine.wait_for_var_with(variable, wait))
    }

    /// Waits until everything that was pushed on the elements has finished, reads included.
    pub fn wait_to_write(&self, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        let part = !self.buffer.is_whole(&self.range()) && !order::is_whole(&self.buffer);
        self.wait_for_each(wait, |engine, (variable, is_base), wait| {
            // Ops on other parts read the base; those on these, from before, have been waited for by those who took them.
            if part && is_base {
                engine.wait_for_var_with(variable, wait)
            } else {
                engine.wait_to_write_with(variable, wait)
            }
        })
    }

    fn wait_for_each(
        &self,
        wait: &mut Wait<'_>,
        one: impl Fn(&Engine, (&Variable, bool), &mut Wait<'_>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let start = Instant::now();
        let timeout = wait.timeout;
        let telling = Telling::of(self);
        let base = telling.base.iter().map(|variable| (variable, true));
        for variable in base.chain(telling.ranges.iter().map(|variable| (variable, false))) {
            wait.timeout = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
            one(self.engine(), variable, wait).map_err(|error| match (error, timeout) {
                (EngineError::Timeout { what, .. }, Some(after)) => EngineError::Timeout { what, after },
                (error, _) => error,
            })?;
        }
        Ok(())
    }

    /// The failure of the elements' last finished version.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<Failure>> {
        Telling::of(self).iter().find_map(|variable| self.engine().failure(variable))
    }
}
