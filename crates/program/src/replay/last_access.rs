//! The last accesses to bytes: of an entry, of the arena, of a variable.
//!
//! Bytes are cut into *spans* that share a history: their last writers, and the readers since. A step comes after the
//! writers of its inputs and outputs, and after the readers of its outputs; it *needs* the writers of its inputs, so their
//! failure is its own.

use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// In the place of a step: the value before the call.
pub(super) const OUTSIDE: u32 = u32::MAX;

type Steps = SmallVec<[u32; 2]>;

#[derive(Clone)]
struct Span {
    end: usize,
    /// The owner of the bytes: in an arena, one entry after the other.
    entry: usize,
    /// The instruction that the last maker is a part of.
    instruction: usize,
    makers: Steps,
    readers: Steps,
}

/// Some bytes, and their history.
pub(super) struct Spans(BTreeMap<usize, Span>);

/// One step's access to some bytes.
#[derive(Clone)]
pub(super) struct Look {
    pub(super) range: Range<usize>,
    pub(super) entry: usize,
    /// Whether it sees the old value.
    pub(super) sees: bool,
    pub(super) writes: bool,
    /// Whether it runs although the old value has failed, so that the new one is no better.
    pub(super) spares: bool,
}

/// The steps before another one; each may be named more than once. Of those that it needs, it takes over the failure of the
/// one that is named first.
#[derive(Default)]
pub(super) struct Before {
    pub(super) needs: Vec<u32>,
    pub(super) follows: Vec<u32>,
}

impl Spans {
    /// Bytes from before the call, or empty memory.
    pub(super) fn new(entry: usize, outside: bool) -> Self {
        let makers = if outside { Steps::from_slice(&[OUTSIDE]) } else { Steps::new() };
        let all = Span { end: usize::MAX, entry, instruction: usize::MAX, makers, readers: Steps::new() };
        Self(BTreeMap::from([(0, all)]))
    }

    fn cut(&mut self, at: usize) {
        if let Some((_, span)) = self.0.range_mut(..at).next_back()
            && span.end > at
        {
            let rest = span.clone();
            span.end = at;
            self.0.insert(at, rest);
        }
    }

    /// Notes the steps before one that looks so. Nothing of the bytes changes.
    pub(super) fn look(&mut self, look: &Look, before: &mut Before) {
        self.cut(look.range.start);
        self.cut(look.range.end);
        for (_, span) in self.0.range(look.range.clone()) {
            let sees = look.sees && span.entry == look.entry;
            // A version fails with its last maker's failure.
            let makers = span.makers.iter().rev().copied().filter(|maker| *maker != OUTSIDE || sees);
            if sees { &mut before.needs } else { &mut before.follows }.extend(makers);
            if look.writes {
                before.follows.extend_from_slice(&span.readers);
            }
        }
    }

    /// Enters a step that has looked, a part of this instruction. Parts of one do not come after each other.
    pub(super) fn enter(&mut self, look: &Look, step: u32, instruction: usize) {
        for (_, span) in self.0.range_mut(look.range.clone()) {
            let own = span.instruction == instruction;
            if !look.writes {
                if !own && span.readers.last() != Some(&step) {
                    span.readers.push(step);
                }
                continue;
            }
            if !own {
                if !look.spares {
                    span.makers.clear();
                }
                span.readers.clear();
                (span.instruction, span.entry) = (instruction, look.entry);
            }
            if span.makers.last() != Some(&step) {
                span.makers.push(step);
            }
        }
        if look.writes {
            self.merge(&look.range);
        }
    }

    /// Makes one span of those of a range that were made alike.
    fn merge(&mut self, range: &Range<usize>) {
        let mut starts: SmallVec<[usize; 8]> = self.0.range(range.clone()).map(|(start, _)| *start).collect();
        let Some(mut last) = starts.first().copied() else { return };
        for start in starts.drain(1..) {
            let alike = match (self.0.get(&last), self.0.get(&start)) {
                (Some(one), Some(other)) => {
                    one.instruction == other.instruction
                        && one.entry == other.entry
                        && one.makers == other.makers
                        && one.readers == other.readers
                }
                _ => false,
            };
            if !alike {
                last = start;
            } else if let Some(gone) = self.0.remove(&start)
                && let Some(span) = self.0.get_mut(&last)
            {
                span.end = gone.end;
            }
        }
    }

