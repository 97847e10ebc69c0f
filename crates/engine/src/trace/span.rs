//! The start, the end and the thread of a run.

use super::ticks;

/// A run, as an op's cell holds it: two words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran {
    pub(crate) started: u64,
    /// How long it has taken, and the thread in the lowest bits. All bits of the first part: it is not over.
    packed: u64,
}

const SHIFT: u32 = 16;
const UNENDED: u64 = u64::MAX >> SHIFT;

impl Ran {
    /// A run that begins now on this thread.
    #[inline]
    pub(crate) fn begin(thread: u16) -> Self {
        Self { started: ticks(), packed: UNENDED << SHIFT | u64::from(thread) }
    }

    /// A run at these times.
    #[cfg(all(test, not(loom)))]
    pub(super) fn of(started: u64, took: u64, thread: u16) -> Self {
        Self { started, packed: took << SHIFT | u64::from(thread) }
    }

    /// It ends now, unless it has.
    #[inline]
    pub(crate) fn end(&mut self) {
        if self.packed >> SHIFT == UNENDED {
            self.prolong();
        }
    }

    /// It ends now, even if it had ended before.
    #[inline]
    pub(crate) fn prolong(&mut self) {
        let took = ticks().saturating_sub(self.started).min(UNENDED - 1);
        self.packed = took << SHIFT | self.packed & u64::from(u16::MAX);
    }

    #[inline]
    pub(super) fn duration(self) -> u64 {
        self.packed >> SHIFT
    }

    #[inline]
    pub(super) fn ended(self) -> u64 {
        self.started + self.duration()
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the lowest bits
    pub(super) fn thread(self) -> u16 {
        self.packed as u16
    }
}

/// A stretch of time on the calling thread, while an engine is traced; made by
/// [`Engine::start_span`](crate::Engine::start_span).
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub(crate) trace: u32,
    pub(crate) ran: Ran,
}

impl Span {
    /// It ends now.
    pub fn end(&mut self) {
        self.ran.prolong();
    }
}
