//! Donations: arguments that give a call their memory, and the results that come to lie there.
//!
//! A result takes the place of an argument of as many bytes if the argument has no reader behind the result's first maker;
//! that one may read it itself where it computes each element from that of the same place.

use super::in_place::is_in_place;
use crate::recorded::{Instruction, Recorded, Source};
use weft_array::Access;

/// An argument that is given away.
#[derive(Debug, Clone)]
pub(crate) struct Donation {
    /// The argument's number.
    pub(crate) argument: usize,
    /// Its entry.
    pub(crate) entry: usize,
    /// The result that lies there.
    pub(crate) into: Option<usize>,
}

/// The arguments of these numbers that can be given away, with the instructions in their order.
pub(crate) fn donations(recorded: &Recorded, instructions: &[Instruction], arguments: &[usize]) -> Vec<Donation> {
    let uses = |entry: usize| {
        let at = |(at, instruction): (usize, &Instruction)| {
            instruction.places.iter().any(|place| place.entry == entry).then_some(at)
        };
        instructions.iter().enumerate().filter_map(at).collect::<Vec<usize>>()
    };
    let mut taken: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for &argument in arguments {
        let Some(&entry) = recorded.argument_entries.get(argument) else { continue };
        let shared = recorded.argument_entries.iter().filter(|other| **other == entry).count() > 1;
        let of = &recorded.entries[entry];
        if shared
            || of.home.is_some()
            || of.is_result
            || recorded.closed.contains(&argument)
            || found.iter().any(|known: &Donation| known.entry == entry)
        {
            continue;
        }
        let last = uses(entry).last().copied();
        let suits = |into: &usize| {
            let result = &recorded.entries[*into];
            let is_own = matches!(result.source, Source::Fresh)
                && result.home.is_none()
                && result.is_result
                && !result.is_shown
                && !of.is_shown;
            let uses = uses(*into);
            let (Some(first), true) = (uses.first(), is_own && result.bytes == of.bytes && of.bytes > 0) else {
                return false;
            };
            // A reader of uninitialised memory must not find the argument.
            let overwrites =
                |place: &crate::recorded::EntryAccess| place.entry != *into || place.access == Access::Overwrite;
            instructions[*first].places.iter().all(overwrites)
                && last.is_none_or(|last| {
                    last < *first || (last == *first && is_in_place(&instructions[last], entry, *into))
                })
        };
        let into = (0..recorded.entries.len()).filter(|into| !taken.contains(into)).find(suits);
        taken.extend(into);
        found.push(Donation { argument, entry, into });
    }
    found
}
