//! Which temporaries lie in one place, one after the other.
//!
//! An element-wise instruction writes over a temporary at its last read: so there are not two places while it runs. The
//! other readers of the temporary come before it.

use super::in_place::is_in_place;
use super::offsets::Life;
use crate::recorded::{Instruction, Recorded};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;
use weft_array::Access;

/// The storages: each is one entry's, or the place of several, which die as the next one is made.
pub(crate) struct Storages {
    /// By entry, the first one in its place.
    of: Vec<usize>,
}

/// How it is known that one instruction comes before another one.
#[derive(Clone, Copy)]
pub(crate) enum Before<'a> {
    /// It is done by the moment at which that begins.
    InTime(&'a [Range<usize>]),
    /// That waits for it anyway: these are those that each waits for.
    Anyway(&'a [Vec<usize>]),
}

/// Instructions that are looked at between two, at most.
const NEAR: usize = 64;

impl Before<'_> {
    fn is(self, earlier: usize, later: usize) -> bool {
        match self {
            Self::InTime(moments) => moments[earlier].end <= moments[later].start,
            Self::Anyway(dependencies) => {
                let mut found = vec![later];
                let mut next = 0;
                while next < found.len() && next < NEAR {
                    let waits = &dependencies[found[next]];
                    if waits.contains(&earlier) {
                        return true;
                    }
                    let between = waits.iter().filter(|other| **other > earlier);
                    let new: SmallVec<[usize; 4]> = between.filter(|other| !found.contains(other)).copied().collect();
                    found.extend(new);
                    next += 1;
                }
                false
            }
        }
    }
}

/// An entry's state after some of the instructions.
#[derive(Clone, Default)]
struct Uses {
    /// The first and the last of them that use it, of all.
    first: usize,
    last: usize,
    /// Those that have used it so far.
    users: SmallVec<[usize; 2]>,
    /// Whether another one lies in its place.
    gone: bool,
}

impl Storages {
    /// Those of instructions in this order, where `is_own` tells the temporaries among the entries. These pairs lie
    /// apart.
    pub(crate) fn new(
        recorded: &Recorded,
        instructions: &[Instruction],
        before: Before<'_>,
        is_own: impl Fn(usize) -> bool,
        apart: &[(usize, usize)],
    ) -> Self {
        let mut uses: Vec<Option<Uses>> = vec![None; recorded.entries.len()];
        for (at, instruction) in instructions.iter().enumerate() {
            for place in &instruction.places {
                uses[place.entry].get_or_insert(Uses { first: at, ..Uses::default() }).last = at;
            }
        }
        let mut stays: HashMap<usize, Vec<usize>> = HashMap::new();
        for (one, other) in apart {
            stays.entry(*one).or_default().push(*other);
            stays.entry(*other).or_default().push(*one);
        }
        // It was not written before the call.
        let is_fresh = |entry: usize| is_own(entry) && recorded.entries[entry].is_fresh();
        let same_home = |one: usize, other: usize| recorded.entries[one].device() == recorded.entries[other].device();
        let mut of: Vec<usize> = (0..recorded.entries.len()).collect();
        for (at, instruction) in instructions.iter().enumerate() {
            let outputs = instruction.places.iter().filter(|place| place.access == Access::Overwrite);
            for into in outputs.map(|place| place.entry) {
                let begins =
                    uses[into].as_ref().is_some_and(|uses| uses.first == at) && of[into] == into && is_fresh(into);
                if !begins || instruction.has_effects() {
                    continue;
                }
                let inputs = instruction.places.iter().filter(|place| place.access == Access::Read);
                let dies = |entry: &usize| {
                    let over = |uses: &Uses| !uses.gone && uses.first < at && uses.last == at;
                    let alone = |uses: &Uses| uses.users.iter().all(|user| before.is(*user, at));
                    let may = |other: &usize| of[*other] != of[*entry];
                    uses[*entry].as_ref().is_some_and(|uses| over(uses) && alone(uses))
                        && is_fresh(*entry)
                        && same_home(*entry, into)
                        && recorded.entries[*entry].bytes == recorded.entries[into].bytes
                        && stays.get(&into).is_none_or(|others| others.iter().all(may))
                        && is_in_place(instruction, *entry, into)
                };
                if let Some(entry) = inputs.map(|place| place.entry).find(dies) {
                    of[into] = of[entry];
                    if let Some(uses) = &mut uses[entry] {
                        uses.gone = true;
                    }
                }
            }
            for place in &instruction.places {
                if let Some(uses) = uses[place.entry].as_mut().filter(|uses| uses.users.last() != Some(&at)) {
                    uses.users.push(at);
                }
            }
        }
        Self { of }
    }

    /// The first entry that lies in the place of this one, which may be itself.
    pub(crate) fn of(&self, entry: usize) -> usize {
        self.of[entry]
    }

    /// The lives of places, by their first entries.
    pub(crate) fn lives(&self, entries: impl Iterator<Item = (usize, Life)>) -> Vec<(usize, Life)> {
        let mut number: HashMap<usize, usize> = HashMap::new();
        let mut found: Vec<(usize, Life)> = Vec::new();
        for (entry, life) in entries {
            let at = *number.entry(self.of[entry]).or_insert(found.len());
            if at == found.len() {
                found.push((self.of[entry], life));
            }
            let known = &mut found[at].1;
            (known.first, known.last) = (known.first.min(life.first), known.last.max(life.last));
        }
        found
    }
}
