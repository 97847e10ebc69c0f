//! The order of instructions in a push, and the places of their temporaries.
//!
//! Memory that two temporaries share orders them. So several plans are tried, and of those that make the longest way
//! through the program no longer than `memory=` allows the smallest is taken; the first, if it is one of them:
//!
//! | plan | order | temporaries share memory |
//! |---|---|---|
//! | tight | as recorded | if one is let go before the other begins |
//! | loose | as recorded | the same, but for those that would make the way too long, taken one by one |
//! | timed | by time, were there a worker for each | if one is let go by the time at which the other begins |
//!
//! An element-wise instruction writes over a temporary at its last read (`Storages`): in recorded order if it waits anyway for
//! its other readers, unless the path may be of any length; by time if they are done by then.
//!
//! A plan that can take no less than another one, by the bytes that are live at a time, is not placed with care, and not taken.
//!
//! There are several sets of times (`times.rs`), none of which ends too late: so there is always an allowed plan, and in it
//! values whose paths leave time to wait share memory.

use super::lives::lives;
use super::times::{Begin, times, ways};
use crate::ProgramError;
use crate::memory::{Before, Life, Storages, place_apart};
use crate::recorded::{Instruction, Memory, Recorded, depend, overlap};
use std::ops::Range;
use weft_array::Home;
use weft_plan::PlanError;

/// Bytes of the arenas.
#[derive(Clone, Default)]
pub(super) struct Arenas {
    pub(super) host: usize,
    /// Each in the memory of a device.
    pub(super) devices: Vec<(&'static dyn Home, usize)>,
}

impl Arenas {
    /// Of all of them.
    pub(super) fn bytes(&self) -> usize {
        self.host + self.devices.iter().map(|(_, bytes)| bytes).sum::<usize>()
    }
}

/// A plan.
pub(super) struct Planned {
    pub(super) instructions: Vec<Instruction>,
    /// Of entries in the arena.
    pub(super) offsets: Vec<Option<usize>>,
    /// The arenas: of the host, of devices.
    pub(super) arenas: Arenas,
    /// For each instruction, the entries that used its memory right before it.
    pub(super) after: Vec<Vec<usize>>,
    /// First and last use of entries.
    pub(super) lives: Vec<Option<(usize, usize)>>,
    /// Which of them have one place.
    pub(super) storages: Storages,
    /// For each entry, those that had its memory before.
    before: Vec<Vec<usize>>,
}

/// How often entries are kept apart that would make the way too long, and all is placed anew.
const TURNS: usize = 8;

/// Bytes that an instruction costs besides those that it touches.
const CALL: usize = 1024;

/// The first plan that is allowed.
pub(super) fn planned(
    recorded: &Recorded,
    instructions: Vec<Instruction>,
    memory: Memory,
) -> Result<Planned, ProgramError> {
    let dependencies = depend(&instructions);
    let longest = way(&instructions, &dependencies, &[]);
    let allowed = match memory {
        Memory::Min => None,
        Memory::Balanced => Some(longest + longest / 20),
        Memory::Speed => Some(longest),
    };
    let moments: Vec<Range<usize>> = (0..instructions.len()).map(|at| at..at + 1).collect();
    // A step without a limit of time may wait for readers, too.
    let before = if allowed.is_none() { Before::InTime(&moments) } else { Before::Anyway(&dependencies) };
    let Some(tight) = plan(recorded, instructions, (&dependencies, before), &moments, &[], usize::MAX)? else {
        return Err(unplaced());
    };
    let fits = |plan: &Planned, dependencies: &[Vec<usize>]| {
        allowed.is_none_or(|allowed| way(&plan.instructions, dependencies, &plan.after) <= allowed)
    };
    let Some(allowed) = allowed.filter(|_| !fits(&tight, &dependencies)) else { return Ok(tight) };
    let costs: Vec<usize> = tight.instructions.iter().map(cost).collect();
    let mut smallest: Option<Planned> = None;
    let bytes = |plan: &Option<Planned>| plan.as_ref().map_or(usize::MAX, |plan| plan.arenas.bytes());
    for begin in [Begin::InOrder, Begin::OneByOne, Begin::Ready] {
        let times = times(&costs, &dependencies, allowed, begin);
        let below = bytes(&smallest);
        let found = timed(recorded, &tight.instructions, &times, below)?;
        smallest = found.filter(|plan| plan.arenas.bytes() < below).or(smallest);
    }
    let loose = loose(recorded, &tight, (&dependencies, &moments), allowed, bytes(&smallest))?;
    loose.or(smallest).ok_or_else(unplaced)
}

/// The plan of instructions that run at these times; any of these if none can take less than `below`. A wait for memory is a wait for
/// steps that are done by then: so no way becomes longer than they are.
fn timed(
    recorded: &Recorded,
    instructions: &[Instruction],
    times: &[Range<usize>],
    below: usize,
) -> Result<Option<Planned>, ProgramError> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|at| times[*at].start);
    let sorted: Vec<Instruction> = order.iter().map(|at| instructions[*at].clone()).collect();
    let times: Vec<Range<usize>> = order.iter().map(|at| times[*at].clone()).collect();
    let dependencies = depend(&sorted);
    plan(recorded, sorted, (&dependencies, Before::InTime(&times)), &times, &[], below)
}

