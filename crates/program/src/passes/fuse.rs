//! Lets neighbours among strided loops run block by block: each finds its inputs in the cache, and values without another
//! reader are never longer than a block.
//!
//! A loop joins an earlier *unit* with common operands if its predecessors are in that unit or before it: then it moves up to
//! it, unless it is far and its results would take memory for all that long. Within a unit each loop touches, in a block,
//! only bytes that the others touch in the same block, or do not touch at all; but all may read one element that none writes.
//!
//! Element-wise steps of a device form units by the same rules, regardless of their size: each launch costs more than it
//! computes. One kernel runs a unit, or a part of one, if all of its outputs depend on the same earlier values: so it fails
//! as its steps would.

use crate::recorded::{EntryAccess, Instruction, Recorded, depend, overlap};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use weft_array::{Access, Fused, Neighbour, Part, Step};

/// Elements of a block: some operands of it fit a core's own cache. They fill tiles of any machine (see `weft_array::Fused`).
const BLOCK: usize = 3072;
/// Elements of loops that are fused, at least: of any, and of such as run in registers (see `weft_array::Strided::is_exact`). And loops
/// of a unit at most.
const LEAST: usize = 2 * BLOCK;
const LEAST_EXACT: usize = 1;
/// Loops that are fused, at least, where their elements are fewer than `LEAST`.
const LOOPS_OF_FEW: usize = 6;
const LOOPS: usize = 256;
/// Units that a loop looks at, at most.
const NEAR: usize = 64;
/// Instructions between a unit and a loop that makes more than it frees, at most.
const FAR: usize = 4;

/// Steps of a kernel at most.
const STEPS: usize = 16;

/// Instructions that run as one.
struct Unit {
    members: Vec<usize>,
    /// What they are; none if it takes no more.
    kin: Option<Kin>,
}

/// What instructions that are fused have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kin {
    /// They are loops of the host over so many elements.
    Loops(usize),
    /// They are steps of devices over so many.
    Steps(usize),
}

impl Kin {
    fn most(self) -> usize {
        if let Self::Loops(_) = self { LOOPS } else { STEPS }
    }
}

/// What an instruction is to others, if it may be fused.
fn kin_of(instruction: &Instruction) -> Option<Kin> {
    if instruction.has_effects() || instruction.priority != 0 {
        return None;
    }
    match &instruction.step {
        Step::Strided(strided) => {
            let least = if strided.is_exact() { LEAST_EXACT } else { LEAST };
            (strided.is_in_blocks() && strided.size() >= least).then_some(Kin::Loops(strided.size()))
        }
        Step::Opaque(opaque) => opaque.elements().map(Kin::Steps),
        _ => None,
    }
}

/// Whether an instruction may join others: they have something in common, and meet on the same bytes of a block.
fn joins<'a>(instruction: &Instruction, others: impl Iterator<Item = &'a Instruction>) -> bool {
    let mut in_common = false;
    // One element for all brings nothing into the cache.
    let is_many = |place: &EntryAccess| match &instruction.step {
        Step::Strided(strided) => strided.size() * place.dtype.size() == place.range.len(),
        _ => true,
    };
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
            in_common |= alike && is_many(one);
        }
    }
    in_common
}

/// When entries are looked at: up to now for the last time, and ever.
struct Looks<'a> {
    recorded: &'a Recorded,
    so_far: Vec<usize>,
    last: Vec<usize>,
}

impl<'a> Looks<'a> {
    fn new(recorded: &'a Recorded, instructions: &[Instruction]) -> Self {
        let mut last = vec![0; recorded.entries.len()];
        for (at, instruction) in instructions.iter().enumerate() {
            instruction.places.iter().for_each(|place| last[place.entry] = at);
        }
        Self { recorded, so_far: vec![0; last.len()], last }
    }

    fn add(&mut self, at: usize, instruction: &Instruction) {
        instruction.places.iter().for_each(|place| self.so_far[place.entry] = at);
    }

