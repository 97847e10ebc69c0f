//! From when to when entries are in use.

use crate::recorded::{Instruction, Recorded, Source};

/// First and last use of each entry, as numbers of instructions. Copies of constants are made first of all.
pub(super) fn lives(recorded: &Recorded, instructions: &[Instruction]) -> Vec<Option<(usize, usize)>> {
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; recorded.entries.len()];
    for (at, instruction) in instructions.iter().enumerate() {
        for place in &instruction.places {
            lives[place.entry].get_or_insert((at, at)).1 = at;
        }
    }
    for (life, entry) in lives.iter_mut().zip(&recorded.entries) {
        if let (Some(life), Source::Constant { copied: true, .. }) = (life, &entry.source) {
            life.0 = 0;
        }
    }
    lives
}
