//! What a program must do: each op at its push, on one thread, without an engine.

use super::program::{End, LOG, Nested, Program, SUM, Step};
use std::collections::BTreeSet;
use weft_engine::AccessKind;

/// One variable at the end. Comparing two says everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) value: u64,
    pub(crate) version: u64,
    /// The op that spoiled the last version.
    pub(crate) failure: Option<usize>,
    /// Whether an op that ran has changed what the last good version left.
    pub(crate) begun: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) variables: Vec<Outcome>,
    /// What each op saw; nothing if it did not run.
    pub(crate) saw: Vec<Option<u64>>,
    /// What each step's wait answered: the ops whose failures were raised. By thread, then by step.
    pub(crate) waits: Vec<Vec<BTreeSet<usize>>>,
    /// Failures nobody was told of.
    unreported: BTreeSet<usize>,
}

/// Mixes a value into another, so that the order of all mixed in shows.
pub(crate) fn mix(state: u64, value: u64) -> u64 {
    let mixed = (state ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

/// What an op sees, from the values of the variables it reads or mutates.
pub(crate) fn seen(id: usize, values: impl Iterator<Item = u64>) -> u64 {
    values.fold(mix(1, id as u64), mix) | 1
}

/// The value that an op makes.
pub(crate) fn made(kind: AccessKind, old: u64, saw: u64) -> u64 {
    if kind == AccessKind::Overwrite { mix(2, saw) } else { mix(old, saw) }
}

/// What an op adds to the sum.
pub(crate) fn term(id: usize) -> u64 {
    mix(3, id as u64)
}

impl Model {
    pub(crate) fn of(program: &Program) -> Self {
        let mut model = Self {
            variables: vec![Outcome::default(); program.slots],
            saw: vec![None; program.ops.len()],
            ..Self::default()
        };
        for steps in &program.threads {
            let waits = steps.iter().map(|step| model.step(program, step)).collect();
            model.waits.push(waits);
        }
        model
    }

    fn step(&mut self, program: &Program, step: &Step) -> BTreeSet<usize> {
        match *step {
            Step::Push(id) | Step::Delete(_, id, _) => self.run(program, id),
            Step::WaitForVar(slot) | Step::WaitToWrite(slot) => return self.report(slot),
            Step::WaitForAll => return std::mem::take(&mut self.unreported),
            Step::Misuse(_) => {}
        }
        BTreeSet::new()
    }

    fn report(&mut self, slot: usize) -> BTreeSet<usize> {
        let failure = self.variables[slot].failure;
        self.unreported.retain(|&id| Some(id) != failure);
        failure.into_iter().collect()
    }

    fn run(&mut self, program: &Program, id: usize) {
        let op = &program.ops[id];
        let sees = |kind: AccessKind| kind != AccessKind::Overwrite;
        let mut inherited = op.merged.iter().filter(|(_, kind)| sees(*kind));
        let inherited = inherited.find_map(|(slot, _)| self.variables[*slot].failure);
        if let Some(root) = inherited.filter(|_| !op.always_run) {
            for (slot, _) in op.merged.iter().filter(|(_, kind)| kind.makes_version()) {
                self.variables[*slot].version += 1;
                self.variables[*slot].failure = Some(root);
            }
            return;
        }
        let own = op.merged.iter().filter(|(slot, kind)| sees(*kind) && ![SUM, LOG].contains(slot));
        let saw = seen(id, own.map(|(slot, _)| self.variables[*slot].value));
        self.saw[id] = Some(saw);
        for &(slot, kind) in op.merged.iter().filter(|(_, kind)| kind.makes_version()) {
            let variable = &mut self.variables[slot];
            variable.version += 1;
            variable.value = match slot {
                SUM => variable.value.wrapping_add(term(id)),
                LOG => 0,
                _ => made(kind, variable.value, saw),
            };
            if op.end != End::Done {
                (variable.failure, variable.begun) = (Some(id), true);
            } else if kind == AccessKind::Overwrite {
                (variable.failure, variable.begun) = (None, false);
            } else {
                variable.begun = variable.failure.is_some();
            }
        }
        if op.end != End::Done {
            self.unreported.insert(id);
        }
        for nested in &op.nested {
            match nested {
                Nested::Same(inner) => self.run(program, *inner),
                Nested::Fresh { slot, ops, wait } => {
                    ops.iter().for_each(|&inner| self.run(program, inner));
                    if *wait {
                        self.report(*slot);
                    }
                }
            }
        }
    }
}