fn unplaced() -> ProgramError {
    ProgramError::from(PlanError::Graph { what: "no places were found".to_owned() })
}

/// The plan in recorded order with no way longer than `allowed`, if one was found that takes no more than `most`.
fn loose(
    recorded: &Recorded,
    tight: &Planned,
    (dependencies, moments): (&[Vec<usize>], &[Range<usize>]),
    allowed: usize,
    most: usize,
) -> Result<Option<Planned>, ProgramError> {
    let mut apart = too_long(tight, dependencies, allowed);
    for _ in 1..TURNS {
        let waits = (dependencies, Before::Anyway(dependencies));
        let below = most.saturating_add(1);
        let Some(next) = plan(recorded, tight.instructions.clone(), waits, moments, &apart, below)? else { break };
        if next.arenas.bytes() > most {
            break; // the more entries are kept apart, the more memory they take
        }
        if way(&next.instructions, dependencies, &next.after) <= allowed {
            return Ok(Some(next));
        }
        apart.extend(too_long(&next, dependencies, allowed));
    }
    Ok(None)
}

/// Which entries, before which others, make a way longer than this if these have their memory: taken one by one, in order.
fn too_long(plan: &Planned, dependencies: &[Vec<usize>], allowed: usize) -> Vec<(usize, usize)> {
    let costs: Vec<usize> = plan.instructions.iter().map(cost).collect();
    let ways = ways(&costs, dependencies);
    let mut found = Vec::new();
    let mut used: Vec<usize> = vec![0; plan.before.len()];
    let mut ends: Vec<usize> = Vec::with_capacity(costs.len());
    for (at, instruction) in plan.instructions.iter().enumerate() {
        let mut start = dependencies[at].iter().map(|before| ends[*before]).max().unwrap_or(0);
        for place in &instruction.places {
            for &owner in plan.before[place.entry].iter().filter(|owner| plan.after[at].contains(owner)) {
                if used[owner] + ways[at] > allowed {
                    found.push((owner, place.entry));
                } else {
                    start = start.max(used[owner]);
                }
            }
        }
        ends.push(start + costs[at]);
        for place in &instruction.places {
            used[place.entry] = used[place.entry].max(start + costs[at]);
        }
    }
    found
}

/// The cost of an instruction: the bytes that it touches, and more.
fn cost(instruction: &Instruction) -> usize {
    instruction.places.iter().map(|place| place.range.len()).sum::<usize>() + CALL
}

/// The longest way through the instructions, in bytes that they touch.
fn way(instructions: &[Instruction], dependencies: &[Vec<usize>], after: &[Vec<usize>]) -> usize {
    let mut ends: Vec<usize> = Vec::with_capacity(instructions.len());
    // When the last of those is done that have used an entry so far.
    let mut used: Vec<usize> = Vec::new();
    for (at, instruction) in instructions.iter().enumerate() {
        let owners = after.get(at).into_iter().flatten().filter_map(|entry| used.get(*entry).copied());
        let start = dependencies[at].iter().map(|before| ends[*before]).chain(owners).max().unwrap_or(0);
        let end = start + cost(instruction);
        for place in &instruction.places {
            if used.len() <= place.entry {
                used.resize(place.entry + 1, 0);
            }
            used[place.entry] = used[place.entry].max(end);
        }
        ends.push(end);
    }
    ends.into_iter().max().unwrap_or(0)
}

