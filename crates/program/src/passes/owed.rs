//! What a loop's operands owe to what was there before: with what of it they fail.
//!
//! | an operand is | it fails with |
//! |---|---|
//! | a temporary that one instruction makes as a whole | that instruction, unless it is a loop, and all with which its operands fail |
//! | a constant | nothing |
//! | anything else | these bytes of this version |

use crate::recorded::{EntryAccess, Instruction, Recorded, Source};
use std::collections::HashMap;
use std::sync::Arc;
use weft_array::{Access, Step};

/// Instructions above which temporaries count as themselves: what each of them owes would take too long to list.
const MANY: usize = 4096;

/// What may fail, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Owed(Vec<u64>);

impl Owed {
    fn one(number: usize) -> Self {
        let mut words = vec![0; number / 64 + 1];
        words[number / 64] = 1 << (number % 64);
        Self(words)
    }

    pub(super) fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }
}

impl PartialEq for Owed {
    fn eq(&self, other: &Self) -> bool {
        let (short, long) = if self.0.len() < other.0.len() { (self, other) } else { (other, self) };
        short.0[..] == long.0[..short.0.len()] && long.0[short.0.len()..].iter().all(|word| *word == 0)
    }
}

/// What each operand of each instruction owes, where it is looked at.
pub(super) fn owed(recorded: &Recorded, instructions: &[Instruction]) -> Vec<Vec<Arc<Owed>>> {
    let mut writers = vec![0_usize; recorded.entries.len()];
    for place in instructions.iter().flat_map(|instruction| &instruction.places) {
        writers[place.entry] += usize::from(place.access != Access::Read);
    }
    let is_made_whole = |place: &EntryAccess| {
        let entry = &recorded.entries[place.entry];
        let whole = place.access == Access::Overwrite && place.is_dense() && place.range == (0..entry.bytes);
        whole && entry.is_temporary() && !entry.is_shown && writers[place.entry] == 1
    };
    let nothing = Arc::new(Owed::default());
    // Numbers: of instructions, and then of bytes in some version.
    let mut numbers: HashMap<(usize, usize, usize, usize), Arc<Owed>> = HashMap::new();
    let mut versions = vec![0_usize; recorded.entries.len()];
    let mut made: HashMap<usize, Arc<Owed>> = HashMap::new();
    let mut all = Vec::with_capacity(instructions.len());
    for (at, instruction) in instructions.iter().enumerate() {
        let mut of_places = Vec::with_capacity(instruction.places.len());
        for place in &instruction.places {
            let own = match (made.get(&place.entry), &recorded.entries[place.entry].source) {
                _ if place.access == Access::Overwrite => Arc::clone(&nothing),
                (Some(of), _) => Arc::clone(of),
                (None, Source::Constant { .. }) if writers[place.entry] == 0 => Arc::clone(&nothing),
                (None, _) => {
                    let key = (place.entry, place.range.start, place.range.end, versions[place.entry]);
                    let next = instructions.len() + numbers.len();
                    Arc::clone(numbers.entry(key).or_insert_with(|| Arc::new(Owed::one(next))))
                }
            };
            of_places.push(own);
        }
        let makes = instruction.places.iter().filter(|place| place.access != Access::Read);
        for place in makes {
            versions[place.entry] += 1;
            if instructions.len() <= MANY && is_made_whole(place) {
                let mut of = if matches!(instruction.step, Step::Strided(_)) { Owed::default() } else { Owed::one(at) };
                of_places.iter().for_each(|more| of.add(more));
                made.insert(place.entry, Arc::new(of));
            }
        }
        all.push(of_places);
    }
    all
}