    /// Whether more memory is in use from `since` on if the instruction `at` runs there: what it makes for others is, and
    /// what only it looks at after that is not.
    fn costs(&self, since: usize, at: usize, instruction: &Instruction) -> bool {
        let (mut made, mut freed) = (0, 0);
        let mut known: Vec<usize> = Vec::new();
        for place in &instruction.places {
            let (number, entry) = (place.entry, &self.recorded.entries[place.entry]);
            if !entry.is_temporary() || known.contains(&number) {
                continue;
            }
            known.push(number);
            if place.access == Access::Overwrite && self.last[number] > at {
                made += entry.bytes;
            } else if self.last[number] == at && self.so_far[number] <= since {
                freed += entry.bytes;
            }
        }
        made > freed
    }
}

/// The instructions of a recording, in this order, fused.
pub(super) fn fuse(recorded: &Recorded, instructions: &[Instruction]) -> Vec<Instruction> {
    let mut looks = Looks::new(recorded, instructions);
    let mut units: Vec<Unit> = Vec::new();
    let mut unit_of: Vec<usize> = Vec::with_capacity(instructions.len());
    for (at, before) in depend(instructions).iter().enumerate() {
        let kin = kin_of(&instructions[at]);
        let first = before.iter().map(|before| unit_of[*before]).max();
        let fits = |unit: &usize| {
            let unit = &units[*unit];
            let since = unit.members.last().copied().unwrap_or(at);
            unit.kin == kin
                && kin.is_some_and(|kin| unit.members.len() < kin.most())
                && (at - since <= FAR || !looks.costs(since, at, &instructions[at]))
                && joins(&instructions[at], unit.members.iter().map(|member| &instructions[*member]))
        };
        // The nearest ones alone: of a long program not each loop looks at each unit.
        let candidates = first.unwrap_or(0)..units.len();
        let found = if kin.is_some() { candidates.rev().take(NEAR).find(fits) } else { None };
        if let Some(unit) = found {
            units[unit].members.push(at);
            unit_of.push(unit);
        } else {
            unit_of.push(units.len());
            units.push(Unit { members: vec![at], kin });
        }
        looks.add(at, &instructions[at]);
    }
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); recorded.entries.len()];
    for (at, instruction) in instructions.iter().enumerate() {
        for place in &instruction.places {
            if users[place.entry].last() != Some(&at) {
                users[place.entry].push(at);
            }
        }
    }
    // Of what nobody uses but these.
    let inner = |entry: usize, members: &[usize]| {
        recorded.entries[entry].is_temporary()
            && !recorded.entries[entry].is_shown
            && users[entry].iter().all(|user| members.contains(user))
    };
    let fused = |members: &[usize]| {
        let all: Vec<&Instruction> = members.iter().map(|member| &instructions[*member]).collect();
        as_one(&all, |entry| inner(entry, members))
    };
    let mut made = Vec::with_capacity(instructions.len());
    for unit in &units {
        let mut rest = &unit.members[..];
        while !rest.is_empty() {
            let exact = |count: &usize| {
                let members = &rest[..*count];
                match unit.kin {
                    Some(Kin::Steps(_)) => {
                        let steps = members.iter().map(|member| &instructions[*member]);
                        owes_the_same(steps, |entry| inner(entry, members))
                    }
                    Some(Kin::Loops(size)) => size >= LEAST || *count >= LOOPS_OF_FEW,
                    None => true,
                }
            };
            let count = (2..=rest.len()).rev().find(exact).unwrap_or(1);
            match fused(&rest[..count]) {
                Some(one) => made.push(one),
                None => made.extend(rest[..count].iter().map(|member| instructions[*member].clone())),
            }
            rest = &rest[count..];
        }
    }
    made
}

