//! Lets values between kernels lie as these like them: oneDNN's convolutions have some channels side by side (`Lanes`), and would
//! lay their data out so in each call, and their results back.
//!
//! | a temporary | may lie in lanes if |
//! |---|---|
//! | is what a kernel takes or gives | the kernel has a twin for that, which computes the same bits (`Blocked::in_lanes`) |
//! | is what an element-wise loop takes or gives | all arrays of the loop do: it does the same to each element, wherever that lies |
//! | is anything else's | never |
//!
//! Temporaries that loops join are one *group*, which lies in lanes or in rows as a whole. A group lies in lanes if a kernel likes it
//! so (`Blocked::likes`; pooling and normalisation follow their neighbours), no two like it differently, and no user refuses. So
//! chains end at arguments, results, and functions by rows: there the convolutions lay out their operands and results, a part at a
//! time, as they do without this pass. Nothing is added that costs: each temporary in lanes saves one such transformation at least. No
//! kernel likes a layout that would fill channels up, so no temporary becomes longer, and plans are those of rows.
//!
//! Weights keep their layout: the kernel that multiplies by them lays them out once for all blocks.

use crate::recorded::{EntryAccess, Instruction, Recorded};
use std::sync::Arc;
use weft_array::{Blocked, Lanes, Step};

/// How a group lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lies {
    /// As nobody has said yet: in rows.
    Free,
    /// As a kernel likes it.
    In(Lanes),
    /// In rows, whoever likes what.
    Rows,
}

/// Entries that lie alike.
struct Groups {
    /// Another entry of the same group, or itself.
    same: Vec<usize>,
    /// Of those that are their own.
    lies: Vec<Lies>,
}

impl Groups {
    fn of(&mut self, entry: usize) -> usize {
        let mut at = entry;
        while self.same[at] != at {
            self.same[at] = self.same[self.same[at]];
            at = self.same[at];
        }
        at
    }

    fn like(&mut self, entry: usize, lies: Lies) {
        let group = self.of(entry);
        self.lies[group] = match (self.lies[group], lies) {
            (Lies::Free, other) | (other, Lies::Free) => other,
            (one, other) if one == other => one,
            _ => Lies::Rows,
        };
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.of(one), self.of(other));
        if one != other {
            self.same[other] = one;
            let lies = self.lies[other];
            self.like(one, lies);
        }
    }

    fn lanes(&mut self, entry: usize) -> Option<Lanes> {
        let group = self.of(entry);
        if let Lies::In(lanes) = self.lies[group] { Some(lanes) } else { None }
    }

    /// How the operands of an instruction lie.
    fn lanes_of(&mut self, instruction: &Instruction) -> Vec<Option<Lanes>> {
        instruction.places.iter().map(|place| self.lanes(place.entry)).collect()
    }
}

/// Whether a place is all of a temporary that nobody sees, row after row.
fn is_whole(recorded: &Recorded, place: &EntryAccess) -> bool {
    let (entry, item) = (&recorded.entries[place.entry], place.dtype.size());
    let layout = &place.layout;
    let whole = layout.offset == 0 && layout.is_contiguous(item) && layout.size() * item == entry.bytes;
    whole && entry.is_fresh() && entry.is_temporary() && !entry.is_shown && entry.home.is_none()
}

fn kernel(instruction: &Instruction) -> Option<&Arc<dyn Blocked>> {
    if let Step::Blocked(step) = &instruction.step { Some(step) } else { None }
}

/// Asks kernels what they like, until nobody likes anything new.
fn spread(groups: &mut Groups, instructions: &[Instruction]) {
    let mut settled = false;
    while !settled {
        settled = true;
        for instruction in instructions {
            let Some(step) = kernel(instruction) else { continue };
            let lie = groups.lanes_of(instruction);
            for (place, liked) in instruction.places.iter().zip(step.likes(&lie)) {
                let group = groups.of(place.entry);
                let before = groups.lies[group];
                if let Some(lanes) = liked {
                    groups.like(place.entry, Lies::In(lanes));
                }
                settled &= groups.lies[group] == before;
            }
        }
    }
}

/// Lets temporaries lie in lanes.
pub(super) fn correct_layout(recorded: &Recorded, instructions: &mut [Instruction]) {
    let likes = |step: &Arc<dyn Blocked>| step.likes(&[]).iter().any(Option::is_some);
    if !instructions.iter().filter_map(kernel).any(likes) {
        return;
    }
    let count = recorded.entries.len();
    let mut groups = Groups { same: (0..count).collect(), lies: vec![Lies::Free; count] };
    for instruction in instructions.iter() {
        let passes_on = match &instruction.step {
            Step::Strided(strided) => strided.is_in_rows(),
            Step::Blocked(_) => true,
            _ => false,
        };
        for place in &instruction.places {
            if !passes_on || !is_whole(recorded, place) {
                groups.like(place.entry, Lies::Rows);
            }
        }
        if let (Step::Strided(_), Some((first, others))) = (&instruction.step, instruction.places.split_first()) {
            others.iter().for_each(|other| groups.join(first.entry, other.entry));
        }
    }
    spread(&mut groups, instructions);
    // Who refuses has all of its operands in rows, which may make others refuse.
    let mut found: Vec<Option<Arc<dyn Blocked>>> = vec![None; instructions.len()];
    let mut settled = false;
    while !settled {
        settled = true;
        for (instruction, found) in instructions.iter().zip(&mut found) {
            let Some(step) = kernel(instruction) else { continue };
            let lanes = groups.lanes_of(instruction);
            let in_lanes = lanes.iter().any(Option::is_some);
            *found = if in_lanes { step.in_lanes(&lanes) } else { None };
            if in_lanes && found.is_none() {
                instruction.places.iter().for_each(|place| groups.like(place.entry, Lies::Rows));
                settled = false;
            }
        }
    }
    for (instruction, step) in instructions.iter_mut().zip(found) {
        if let Some(step) = step {
            instruction.step = Step::Blocked(step);
        }
    }
}
