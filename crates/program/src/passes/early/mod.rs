//! Lets instructions that free memory run as soon as they may: an update moves up to its gradient.
//!
//! An instruction moves up if the temporaries whose last reader it is are at least as large as those that it makes. So a
//! gradient goes with its update, before that of the layer below is computed, and no more is in use at any time than in
//! recorded order.

mod planned;

pub(super) use planned::planned;

use crate::recorded::{Instruction, Recorded, depend};
use std::collections::BTreeSet;

/// Who still has to look at a temporary.
#[derive(Clone, Default)]
struct Uses {
    left: usize,
    begun: bool,
}

struct Early<'a> {
    recorded: &'a Recorded,
    instructions: &'a [Instruction],
    /// Those that come after each one.
    later: Vec<Vec<usize>>,
    /// How many of those before each one have not run.
    waits: Vec<usize>,
    /// By entries.
    users: Vec<Vec<usize>>,
    uses: Vec<Uses>,
    done: Vec<bool>,
    ran: Vec<usize>,
}

impl<'a> Early<'a> {
    fn new(recorded: &'a Recorded, instructions: &'a [Instruction]) -> Self {
        let before = depend(instructions);
        let mut later = vec![Vec::new(); instructions.len()];
        for (at, before) in before.iter().enumerate() {
            for other in before {
                later[*other].push(at);
            }
        }
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); recorded.entries.len()];
        for (at, instruction) in instructions.iter().enumerate() {
            for entry in temporaries(recorded, instruction) {
                users[entry].push(at);
            }
        }
        let left = users.iter().map(|users| Uses { left: users.len(), begun: false }).collect();
        Self {
            recorded,
            instructions,
            later,
            waits: before.iter().map(Vec::len).collect(),
            users,
            uses: left,
            done: vec![false; instructions.len()],
            ran: Vec::with_capacity(instructions.len()),
        }
    }

    /// Whether an instruction that may run frees as much as it takes.
    fn pays(&self, at: usize) -> bool {
        let instruction = &self.instructions[at];
        if self.done[at] || self.waits[at] > 0 || instruction.has_effects() || instruction.priority != 0 {
            return false;
        }
        let (mut freed, mut taken) = (0, 0);
        for entry in temporaries(self.recorded, instruction) {
            let (uses, bytes) = (&self.uses[entry], self.recorded.entries[entry].bytes);
            match (uses.begun, uses.left) {
                (true, 1) => freed += bytes,
                (false, 2..) => taken += bytes,
                _ => {}
            }
        }
        freed > 0 && freed >= taken
    }

    fn run(&mut self, at: usize, ready: &mut BTreeSet<usize>) {
        self.done[at] = true;
        self.ran.push(at);
        for &other in &self.later[at] {
            self.waits[other] -= 1;
            if self.waits[other] == 0 {
                ready.insert(other);
            }
        }
        for entry in temporaries(self.recorded, &self.instructions[at]) {
            let uses = &mut self.uses[entry];
            uses.begun = true;
            uses.left -= 1;
            if uses.left == 1 {
                ready.extend(self.users[entry].iter().filter(|user| !self.done[**user]));
            }
        }
    }
}

/// The temporaries of an instruction, each once.
fn temporaries(recorded: &Recorded, instruction: &Instruction) -> BTreeSet<usize> {
    let entries = instruction.places.iter().map(|place| place.entry);
    entries.filter(|entry| recorded.entries[*entry].is_temporary() && !recorded.entries[*entry].is_shown).collect()
}

/// The instructions in this order.
pub(super) fn moved_up(recorded: &Recorded, instructions: &[Instruction]) -> Vec<Instruction> {
    let mut order = Early::new(recorded, instructions);
    let mut ready = BTreeSet::new();
    for at in 0..instructions.len() {
        if order.done[at] {
            continue;
        }
        order.run(at, &mut ready);
        while let Some(next) = ready.pop_first() {
            if order.pays(next) {
                order.run(next, &mut ready);
            }
        }
    }
    order.ran.iter().map(|at| instructions[*at].clone()).collect()
}
