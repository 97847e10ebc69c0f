//! In which order instructions are pushed, and where their temporaries lie.
//!
//! Memory that two temporaries share orders them. So several plans are tried, and the first one is taken that makes the
//! longest way through the program no longer than `memory=` allows:
//!
//! | plan | order | temporaries share memory |
//! |---|---|---|
//! | tight | as recorded | if one is let go before the other begins |
//! | lagging | as recorded | the same, but for those that the longest way waited for: so many instructions later |
//! | wide | by level: what waits for nothing first | if one is let go on a level before that on which the other begins |
//! | apart | as recorded | never |

use super::lives::lives;
use crate::ProgramError;
use crate::memory::{Life, place};
use crate::recorded::{Instruction, Memory, Recorded, depend, overlap};
use std::ops::Range;
use weft_array::Home;

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
    /// For each instruction, entries whose memory it is the first to use after them.
    pub(super) after: Vec<Vec<usize>>,
    /// First and last use of entries.
    pub(super) lives: Vec<Option<(usize, usize)>>,
}

/// Bytes that an instruction costs besides those that it touches.
const CALL: usize = 1024;
/// How often a plan is made again for the sake of the longest way.
const ROUNDS: usize = 8;

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
    let moments: Vec<usize> = (0..instructions.len()).collect();
    let mut lags = vec![0; recorded.entries.len()];
    let mut tight = plan(recorded, instructions, &dependencies, &moments, &lags)?;
    let fits = |plan: &Planned, dependencies: &[Vec<usize>]| {
        allowed.is_none_or(|allowed| way(&plan.instructions, dependencies, &plan.after) <= allowed)
    };
    if fits(&tight, &dependencies) {
        return Ok(tight);
    }
    for _ in 0..ROUNDS {
        let waited = waited_for(&tight.instructions, &dependencies, &tight.after);
        if waited.is_empty() {
            break;
        }
        for entry in waited {
            lags[entry] = if lags[entry] == 0 { 2 } else { 2 * lags[entry] };
        }
        let lagging = plan(recorded, tight.instructions, &dependencies, &moments, &lags)?;
        if fits(&lagging, &dependencies) {
            return Ok(lagging);
        }
        tight = lagging;
    }
    let none = vec![0; recorded.entries.len()];
    let levels = levels(&dependencies);
    let mut order: Vec<usize> = (0..levels.len()).collect();
    order.sort_by_key(|at| levels[*at]);
    let by_level: Vec<Instruction> = order.iter().map(|at| tight.instructions[*at].clone()).collect();
    let (moments, sorted) = (order.iter().map(|at| levels[*at]).collect::<Vec<_>>(), depend(&by_level));
    let wide = plan(recorded, by_level, &sorted, &moments, &none)?;
    if fits(&wide, &sorted) {
        return Ok(wide);
    }
    let moments = vec![0; tight.instructions.len()];
    plan(recorded, tight.instructions, &dependencies, &moments, &none)
}

/// How many instructions each one comes after, one behind the other.
fn levels(dependencies: &[Vec<usize>]) -> Vec<usize> {
    let mut levels = Vec::with_capacity(dependencies.len());
    for before in dependencies {
        let level = before.iter().map(|at| levels[*at] + 1).max().unwrap_or(0);
        levels.push(level);
    }
    levels
}

/// When instructions end if each begins as soon as it may, in bytes that they touch.
struct Times {
    ends: Vec<usize>,
    /// The entry that an instruction waits for longest, because it takes its memory: if it waits longer for none else.
    owners: Vec<Option<usize>>,
    /// What it waits for longest.
    before: Vec<Option<usize>>,
}

impl Times {
    fn of(instructions: &[Instruction], dependencies: &[Vec<usize>], after: &[Vec<usize>]) -> Self {
        let count = instructions.len();
        let mut times = Self { ends: Vec::with_capacity(count), owners: vec![None; count], before: vec![None; count] };
        // When the last of those is done that have used an entry so far, and which that is.
        let mut used: Vec<(usize, usize)> = Vec::new();
        for (at, instruction) in instructions.iter().enumerate() {
            let mut start = 0;
            for &other in &dependencies[at] {
                if times.ends[other] > start {
                    (start, times.before[at]) = (times.ends[other], Some(other));
                }
            }
            for &entry in after.get(at).into_iter().flatten() {
                if let Some(&(end, other)) = used.get(entry)
                    && end > start
                {
                    (start, times.before[at], times.owners[at]) = (end, Some(other), Some(entry));
                }
            }
            let touched: usize = instruction.places.iter().map(|place| place.range.len()).sum();
            let end = start + touched + CALL;
            for place in &instruction.places {
                if used.len() <= place.entry {
                    used.resize(place.entry + 1, (0, 0));
                }
                used[place.entry] = used[place.entry].max((end, at));
            }
            times.ends.push(end);
        }
        times
    }
}

