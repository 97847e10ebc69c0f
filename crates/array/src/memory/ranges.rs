//! The pushes on a buffer: whether it is split, by ranges, and its readers.
//!
//! The room `access` has the rules of its changes.

use super::{Buffer, Storage};
use smallvec::SmallVec;
use std::any::Any;
use std::ops::Range;
use std::sync::Weak;
use weft_engine::Variable;

/// Ranges of one buffer before they are joined: looking through them takes time.
pub(crate) const RANGES: usize = 256;

/// How many ranges of reads of a whole buffer are kept.
pub(crate) const READ: usize = 16;

/// A range with a variable of its own.
pub(crate) struct Part {
    pub(crate) range: Range<usize>,
    pub(crate) variable: Variable,
    /// Whether it was written since the split: its variable tells all of its failure.
    pub(crate) written: bool,
    /// Whether the variable is that of another range too.
    pub(crate) is_shared: bool,
}

impl Part {
    pub(crate) fn overlaps(&self, range: &Range<usize>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }

    /// The rest of it when this range, which it overlaps, has a variable of its own.
    pub(crate) fn without(self, range: &Range<usize>) -> impl Iterator<Item = Self> + use<> {
        let Self { range: whole, variable, written, is_shared } = self;
        let rests = [whole.start..range.start.max(whole.start), range.end.min(whole.end)..whole.end];
        let is_shared = is_shared || rests.iter().all(|rest| !rest.is_empty());
        let rest = move |range| Self { range, variable: variable.clone(), written, is_shared };
        rests.into_iter().filter(|rest| !rest.is_empty()).map(rest)
    }
}

/// The reads of a whole buffer since it was last written to.
#[derive(Default)]
pub(crate) struct Readers {
    pub(crate) ranges: Vec<Range<usize>>,
    /// All of it, or too many ranges.
    pub(crate) whole: bool,
    /// By an op that does more than walk over memory once.
    pub(crate) long: bool,
}

impl Readers {
    #[inline]
    pub(crate) fn add(&mut self, range: &Range<usize>) {
        if self.whole || self.ranges.last() == Some(range) || self.ranges.contains(range) {
            return;
        }
        if self.ranges.len() < READ {
            self.ranges.push(range.clone());
        } else {
            self.add_whole();
        }
    }

    #[inline]
    pub(crate) fn add_whole(&mut self) {
        self.whole = true;
        self.ranges.clear();
    }

    /// Whether there is no read since.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.whole && self.ranges.is_empty()
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        (self.whole, self.long) = (false, false);
        self.ranges.clear();
    }
}

/// Memory for the next values of a buffer, while ops are pending that write them, and the variable that orders these ops.
pub(crate) struct Spare {
    pub(crate) storage: Weak<Storage>,
    pub(crate) variable: Variable,
}

/// Those of one buffer, which are taken in turn.
#[derive(Default)]
pub(crate) struct Spares {
    pub(crate) each: Vec<Spare>,
    pub(crate) next: usize,
}

/// The ops pushed on a buffer.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // facts that do not exclude each other
pub(crate) struct Ranges {
    pub(crate) split: bool,
    pub(crate) parts: Vec<Part>,
    pub(crate) gate: Option<Variable>,
    /// The stand-in for the buffer's variable while it is split, if there is one.
    pub(crate) base: Option<Variable>,
    pub(crate) readers: Readers,
    /// Mutations pushed.
    pub(crate) version: u64,
    /// Whether something was written without a push.
    pub(crate) written_here: bool,
    /// Whether a range was taken from others since the split: what their ops had begun there is not known of it.
    pub(crate) cut: bool,
    /// The op that fills the whole buffer, while nothing else has written to it since.
    pub(crate) producer: Option<Weak<dyn Any + Send + Sync>>,
    /// Whether its result was looked at since.
    pub(crate) seen: bool,
    /// The device on which it belongs, once that is known.
    pub(crate) device: Option<u16>,
    /// Memory for its next values, if it was ever overwritten while ops were pending on it (`access::rename`).
    pub(crate) spares: Option<Box<Spares>>,
}

impl Ranges {
    /// Of a buffer that belongs on this device.
    pub(crate) fn on(device: u16) -> Self {
        Self { device: Some(device), ..Self::default() }
    }

    /// Whether anything was pushed on it: memory that someone else has filled may be read before it is written.
    pub(crate) fn is_used(&self) -> bool {
        self.version > 0 || self.seen
    }

    pub(crate) fn is_split(&self) -> bool {
        self.split
    }

    /// Notes an op that is being pushed.
    #[inline]
    pub(crate) fn note(&mut self, reads: bool) {
        if reads {
            self.seen = true;
        } else {
            self.version += 1;
            self.producer = None;
        }
    }

    /// Notes an op that has the whole of it.
    #[inline]
    pub(crate) fn note_whole(&mut self, reads: bool) {
        if reads {
            self.readers.add_whole();
        } else {
            self.readers.clear(); // later accesses are behind it, and it is behind them
        }
    }

    /// The pieces of a range that no such part covers.
    pub(crate) fn gaps(&self, range: &Range<usize>, such: impl Fn(&Part) -> bool) -> SmallVec<[Range<usize>; 2]> {
        let parts = self.parts.iter().filter(|part| part.overlaps(range) && such(part));
        let mut ranges: SmallVec<[&Range<usize>; 8]> = parts.map(|part| &part.range).collect();
        ranges.sort_unstable_by_key(|part| part.start);
        let (mut from, mut gaps) = (range.start, SmallVec::new());
        for part in ranges {
            if part.start > from {
                gaps.push(from..part.start);
            }
            from = from.max(part.end);
        }
        if from < range.end {
            gaps.push(from..range.end);
        }
        gaps
    }

    /// Whether all of a range was written since the split.
    pub(crate) fn is_written(&self, range: &Range<usize>) -> bool {
        self.gaps(range, |part| part.written).is_empty()
    }

    /// The gate.
    pub(crate) fn gate(&mut self, buffer: &Buffer) -> Variable {
        self.gate.get_or_insert_with(|| buffer.engine().new_variable(None)).clone()
    }
}