/// A plan for instructions in this order, each at a moment: values in use at the same moment lie apart, and so do these
/// pairs. None if there are too many to compare. Where no arenas can take less than `below`, some plan.
fn plan(
    recorded: &Recorded,
    instructions: Vec<Instruction>,
    (dependencies, before): (&[Vec<usize>], Before<'_>),
    moments: &[Range<usize>],
    apart: &[(usize, usize)],
    below: usize,
) -> Result<Option<Planned>, ProgramError> {
    let lives = lives(recorded, &instructions);
    let in_arena = |number: &usize| {
        let entry = &recorded.entries[*number];
        entry.is_temporary() && !entry.is_shown && entry.bytes > 0 && lives[*number].is_some()
    };
    let own: Vec<usize> = (0..recorded.entries.len()).filter(in_arena).collect();
    let storages = Storages::new(recorded, &instructions, before, |number| in_arena(&number), apart);
    let mut in_use: Vec<Option<Life>> = vec![None; recorded.entries.len()];
    for (at, instruction) in instructions.iter().enumerate() {
        for place in &instruction.places {
            let bytes = recorded.entries[place.entry].bytes;
            let life =
                in_use[place.entry].get_or_insert(Life { first: moments[at].start, last: moments[at].end - 1, bytes });
            (life.first, life.last) = (life.first.min(moments[at].start), life.last.max(moments[at].end - 1));
        }
    }
    let mut offsets = vec![None; recorded.entries.len()];
    let mut orders = Orders { after: vec![Vec::new(); instructions.len()], before: vec![Vec::new(); in_use.len()] };
    let mut arenas = Arenas::default();
    let mut homes: Vec<Option<&'static dyn Home>> = vec![None];
    for home in own.iter().filter_map(|number| recorded.entries[*number].home) {
        if homes.iter().flatten().all(|known| known.number() != home.number()) {
            homes.push(Some(home));
        }
    }
    for home in homes {
        let device = home.map(Home::number);
        let of_home = own.iter().copied().filter(|number| recorded.entries[*number].device() == device);
        let of_home: Vec<usize> = of_home.collect();
        let life = |number: &usize| {
            // Copies of constants are made first of all.
            let first = lives[*number].is_some_and(|(first, _)| first == 0);
            in_use[*number].map(|life| if first { Life { first: 0, ..life } } else { life })
        };
        let each: Vec<(usize, Life)> = of_home.iter().filter_map(|number| Some((*number, life(number)?))).collect();
        let taken = storages.lives(each.iter().copied());
        let mut numbers = vec![None; recorded.entries.len()];
        for (at, (number, _)) in taken.iter().enumerate() {
            numbers[*number] = Some(at);
        }
        let number = |entry: usize| numbers[storages.of(entry)];
        let pairs: Vec<_> = apart.iter().filter_map(|(one, other)| number(*one).zip(number(*other))).collect();
        let intervals: Vec<Life> = taken.into_iter().map(|(_, life)| life).collect();
        let rest = below.saturating_sub(arenas.bytes());
        let Some((places, bytes)) = place_apart(&intervals, &pairs, rest)? else { return Ok(None) };
        for entry in &of_home {
            offsets[*entry] = number(*entry).map(|at| places[at]);
        }
        let lower: Vec<usize> = each.iter().map(|(_, life)| life.first).collect();
        orders.add((recorded, &instructions, dependencies), &offsets, (of_home, &lower));
        match home {
            None => arenas.host = bytes,
            Some(home) => arenas.devices.push((home, bytes)),
        }
    }
    let Orders { after, before } = orders;
    Ok(Some(Planned { instructions, offsets, arenas, after, lives, storages, before }))
}

/// The order between users of the same memory.
struct Orders {
    /// For each instruction, the entries that had memory before which it is the first to use anew.
    after: Vec<Vec<usize>>,
    /// For each entry, those that had its memory before.
    before: Vec<Vec<usize>>,
}

impl Orders {
    /// Adds those of one arena.
    fn add(
        &mut self,
        (recorded, instructions, dependencies): (&Recorded, &[Instruction], &[Vec<usize>]),
        offsets: &[Option<usize>],
        (mut own, lower): (Vec<usize>, &[usize]),
    ) {
        let mut first: Vec<usize> = vec![0; recorded.entries.len()];
        for (number, lower) in own.iter().zip(lower) {
            first[*number] = *lower;
        }
        own.sort_by_key(|number| first[*number]);
        // Bytes of the arena, with their last user.
        let mut owners: Vec<(Range<usize>, usize)> = Vec::new();
        let Self { after, before } = self;
        let mut of_arena = vec![false; recorded.entries.len()];
        for number in own {
            of_arena[number] = true;
            let start = offsets[number].unwrap_or_default();
            let range = start..start + recorded.entries[number].bytes;
            let mut rest = Vec::with_capacity(owners.len() + 1);
            for (had, owner) in owners {
                if !overlap(&had, &range) {
                    rest.push((had, owner));
                    continue;
                }
                if !before[number].contains(&owner) {
                    before[number].push(owner);
                }
                let parts = [had.start..range.start.min(had.end), range.end.max(had.start)..had.end];
                rest.extend(parts.into_iter().filter(|part| !part.is_empty()).map(|part| (part, owner)));
            }
            rest.push((range, number));
            owners = rest;
        }
        for (at, instruction) in instructions.iter().enumerate() {
            for place in instruction.places.iter().filter(|place| of_arena[place.entry]) {
                // An op behind another one on the same entry is behind all that this one is behind.
                let is_behind =
                    |other: &usize| instructions[*other].places.iter().any(|other| other.entry == place.entry);
                if !before[place.entry].is_empty() && !dependencies[at].iter().any(is_behind) {
                    for owner in &before[place.entry] {
                        if !after[at].contains(owner) {
                            after[at].push(*owner);
                        }
                    }
                }
            }
        }
    }
}
