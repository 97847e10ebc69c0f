//! Lets neighbours among strided loops run block by block: what one writes the next finds in the cache, and what nobody
//! else reads is never longer than a block.
//!
//! A loop joins an earlier *unit* that has something in common with it if all that it waits for is in that unit or
//! before it: then it moves up to it. Within a unit each loop touches, in a block, only bytes that the others touch in the
//! same block, or do not touch at all.

use crate::recorded::{Instruction, Place, Recorded, depend, overlap};
use std::collections::HashMap;
use std::sync::Arc;
use weft_array::{Access, Fused, Part, Step, Strided};

/// Elements of a block: some operands of it fit a core's own cache.
const BLOCK: usize = 4096;
/// Elements of loops that are fused, at least; and loops of a unit at most.
const LEAST: usize = 2 * BLOCK;
const LOOPS: usize = 64;

/// Instructions that run as one.
struct Unit {
    members: Vec<usize>,
    /// Elements of its loops; none if it takes no more.
    size: Option<usize>,
}

/// The loop of an instruction that may be fused.
fn loop_of(instruction: &Instruction) -> Option<&Arc<Strided>> {
    let Step::Strided(strided) = &instruction.step else { return None };
    let plain = !instruction.has_effects() && instruction.priority == 0;
    (plain && strided.is_in_rows() && strided.size() >= LEAST).then_some(strided)
}

/// Whether an instruction may join others: they have something in common, and meet on the same bytes of a block.
fn joins<'a>(instruction: &Instruction, others: impl Iterator<Item = &'a Instruction>) -> bool {
    let mut in_common = false;
    for other in others {
        if other.device != instruction.device {
            return false;
        }
        for (one, two) in instruction.places.iter().flat_map(|one| other.places.iter().map(move |two| (one, two))) {
            if one.entry != two.entry || !overlap(&one.range, &two.range) {
                continue;
            }
            let alike = one.range == two.range && one.dtype.size() == two.dtype.size();
            let writes = one.access != Access::Read || two.access != Access::Read;
            if writes && !alike {
                return false;
            }
            in_common |= alike;
        }
    }
    in_common
}

/// The instructions of a recording, fused.
pub(super) fn fuse(recorded: &Recorded, instructions: &[Instruction]) -> Vec<Instruction> {
    let mut units: Vec<Unit> = Vec::new();
    let mut unit_of: Vec<usize> = Vec::with_capacity(instructions.len());
    for (at, before) in depend(instructions).iter().enumerate() {
        let size = loop_of(&instructions[at]).map(|strided| strided.size());
        let first = before.iter().map(|before| unit_of[*before]).max();
        let fits = |unit: &usize| {
            let unit = &units[*unit];
            unit.size == size
                && unit.members.len() < LOOPS
                && joins(&instructions[at], unit.members.iter().map(|member| &instructions[*member]))
        };
        // The nearest ones alone: of a long program not each loop looks at each unit.
        let candidates = first.unwrap_or(0)..units.len();
        let found = if size.is_some() { candidates.rev().take(LOOPS).find(fits) } else { None };
        if let Some(unit) = found {
            units[unit].members.push(at);
            unit_of.push(unit);
        } else {
            unit_of.push(units.len());
            units.push(Unit { members: vec![at], size });
        }
    }
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); recorded.entries.len()];
    for (at, instruction) in instructions.iter().enumerate() {
        for place in &instruction.places {
            if users[place.entry].last() != Some(&unit_of[at]) {
                users[place.entry].push(unit_of[at]);
            }
        }
    }
    let inner = |entry: usize, unit: usize| {
        recorded.entries[entry].is_temporary() && users[entry].iter().all(|user| *user == unit)
    };
    let made = units.iter().enumerate().flat_map(|(number, unit)| {
        let members: Vec<&Instruction> = unit.members.iter().map(|member| &instructions[*member]).collect();
        as_one(&members, |entry| inner(entry, number))
            .map_or_else(|| members.iter().map(|member| (*member).clone()).collect(), |one| vec![one])
    });
    made.collect()
}