/// Whether all that these steps leave behind fails with the same of what was there before them.
fn owes_the_same<'a>(members: impl Iterator<Item = &'a Instruction>, inner: impl Fn(usize) -> bool) -> bool {
    type Bytes = (usize, usize, usize);
    let mut made: HashMap<Bytes, BTreeSet<Bytes>> = HashMap::new();
    for member in members {
        let key = |place: &EntryAccess| (place.entry, place.range.start, place.range.end);
        let mut owes = BTreeSet::new();
        for place in member.places.iter().filter(|place| place.access != Access::Overwrite) {
            match made.get(&key(place)) {
                Some(of) => owes.extend(of.iter().copied()),
                None => drop(owes.insert(key(place))),
            }
        }
        for place in member.places.iter().filter(|place| place.access != Access::Read) {
            made.insert(key(place), owes.clone());
        }
    }
    let mut left = made.iter().filter(|((entry, ..), _)| !inner(*entry)).map(|(_, owes)| owes);
    let first = left.next();
    left.all(|owes| Some(owes) == first)
}

/// One instruction for several; nothing if there is one alone, or they stay apart.
fn as_one(members: &[&Instruction], inner: impl Fn(usize) -> bool) -> Option<Instruction> {
    let (first, rest) = members.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let mut places: Vec<EntryAccess> = Vec::new();
    let mut slots = Slots::new(members);
    let mut parts = Vec::new();
    for (at, member) in members.iter().enumerate() {
        // What is read has its slot before what is written takes one.
        let mut order: SmallVec<[usize; 4]> = (0..member.places.len()).collect();
        order.sort_by_key(|number| member.places[*number].access != Access::Read);
        let mut operands = vec![Part::Array(0); member.places.len()];
        for number in order {
            let place = &member.places[number];
            // Whoever reads a temporary before it is written reads what nobody has made.
            let written = slots.known(place.entry).is_some() || place.access == Access::Overwrite;
            if inner(place.entry) && written && is_plain(members, place) {
                operands[number] = Part::Slot(slots.of(at, place));
                continue;
            }
            let same = |known: &EntryAccess| known.entry == place.entry && known.range == place.range;
            let known = places.iter().position(same);
            let array = known.unwrap_or_else(|| {
                places.push(place.clone());
                places.len() - 1
            });
            if places[array].access == Access::Read && place.access != Access::Read {
                places[array].access = Access::Mutate;
            }
            operands[number] = Part::Array(array);
        }
        slots.release(at);
        parts.push(operands);
    }
    let step = step_of(members, parts)?;
    let mut names: Vec<&str> = members.iter().map(|member| member.name.as_str()).take(8).collect();
    if members.len() > names.len() {
        names.push("...");
    }
    Some(Instruction { step, places, name: names.join("+"), ..(*first).clone() })
}

/// The step that does what these do, with where their operands lie.
fn step_of(members: &[&Instruction], parts: Vec<Vec<Part>>) -> Option<Step> {
    let loops = members.iter().zip(&parts).map(|(member, operands)| match &member.step {
        Step::Strided(strided) => Some((Arc::clone(strided), operands.clone())),
        _ => None,
    });
    if let Some(loops) = loops.collect::<Option<Vec<_>>>() {
        return Some(Step::Fused(Arc::new(Fused::new(loops, BLOCK)?)));
    }
    let steps = members.iter().zip(parts).map(|(member, operands)| match &member.step {
        Step::Opaque(opaque) => Some((Arc::clone(opaque), operands)),
        _ => None,
    });
    let steps: Vec<Neighbour> = steps.collect::<Option<_>>()?;
    steps.first()?.0.fused(&steps).map(Step::Opaque)
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
    fn of(&mut self, at: usize, place: &EntryAccess) -> usize {
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
fn is_plain(members: &[&Instruction], place: &EntryAccess) -> bool {
    let mut places = members.iter().flat_map(|member| &member.places);
    places.all(|other| other.entry != place.entry || other.range == place.range)
}
