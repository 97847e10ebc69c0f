//! The variables that tell of an array's elements, and waits for them.

use super::Array;
use super::presence::is_untouched;
use crate::memory::{Buffer, Pushing};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Instant;
use weft_engine::{Engine, EngineError, Failure, Variable, Wait};

impl Array {
    /// Whether this is the one handle on a buffer on which nothing was ever pushed: then nothing ever will be but through
    /// this one.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(self.buffer()) == 1 && is_untouched(self.buffer())
    }

    /// Mutations of the buffer that were pushed.
    #[must_use]
    pub fn version(&self) -> u64 {
        version(self.buffer())
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
        is_whole(self.buffer()) && self.buffer().known_variable().is_none_or(done)
    }

    /// Waits until everything that was pushed to change the elements has finished.
    pub fn wait_to_read(&self, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        self.wait_for_each(wait, |engine, (variable, _), wait| engine.wait_for_var_with(variable, wait))
    }

    /// Waits until everything that was pushed on the elements has finished, reads included.
    pub fn wait_to_write(&self, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        let part = !self.buffer().is_whole(&self.range()) && !is_whole(self.buffer());
        self.wait_for_each(wait, |engine, (variable, is_base), wait| {
            // Ops on other parts read the base; those on these, from before, have been waited for by those who took them.
            if part && is_base {
                engine.wait_for_var_with(variable, wait)
            } else {
                engine.wait_to_write_with(variable, wait)
            }
        })
    }

    pub(super) fn wait_for_each(
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

/// Whether the buffer's one variable tells of all of it.
#[inline]
pub(crate) fn is_whole(buffer: &Buffer) -> bool {
    !buffer.ranges.get(&mut Pushing::lock()).split
}

/// The variables that tell of an array's elements.
pub(crate) struct Telling {
    /// Of the value before ranges were written. Ops on other ranges read it.
    pub(crate) base: Option<Variable>,
    pub(crate) ranges: SmallVec<[Variable; 2]>,
}

impl Telling {
    pub(crate) fn of(array: &Array) -> Self {
        let (buffer, range) = (array.buffer(), array.range());
        let mut pushing = Pushing::lock();
        let ranges = buffer.ranges.get(&mut pushing);
        let overlapping = ranges.parts.iter().filter(|part| part.overlaps(&range)).map(|part| part.variable.clone());
        let owes = !ranges.split || range.is_empty() || !ranges.is_written(&range);
        let base = ranges.base.as_ref().or(buffer.known_variable()).filter(|_| owes && ranges.is_used()).cloned();
        Self { base, ranges: overlapping.collect() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Variable> {
        self.base.iter().chain(&self.ranges)
    }
}

/// Mutations of the buffer that were pushed.
pub(crate) fn version(buffer: &Arc<Buffer>) -> u64 {
    buffer.ranges.get(&mut Pushing::lock()).version
}
