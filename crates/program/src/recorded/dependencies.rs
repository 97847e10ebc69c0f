//! Which instructions wait for which: by the bytes that they touch, and by their variables.

use super::Instruction;
use std::collections::HashMap;
use std::ops::Range;
use weft_array::Access;
use weft_engine::AccessKind;

/// Whether two ranges share a byte.
#[inline]
pub(crate) fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The accesses to some bytes that are not yet overwritten as a whole.
struct Seen {
    range: Range<usize>,
    writes: bool,
    by: usize,
}

/// For each instruction the ones before it that it waits for, in order: read after write, write after read, write after
/// write. Those that others wait for already may be left out.
pub(crate) fn depend(instructions: &[Instruction]) -> Vec<Vec<usize>> {
    let mut bytes: HashMap<usize, Vec<Seen>> = HashMap::new();
    let mut variables: HashMap<u64, Vec<Seen>> = HashMap::new();
    let mut all = Vec::with_capacity(instructions.len());
    for (at, instruction) in instructions.iter().enumerate() {
        let mut before = Vec::new();
        for place in instruction.places.iter().filter(|place| !place.range.is_empty()) {
            let seen = bytes.entry(place.entry).or_default();
            meet(seen, &mut before, at, &place.range, place.access != Access::Read);
        }
        for (variable, kind) in &instruction.variables {
            let seen = variables.entry(variable.number()).or_default();
            meet(seen, &mut before, at, &(0..1), *kind != AccessKind::Read);
        }
        before.sort_unstable();
        before.dedup();
        all.push(before);
    }
    all
}

fn meet(seen: &mut Vec<Seen>, before: &mut Vec<usize>, at: usize, range: &Range<usize>, writes: bool) {
    let met = |other: &Seen| other.by != at && (writes || other.writes) && overlap(&other.range, range);
    before.extend(seen.iter().filter(|other| met(other)).map(|other| other.by));
    if writes {
        // A later access meets this one there.
        seen.retain(|other| other.by == at || other.range.start < range.start || range.end < other.range.end);
    }
    seen.push(Seen { range: range.clone(), writes, by: at });
}