/// One instruction for several loops; nothing if there is one alone.
fn as_one(members: &[&Instruction], inner: impl Fn(usize) -> bool) -> Option<Instruction> {
    let (first, rest) = members.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let mut places: Vec<Place> = Vec::new();
    let mut slots = Slots::new(members);
    let mut parts = Vec::new();
    for (at, member) in members.iter().enumerate() {
        let strided = loop_of(member)?;
        let mut operands = Vec::new();
        for place in &member.places {
            // Whoever reads a temporary before it is written reads what nobody has made.
            let written = slots.known(place.entry).is_some() || place.access == Access::Overwrite;
            if inner(place.entry) && written && is_plain(members, place) {
                operands.push(Part::Slot(slots.of(at, place)));
                continue;
            }
            let same = |known: &Place| known.entry == place.entry && known.range == place.range;
            let known = places.iter().position(same);
            let at = known.unwrap_or_else(|| {
                places.push(place.clone());
                places.len() - 1
            });
            if places[at].access == Access::Read && place.access != Access::Read {
                places[at].access = Access::Mutate;
            }
            operands.push(Part::Array(at));
        }
        slots.release(at);
        parts.push((Arc::clone(strided), operands));
    }
    let fused = Fused::new(parts, BLOCK)?;
    let mut names: Vec<&str> = members.iter().map(|member| member.name.as_str()).take(8).collect();
    if members.len() > names.len() {
        names.push("...");
    }
    Some(Instruction { step: Step::Fused(Arc::new(fused)), places, name: names.join("+"), ..(*first).clone() })
}

/// Slots of a block, each for one temporary after the other.
struct Slots {
    /// The last loop that uses an entry.
    last: HashMap<usize, usize>,
    /// Entries that have a slot now, and bytes of their elements.
    taken: Vec<(usize, usize, usize)>,
    free: Vec<usize>,
    count: usize,
}

impl Slots {
    fn new(members: &[&Instruction]) -> Self {
        let uses = members.iter().enumerate().flat_map(|(at, member)| member.places.iter().map(move |p| (p.entry, at)));
        Self { last: uses.collect(), taken: Vec::new(), free: Vec::new(), count: 0 }
    }

    fn known(&self, entry: usize) -> Option<usize> {
        self.taken.iter().find(|(known, ..)| *known == entry).map(|(_, slot, _)| *slot)
    }

    /// The slot of an operand of the loop `at`. What is written may lie where something lies that is read for the last
    /// time: each element is computed from that of the same place.
    fn of(&mut self, at: usize, place: &Place) -> usize {
        if let Some(known) = self.known(place.entry) {
            return known;
        }
        let item = place.dtype.size();
        let ends = |(entry, _, other): &(usize, usize, usize)| self.last.get(entry) == Some(&at) && *other == item;
        let slot = match self.taken.iter().position(ends) {
            Some(ending) => self.taken.swap_remove(ending).1,
            None => self.free.pop().unwrap_or_else(|| {
                self.count += 1;
                self.count - 1
            }),
        };
        self.taken.push((place.entry, slot, item));
        slot
    }

    /// Lets go of what the loop `at` was the last to use.
    fn release(&mut self, at: usize) {
        let last = &self.last;
        let (ended, kept) = self.taken.drain(..).partition(|(entry, ..)| last.get(entry) == Some(&at));
        self.taken = kept;
        let ended: Vec<(usize, usize, usize)> = ended;
        self.free.extend(ended.into_iter().map(|(_, slot, _)| slot));
    }
}

/// Whether all places on its entry are the same bytes.
fn is_plain(members: &[&Instruction], place: &Place) -> bool {
    let mut places = members.iter().flat_map(|member| &member.places);
    places.all(|other| other.entry != place.entry || other.range == place.range)
}
