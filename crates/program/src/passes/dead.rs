//! Drops native instructions with unused results. Those that may fail stay: eager code reports the failure.

use crate::recorded::{Instruction, Recorded, overlap};
use std::ops::Range;
use weft_array::Access;

/// Goes backwards from what is seen from outside.
pub(super) fn drop_dead(recorded: &mut Recorded) {
    // Bytes of temporaries that somebody reads later.
    let mut wanted: Vec<Vec<Range<usize>>> = vec![Vec::new(); recorded.entries.len()];
    let mut kept: Vec<bool> = vec![true; recorded.instructions.len()];
    for (at, instruction) in recorded.instructions.iter().enumerate().rev() {
        let seen = |instruction: &Instruction| {
            instruction.places.iter().filter(|place| place.access != Access::Read).any(|place| {
                !recorded.entries[place.entry].is_temporary()
                    || wanted[place.entry].iter().any(|range| overlap(range, &place.range))
            })
        };
        kept[at] = instruction.has_effects() || instruction.step.may_fail() || seen(instruction);
        if !kept[at] {
            continue;
        }
        for place in instruction.places.iter().filter(|place| place.access == Access::Overwrite) {
            if place.is_dense() {
                wanted[place.entry].retain(|range| range.start < place.range.start || place.range.end < range.end);
            }
        }
        for place in instruction.places.iter().filter(|place| place.access != Access::Overwrite || !place.is_dense()) {
            if !wanted[place.entry].contains(&place.range) {
                wanted[place.entry].push(place.range.clone());
            }
        }
    }
    let mut kept = kept.into_iter();
    recorded.instructions.retain(|_| kept.next().unwrap_or(true));
}
