//! Runs equal loops on equal inputs once.
//!
//! A loop that makes a temporary of its own is dropped if an earlier one has made the same from the same bytes, if these have
//! not changed since, and if neither of the two changes later. Readers of the later one read the earlier one.
//!
//! This must not take more memory than there is: if the live bytes at some time would exceed the peak without it, the loop runs
//! again. So values that were made again to save memory stay so.

use crate::recorded::{Instruction, Recorded, Source, overlap};
use std::collections::HashMap;
use std::sync::Arc;
use weft_array::{Access, Step, Strided};

/// Whether what an instruction makes is one entry, all of it, which it alone writes.
fn makes(recorded: &Recorded, writers: &[usize], instruction: &Instruction) -> Option<usize> {
    let mut written = instruction.places.iter().filter(|place| place.access != Access::Read);
    let (Some(place), None) = (written.next(), written.next()) else { return None };
    let entry = &recorded.entries[place.entry];
    let all = place.is_dense() && place.range == (0..entry.bytes) && place.access == Access::Overwrite;
    let own = matches!(entry.source, Source::Fresh) && !entry.is_shown && writers[place.entry] == 1;
    (all && own).then_some(place.entry)
}

fn strided(instruction: &Instruction) -> Option<&Arc<Strided>> {
    match &instruction.step {
        Step::Strided(strided) if !instruction.has_effects() => Some(strided),
        _ => None,
    }
}

/// Whether two instructions do the same with the same places, as far as they read.
fn are_equal(one: &Instruction, other: &Instruction) -> bool {
    let (Some(first), Some(second)) = (strided(one), strided(other)) else { return false };
    first.is_same(second)
        && one.places.len() == other.places.len()
        && one.places.iter().zip(&other.places).all(|(one, other)| {
            let place = one.entry == other.entry && one.layout == other.layout;
            one.dtype == other.dtype && one.access == other.access && (place || one.access != Access::Read)
        })
}

/// How many bytes of temporaries are live while each instruction runs, in recorded order.
struct Live {
    bytes: Vec<usize>,
    peak: usize,
    /// For each entry, the last instruction that touches it.
    last: Vec<usize>,
}

impl Live {
    fn new(recorded: &Recorded) -> Self {
        let count = recorded.instructions.len();
        let mut spans: Vec<Option<(usize, usize)>> = vec![None; recorded.entries.len()];
        for (at, instruction) in recorded.instructions.iter().enumerate() {
            for place in &instruction.places {
                spans[place.entry].get_or_insert((at, at)).1 = at;
            }
        }
        let mut bytes = vec![0; count];
        // What begins at an instruction, and what has ended before it.
        let (mut begun, mut ended) = (vec![0; count], vec![0; count + 1]);
        for (entry, span) in recorded.entries.iter().zip(&spans) {
            if let Some((first, last)) = span.filter(|_| entry.is_temporary()) {
                begun[first] += entry.bytes;
                ended[last + 1] += entry.bytes;
            }
        }
        let mut live = 0;
        for at in 0..count {
            live = live + begun[at] - ended[at];
            bytes[at] = live;
        }
        let peak = bytes.iter().copied().max().unwrap_or(0);
        Self { bytes, peak, last: spans.into_iter().map(|span| span.map_or(0, |span| span.1)).collect() }
    }

    /// Keeps an entry from its last use to the instruction `at`, and then instead of the entry that this one makes; answers
    /// whether there is room.
    fn keep(&mut self, entry: usize, bytes: usize, (at, instead): (usize, usize)) -> bool {
        let between = (self.last[entry] + 1).min(at)..at;
        if self.bytes[between.clone()].iter().any(|live| live + bytes > self.peak) {
            return false;
        }
        self.bytes[between].iter_mut().for_each(|live| *live += bytes);
        self.last[entry] = self.last[entry].max(self.last[instead]);
        true
    }
}

/// Merges what is equal.
pub(super) fn merge_equal(recorded: &mut Recorded) {
    let mut writers = vec![0_usize; recorded.entries.len()];
    for place in recorded.instructions.iter().flat_map(|instruction| &instruction.places) {
        writers[place.entry] += usize::from(place.access != Access::Read);
    }
    // Earlier loops, by what they call and what they read first.
    let mut known: HashMap<((usize, usize), usize), Vec<usize>> = HashMap::new();
    let mut dropped = vec![false; recorded.instructions.len()];
    let mut live = Live::new(recorded);
    for (at, dropped) in dropped.iter_mut().enumerate() {
        let instruction = &recorded.instructions[at];
        let Some(entry) = makes(recorded, &writers, instruction) else { continue };
        let Some(loops) = strided(instruction) else { continue };
        let first = instruction.places.first().map_or(0, |place| place.entry);
        let earlier = known.entry((loops.kernel().identity(), first)).or_default();
        let unchanged = |since: usize| {
            let reads = instruction.places.iter().filter(|place| place.access == Access::Read);
            let changes = |between: &Instruction, place: &crate::recorded::EntryAccess| {
                let mut written = between.places.iter().filter(|other| other.access != Access::Read);
                written.any(|other| other.entry == place.entry && overlap(&other.range, &place.range))
            };
            reads
                .into_iter()
                .all(|place| !recorded.instructions[since..at].iter().any(|between| changes(between, place)))
        };
        let equal = |other: &usize| are_equal(&recorded.instructions[*other], instruction) && unchanged(*other);
        let Some(&other) = earlier.iter().rev().take(16).find(|other| equal(other)) else {
            earlier.push(at);
            continue;
        };
        if recorded.entries[entry].is_result {
            continue; // it keeps its own memory
        }
        let Some(into) = makes(recorded, &writers, &recorded.instructions[other]) else { continue };
        if !live.keep(into, recorded.entries[into].bytes, (at, entry)) {
            earlier.push(at); // who comes later has a nearer one
            continue;
        }
        *dropped = true;
        for later in &mut recorded.instructions[at..] {
            for place in later.places.iter_mut().filter(|place| place.entry == entry) {
                place.entry = into;
            }
        }
    }
    let mut dropped = dropped.into_iter();
    recorded.instructions.retain(|_| !dropped.next().unwrap_or(false));
}