    /// The makers of a range's final value, in order, and whether some of the old value is left.
    pub(super) fn makers(&self, range: &Range<usize>) -> (Vec<u32>, bool) {
        let from = self.0.range(..=range.start).next_back().map_or(range.start, |(start, _)| *start);
        let spans = self.0.range(from..range.end).filter(|(_, span)| span.end > range.start);
        let mut makers: Vec<u32> = spans.flat_map(|(_, span)| span.makers.iter().copied()).collect();
        makers.sort_unstable();
        makers.dedup();
        let outside = makers.pop_if(|last| *last == OUTSIDE).is_some();
        (makers, outside)
    }
}

/// Ranges, those that overlap taken together; all of them, if there would be more than so many.
pub(super) fn together(mut ranges: Vec<Range<usize>>, most: usize) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    if joined.len() > most
        && let (Some(first), Some(last)) = (joined.first(), joined.last())
    {
        joined = std::iter::once(first.start..last.end).collect();
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::{Before, Look, OUTSIDE, Spans, together};
    use std::ops::Range;

    fn step(spans: &mut Spans, range: Range<usize>, sees: bool, writes: bool, step: u32) -> (Vec<u32>, Vec<u32>) {
        let look = Look { range, entry: 0, sees, writes, spares: false };
        let mut before = Before::default();
        spans.look(&look, &mut before);
        spans.enter(&look, step, step as usize);
        for steps in [&mut before.needs, &mut before.follows] {
            steps.sort_unstable();
            steps.dedup();
        }
        (before.needs, before.follows)
    }

    #[test]
    fn who_sees_needs_and_who_overwrites_follows() {
        let mut spans = Spans::new(0, true);
        assert_eq!(step(&mut spans, 0..10, true, false, 0), (vec![OUTSIDE], vec![]));
        assert_eq!(step(&mut spans, 2..4, false, true, 1), (vec![], vec![0]));
        assert_eq!(step(&mut spans, 0..10, true, true, 2), (vec![1, OUTSIDE], vec![0]));
        assert_eq!(spans.makers(&(0..10)), (vec![2], false));
        assert_eq!(step(&mut spans, 6..8, true, false, 3), (vec![2], vec![]));
        assert_eq!(step(&mut spans, 0..6, false, true, 4), (vec![], vec![2]));
        assert_eq!(spans.makers(&(0..10)), (vec![2, 4], false));
        assert_eq!(spans.makers(&(7..12)), (vec![2], true));
    }

    #[test]
    fn parts_of_an_instruction_stand_beside_each_other() {
        let mut spans = Spans::new(0, false);
        let look = Look { range: 0..8, entry: 0, sees: false, writes: true, spares: false };
        for part in 0..3 {
            spans.enter(&look, part, 0);
        }
        assert_eq!(step(&mut spans, 2..3, true, false, 3), (vec![0, 1, 2], vec![]));
    }

    #[test]
    fn memory_of_another_entry_is_not_seen() {
        let mut spans = Spans::new(0, false);
        assert_eq!(step(&mut spans, 0..8, false, true, 0), (vec![], vec![]));
        let look = Look { range: 0..4, entry: 1, sees: true, writes: true, spares: false };
        let mut before = Before::default();
        spans.look(&look, &mut before);
        assert_eq!((before.needs, before.follows), (vec![], vec![0]));
    }

    #[test]
    fn ranges_that_overlap_go_together() {
        assert_eq!(together(vec![4..6, 0..2, 5..8, 2..3], 9), vec![0..2, 2..3, 4..8]);
        assert_eq!(together(vec![4..6, 0..2], 1), vec![0..6]);
    }
}
