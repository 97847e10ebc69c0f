//! Lets a kernel call the loop over its results, where the values before have no other reader: they are in
//! the cache.

use crate::recorded::{EntryAccess, Instruction, Recorded, depend};
use std::sync::Arc;
use weft_array::{Access, Blocked, Step, Strided};

/// A kernel, and where it writes its one result.
fn kernel_of(instruction: &Instruction) -> Option<(&Arc<dyn Blocked>, usize)> {
    let Step::Blocked(step) = &instruction.step else { return None };
    let mut written = instruction.places.iter().enumerate().filter(|(_, place)| place.access != Access::Read);
    let (at, place) = written.next()?;
    let plain = written.next().is_none() && place.access == Access::Overwrite && !instruction.has_effects();
    plain.then_some((step, at))
}

/// A loop over one array, dense as its result is.
fn loop_of(instruction: &Instruction) -> Option<&Arc<Strided>> {
    let Step::Strided(strided) = &instruction.step else { return None };
    let plain = strided.is_in_rows() && !instruction.has_effects() && instruction.places.len() == 2;
    plain.then_some(strided)
}

/// The kernel that computes what both do.
fn joined(recorded: &Recorded, users: &[usize], first: &Instruction, second: &Instruction) -> Option<Instruction> {
    let ((kernel, at), strided) = (kernel_of(first)?, loop_of(second)?);
    let (made, [read, written]) = (&first.places[at], second.places.as_slice()) else { return None };
    let same = |one: &EntryAccess| one.range.len() == made.range.len() && one.dtype == made.dtype;
    let fits = read.access == Access::Read
        && written.access == Access::Overwrite
        && (read.entry, &read.range) == (made.entry, &made.range)
        && same(read)
        && same(written)
        && strided.size() * made.dtype.size() == made.range.len()
        && recorded.entries[made.entry].is_temporary()
        && users[made.entry] == 2
        && recorded.entries[written.entry].is_fresh()
        && first.places.iter().all(|place| place.entry != written.entry)
        && (first.device, first.priority) == (second.device, second.priority);
    let step = if fits { kernel.then(strided.kernel())? } else { return None };
    let mut places = first.places.clone();
    places[at] = written.clone();
    let name = format!("{}+{}", first.name, second.name);
    Some(Instruction { step: Step::Blocked(step), places, name, ..first.clone() })
}

/// Joins loops to the kernels before them.
pub(super) fn follow(recorded: &Recorded, instructions: &mut Vec<Instruction>) {
    if !instructions.iter().any(|instruction| kernel_of(instruction).is_some()) {
        return;
    }
    let mut users = vec![0; recorded.entries.len()];
    let mut made_by: Vec<Option<usize>> = vec![None; recorded.entries.len()];
    for (at, instruction) in instructions.iter().enumerate() {
        for place in &instruction.places {
            users[place.entry] += 1;
        }
        if let Some((_, place)) = kernel_of(instruction) {
            made_by[instruction.places[place].entry] = Some(at);
        }
    }
    let before = depend(instructions);
    let mut gone = vec![false; instructions.len()];
    for at in 0..instructions.len() {
        let second = &instructions[at];
        let Some(first) = second.places.first().and_then(|place| made_by[place.entry]) else { continue };
        // It moves up to the kernel: nothing between is in its way.
        if first >= at || before[at].iter().any(|&other| other > first) {
            continue;
        }
        if let Some(made) = joined(recorded, &users, &instructions[first], second) {
            instructions[first] = made;
            gone[at] = true;
        }
    }
    let mut gone = gone.into_iter();
    instructions.retain(|_| !gone.next().unwrap_or(false));
}
