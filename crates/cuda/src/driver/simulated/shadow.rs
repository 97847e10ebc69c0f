//! The hazard check: the history of accesses to bytes.
//!
//! An access that conflicts with an earlier one (they overlap, and one of them writes) must be ordered behind it by
//! its stream, by events, or by the host that saw it end. An order by luck is no excuse: the order is read off the
//! vector clocks that commands get when they are issued.

use super::clock::Clock;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Names a command in messages.
#[derive(Debug, Clone)]
pub(super) struct Name {
    pub(super) verb: &'static str,
    pub(super) kernel: Option<Arc<str>>,
    pub(super) stream: usize,
    /// Its place on the stream.
    pub(super) number: u64,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verb)?;
        if let Some(kernel) = &self.kernel {
            write!(f, " '{kernel}'")?;
        }
        write!(f, " (stream {}, command {})", self.stream, self.number)
    }
}

#[derive(Debug)]
struct Touch {
    range: Range<u64>,
    writes: bool,
    name: Name,
    end: u64,
}

/// The accesses to some memory that a later one may have to be ordered behind.
#[derive(Debug, Default)]
pub(super) struct Shadow(Vec<Touch>);

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Shadow {
    /// Notes an access. Answers when, in virtual time, those that it must follow have ended; or the one among them
    /// that it is not ordered behind.
    pub(super) fn touch(&mut self, range: Range<u64>, writes: bool, name: &Name, clock: &Clock) -> Result<u64, Name> {
        let mut after = 0;
        for touch in &self.0 {
            if overlap(&touch.range, &range) && (touch.writes || writes) {
                if touch.name.number > clock.get(touch.name.stream) {
                    return Err(touch.name.clone());
                }
                after = after.max(touch.end);
            }
        }
        // An access ordered behind this one is ordered behind all that it covers.
        self.0.retain(|touch| {
            let covered = range.start <= touch.range.start && touch.range.end <= range.end;
            !(covered && (writes || !touch.writes && touch.name.stream == name.stream))
        });
        self.0.push(Touch { range, writes, name: name.clone(), end: 0 });
        Ok(after)
    }

    /// Notes when a command's accesses end.
    pub(super) fn ended(&mut self, name: &Name, end: u64) {
        for touch in self.0.iter_mut().rev() {
            if touch.name.stream == name.stream && touch.name.number == name.number {
                touch.end = end;
            }
        }
    }

    /// Forgets accesses that the host has seen end.
    pub(super) fn forget(&mut self, seen: &Clock) {
        self.0.retain(|touch| touch.name.number > seen.get(touch.name.stream));
    }

    /// The first access that overlaps, of those that the host has not seen end.
    pub(super) fn unseen(&self, range: &Range<u64>, writes: bool, seen: &Clock) -> Option<Name> {
        let unseen = |touch: &&Touch| {
            overlap(&touch.range, range) && (touch.writes || writes) && touch.name.number > seen.get(touch.name.stream)
        };
        self.0.iter().find(unseen).map(|touch| touch.name.clone())
    }
}
