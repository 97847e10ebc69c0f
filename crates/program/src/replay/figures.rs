//! How much memory a program takes, and would take without one.

use super::lives::lives;
use crate::memory::{Life, Storages};
use crate::recorded::{Instruction, Recorded, Source};

/// Bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Of the arena.
    pub arena: usize,
    /// Of all that the recorded ops make.
    pub eager: usize,
    /// The most of that which is alive at one moment in recorded order: results until the end.
    pub eager_peak: usize,
    /// The most of the arena that is alive at one moment, in the program's own order.
    pub peak_live: usize,
}

/// The most bytes alive at one moment: each life is that of so many, from one instruction to another.
fn peak(lives: impl Iterator<Item = (usize, usize, usize)>, instructions: usize) -> usize {
    let (mut begin, mut end) = (vec![0; instructions + 1], vec![0; instructions + 1]);
    for (first, last, bytes) in lives {
        begin[first] += bytes;
        end[last.min(instructions)] += bytes;
    }
    let (mut alive, mut most) = (0_usize, 0);
    for (begin, end) in begin.into_iter().zip(end) {
        alive += begin;
        most = most.max(alive);
        alive -= end;
    }
    most
}

impl Figures {
    /// The figures of a program with these entries in its arena.
    pub(super) fn new(
        recorded: &Recorded,
        pushed: &[Instruction],
        (arena, offsets, storages): (usize, &[Option<usize>], &Storages),
    ) -> Self {
        let (in_order, count) = (lives(recorded, &recorded.instructions), recorded.instructions.len());
        let in_program = lives(recorded, pushed);
        let made = |(number, entry): (usize, &crate::recorded::Entry)| {
            let (first, last) = in_order[number]?;
            let fresh = matches!(entry.source, Source::Fresh | Source::Constant { copied: true, .. });
            fresh.then_some((first, if entry.is_result { count } else { last }, entry.bytes))
        };
        let made: Vec<_> = recorded.entries.iter().enumerate().filter_map(made).collect();
        let within = |number: usize| offsets[number].and(in_program[number]);
        let life = |number: usize| {
            let (first, last) = within(number)?;
            Some((number, Life { first, last, bytes: recorded.entries[number].bytes }))
        };
        let own = storages.lives((0..offsets.len()).filter_map(life));
        let own = own.into_iter().map(|(_, life)| (life.first, life.last, life.bytes));
        Self {
            arena,
            eager: made.iter().map(|(.., bytes)| bytes).sum(),
            eager_peak: peak(made.into_iter(), count),
            peak_live: peak(own, pushed.len()),
        }
    }
}