/// The longest way through the instructions, in bytes that they touch.
fn way(instructions: &[Instruction], dependencies: &[Vec<usize>], after: &[Vec<usize>]) -> usize {
    Times::of(instructions, dependencies, after).ends.into_iter().max().unwrap_or(0)
}

/// The entries whose memory the longest way waits for.
fn waited_for(instructions: &[Instruction], dependencies: &[Vec<usize>], after: &[Vec<usize>]) -> Vec<usize> {
    let times = Times::of(instructions, dependencies, after);
    let mut next = (0..instructions.len()).max_by_key(|at| times.ends[*at]);
    let mut found = Vec::new();
    while let Some(at) = next {
        found.extend(times.owners[at]);
        next = times.before[at];
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A plan for instructions in this order, each at a moment: what is in use at the same moment lies apart, and what lags is
/// in use for so many moments more.
fn plan(
    recorded: &Recorded,
    instructions: Vec<Instruction>,
    dependencies: &[Vec<usize>],
    moments: &[usize],
    lags: &[usize],
) -> Result<Planned, ProgramError> {
    let lives = lives(recorded, &instructions);
    let in_arena = |number: &usize| {
        let entry = &recorded.entries[*number];
        entry.is_temporary() && !entry.is_shown && entry.bytes > 0 && lives[*number].is_some()
    };
    let own: Vec<usize> = (0..recorded.entries.len()).filter(in_arena).collect();
    let mut in_use: Vec<Option<Life>> = vec![None; recorded.entries.len()];
    for (at, instruction) in instructions.iter().enumerate() {
        for place in &instruction.places {
            let bytes = recorded.entries[place.entry].bytes;
            let life = in_use[place.entry].get_or_insert(Life { first: moments[at], last: moments[at], bytes });
            (life.first, life.last) = (life.first.min(moments[at]), life.last.max(moments[at]));
        }
    }
    let mut offsets = vec![None; recorded.entries.len()];
    let mut after = vec![Vec::new(); instructions.len()];
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
        let mut intervals = Vec::with_capacity(of_home.len());
        for number in &of_home {
            // Copies of constants are made first of all.
            let first = lives[*number].is_some_and(|(first, _)| first == 0);
            let lagging = |life: Life| Life { last: life.last + lags[*number], ..life };
            let life = in_use[*number].map(lagging);
            intervals.extend(life.map(|life| if first { Life { first: 0, ..life } } else { life }));
        }
        let (places, bytes) = place(&intervals)?;
        for (number, offset) in of_home.iter().zip(places) {
            offsets[*number] = Some(offset);
        }
        let lower: Vec<usize> = intervals.iter().map(|life| life.first).collect();
        note_after((recorded, &instructions, dependencies), &offsets, (of_home, &lower), &mut after);
        match home {
            None => arenas.host = bytes,
            Some(home) => arenas.devices.push((home, bytes)),
        }
    }
    Ok(Planned { instructions, offsets, arenas, after, lives })
}

/// For each instruction, the entries of one arena that had memory before which it is the first to use anew.
fn note_after(
    (recorded, instructions, dependencies): (&Recorded, &[Instruction], &[Vec<usize>]),
    offsets: &[Option<usize>],
    (mut own, lower): (Vec<usize>, &[usize]),
    after: &mut [Vec<usize>],
) {
    let mut first: Vec<usize> = vec![0; recorded.entries.len()];
    for (number, lower) in own.iter().zip(lower) {
        first[*number] = *lower;
    }
    own.sort_by_key(|number| first[*number]);
    // Bytes of the arena, and who had them last.
    let mut owners: Vec<(Range<usize>, usize)> = Vec::new();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); recorded.entries.len()];
    for number in own {
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
        for place in &instruction.places {
            // Who comes behind another op on the same entry is behind what that one is behind.
            let is_behind = |other: &usize| instructions[*other].places.iter().any(|other| other.entry == place.entry);
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
