//! Which temporaries lie in one place, one after the other.
//!
//! What an element-wise instruction makes lies where a temporary lies that it is the last to look at: then its place is not
//! taken twice while the instruction runs.

use super::in_place::is_in_place;
use super::offsets::Life;
use crate::recorded::{Instruction, Recorded};
use std::collections::HashMap;
use std::ops::Range;
use weft_array::Access;

/// What has places: each is of one entry, or of several, which die as the next one is made.
pub(crate) struct Storages {
    /// By entry the first one whose place it has.
    of: Vec<usize>,
}

/// What is known of an entry when some of the instructions are done.
#[derive(Clone, Copy, Default)]
struct Uses {
    /// The first and the last of them that use it, of all.
    first: usize,
    last: usize,
    /// When those are done that have used it so far.
    until: usize,
    /// Whether another one lies in its place.
    gone: bool,
}

impl Storages {
    /// Those of instructions in this order, each at a moment, where entries of which `is_own` says so are temporaries. These
    /// pairs lie apart. Who else looks at what is overwritten is done by the moment at which that begins.
    pub(crate) fn new(
        recorded: &Recorded,
        instructions: &[Instruction],
        moments: &[Range<usize>],
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
        // The host's, which nobody has written to before the call.
        let is_fresh = |entry: usize| {
            is_own(entry) && recorded.entries[entry].is_fresh() && recorded.entries[entry].home.is_none()
        };
        let mut of: Vec<usize> = (0..recorded.entries.len()).collect();
        for (at, instruction) in instructions.iter().enumerate() {
            let outputs = instruction.places.iter().filter(|place| place.access == Access::Overwrite);
            for into in outputs.map(|place| place.entry) {
                let begins = uses[into].is_some_and(|uses| uses.first == at) && of[into] == into && is_fresh(into);
                if !begins || instruction.has_effects() {
                    continue;
                }
                let inputs = instruction.places.iter().filter(|place| place.access == Access::Read);
                let dies = |entry: &usize| {
                    let over = |uses: Uses| uses.first < at && uses.last == at && uses.until <= moments[at].start;
                    let may = |other: &usize| of[*other] != of[*entry];
                    uses[*entry].is_some_and(|uses| over(uses) && !uses.gone)
                        && is_fresh(*entry)
                        && recorded.entries[*entry].bytes == recorded.entries[into].bytes
                        && stays.get(&into).is_none_or(|others| others.iter().all(may))
                        && is_in_place(instruction, *entry, into)
                };
                if let Some(entry) = inputs.map(|place| place.entry).find(dies) {
                    of[into] = of[entry];
                    uses[entry] = uses[entry].map(|uses| Uses { gone: true, ..uses });
                }
            }
            for place in &instruction.places {
                if let Some(uses) = &mut uses[place.entry] {
                    uses.until = uses.until.max(moments[at].end);
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
