//! Calls of programs that are pushed, instruction by instruction: the engine runs side by side what may run so, and
//! what fails fails as it does without a program.
//!
//! Temporaries lie in one arena for each call. What is the first to use memory after another temporary comes behind all
//! that was pushed on that one. A call begins with an op of its own, which takes the arena's memory, behind the ops of the
//! call before the last: so two calls are under way at most.

use super::check::Moved;
use super::figures::Figures;
use super::lives::lives;
use super::program::{Buffers, Options, shifted};
use crate::ProgramError;
use crate::memory::{Gates, Lease, Life, place};
use crate::recorded::{Instruction, Recorded, Source, depend, overlap, whole};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use weft_array::{
    Access, Arena, Array, ArrayError, Buffer, Call, Operand, Within, copy_loop, push_elementwise, push_step,
};
use weft_engine::{AccessKind, Accesses, Cause, OpContext, PushOptions, Variable};

/// Where temporaries lie, and what may lie there only after what.
pub(super) struct Pushed {
    /// By entry, of those in the arena.
    pub(super) offsets: Vec<Option<usize>>,
    /// Bytes of the arena.
    bytes: usize,
    /// For each instruction, entries whose memory it is the first to use after them.
    after: Vec<Vec<usize>>,
    /// Constants that each call has a copy of.
    copied: Vec<usize>,
    /// What is pushed.
    instructions: Vec<Instruction>,
    gates: Gates,
    pub(super) figures: Figures,
}

impl Pushed {
    pub(super) fn new(recorded: &Recorded, instructions: Vec<Instruction>) -> Result<Self, ProgramError> {
        let lives = lives(recorded, &instructions);
        let in_arena = |number: &usize| {
            let entry = &recorded.entries[*number];
            entry.is_temporary() && !entry.is_shown && entry.bytes > 0 && lives[*number].is_some()
        };
        let own: Vec<usize> = (0..recorded.entries.len()).filter(in_arena).collect();
        let life = |number: &usize| lives[*number].unwrap_or_default();
        let lower: Vec<usize> = own.iter().map(|number| life(number).0).collect();
        let in_use = |number: &usize| {
            let (first, last) = life(number);
            Life { first, last, bytes: recorded.entries[*number].bytes }
        };
        let (places, bytes) = place(&own.iter().map(in_use).collect::<Vec<_>>())?;
        let mut offsets = vec![None; recorded.entries.len()];
        for (number, offset) in own.iter().zip(places) {
            offsets[*number] = Some(offset);
        }
        let after = after((recorded, &instructions), &offsets, own, &lower);
        let is_copied = |number: &usize| {
            let entry = &recorded.entries[*number];
            let is_used = entry.is_result || lives[*number].is_some();
            is_used && matches!(entry.source, Source::Constant { copied: true, .. })
        };
        let copied = (0..recorded.entries.len()).filter(is_copied).collect();
        let figures = Figures::new(recorded, &instructions, bytes, &offsets);
        Ok(Self { offsets, bytes, after, copied, instructions, gates: Gates::default(), figures })
    }

    /// Pushes all instructions.
    pub(super) fn run(
        &self,
        recorded: &Recorded,
        arguments: &[&Array],
        moved: &Moved,
        sequential: bool,
        options: &Options<'_>,
    ) -> Result<Buffers, ProgramError> {
        let engine = &recorded.engine;
        if engine.is_closed() && !engine.is_inside_op() {
            return Err(ArrayError::from(weft_engine::EngineError::Closed { engine: engine.name().to_owned() }).into());
        }
        let lease = Arc::new(Lease::new(self.bytes));
        let buffers = self.buffers(recorded, arguments, &lease);
        let gate = if self.bytes > 0 { Some(self.begin(engine, lease)?) } else { None };
        copy_constants(recorded, &self.copied, &buffers)?;
        let order = sequential.then(|| engine.new_variable(None));
        for (at, instruction) in self.instructions.iter().enumerate() {
            let mut variables: SmallVec<[(&Variable, AccessKind); 4]> =
                instruction.variables.iter().map(|(variable, kind)| (variable, *kind)).collect();
            if let Some(gate) = &gate
                && instruction.places.iter().any(|place| self.offsets[place.entry].is_some())
            {
                variables.push((gate, AccessKind::Read));
            }
            variables.extend(order.as_ref().map(|order| (order, AccessKind::Exclusive)));
            self.push(recorded, (at, instruction), &buffers, moved, &variables, options)?;
        }
        Ok(buffers)
    }

    /// The memory of all entries.
    fn buffers(&self, recorded: &Recorded, arguments: &[&Array], lease: &Arc<Lease>) -> Buffers {
        let buffer = |(number, entry): (usize, &crate::recorded::Entry)| {
            Some(match &entry.source {
                Source::Argument(first) => Arc::clone(arguments[*first].buffer()),
                Source::State(array) | Source::Constant { array, copied: false } => Arc::clone(array.buffer()),
                _ => match self.offsets[number] {
                    Some(offset) => {
                        let arena: Arc<dyn Arena> = Arc::clone(lease) as _;
                        Buffer::within(&recorded.engine, entry.bytes, Within::new(arena, offset))
                    }
                    None => Buffer::new(&recorded.engine, entry.bytes),
                },
            })
        };
        recorded.entries.iter().enumerate().map(buffer).collect()
    }

    /// Pushes the op that takes the arena's memory. Answers the variable that tells of it.
    fn begin(&self, engine: &weft_engine::Engine, lease: Arc<Lease>) -> Result<Variable, ProgramError> {
        let (own, before) = self.gates.next(engine);
        let mut accesses = Accesses::new(engine);
        accesses.add(&own, AccessKind::Overwrite).map_err(ArrayError::from)?;
        if let Some(before) = &before {
            accesses.add(before, AccessKind::Exclusive).map_err(ArrayError::from)?;
        }
        let name = engine.is_traced().then_some("arena");
        let take = move |_: &mut OpContext<'_>| lease.start().map(drop).map_err(|error| Cause::Error(Box::new(error)));
        let options = PushOptions { name, ..PushOptions::default() };
        engine.push_unlimited(take, &mut accesses, &options).map_err(ArrayError::from)?;
        drop(accesses);
        Ok(own)
    }

    fn push(
        &self,
        recorded: &Recorded,
        (at, instruction): (usize, &Instruction),
        buffers: &Buffers,
        moved: &Moved,
        variables: &[(&Variable, AccessKind)],
        options: &Options<'_>,
    ) -> Result<(), ProgramError> {
        let mut arrays: SmallVec<[(Array, Access); 4]> = SmallVec::new();
        for place in &instruction.places {
            let layout = shifted(&place.layout, moved[place.entry]);
            arrays.push((Array::on(buffer_of(buffers, place.entry), layout, place.dtype)?, place.access));
        }
        let mut after: SmallVec<[Array; 2]> = SmallVec::new();
        for entry in &self.after[at] {
            after.push(whole(&buffer_of(buffers, *entry))?);
        }
        let engine = &recorded.engine;
        let mut given = PushOptions {
            priority: instruction.priority.saturating_add(options.priority),
            device: instruction.device,
            always_run: instruction.always_run,
            ..PushOptions::default()
        };
        let traced = engine.is_traced();
        if traced || !instruction.step.is_native() {
            given.name = Some(&instruction.name);
        }
        if traced && let Some(note) = options.note {
            given.note = note(&instruction.name, instruction.place);
        }
        if arrays.is_empty() {
            return push_on_variables(engine, instruction, variables, &given);
        }
        let arrays: SmallVec<[(&Array, Access); 4]> = arrays.iter().map(|(array, access)| (array, *access)).collect();
        let after: SmallVec<[&Array; 2]> = after.iter().collect();
        let at_arrays = instruction.at_arrays;
        let call =
            Call { engine, arrays: &arrays, variables, after: &after, options: given, at_arrays, anywhere: false };
        // SAFETY: arguments have the layouts that were recorded but for their offsets, which all arrays of an entry share;
        // entries that were distinct are.
        Ok(unsafe { push_step(&instruction.step, call) }?)
    }
}

fn buffer_of(buffers: &Buffers, entry: usize) -> Arc<Buffer> {
    match &buffers[entry] {
        Some(buffer) => Arc::clone(buffer),
        None => unreachable!("a pushed call has a buffer for each entry"),
    }
}

/// Pushes an opaque step that touches no array.
fn push_on_variables(
    engine: &weft_engine::Engine,
    instruction: &Instruction,
    variables: &[(&Variable, AccessKind)],
    options: &PushOptions<'_>,
) -> Result<(), ProgramError> {
    let call = Call { variables, ..Call::on(engine, &[], *options) };
    // SAFETY: it has no arrays.
    Ok(unsafe { push_step(&instruction.step, call) }?)
}

/// Pushes the copies of constants that the program changes or hands out.
fn copy_constants(recorded: &Recorded, copied: &[usize], buffers: &Buffers) -> Result<(), ProgramError> {
    for number in copied {
        if let Source::Constant { array, .. } = &recorded.entries[*number].source {
            let copy = whole(&buffer_of(buffers, *number))?;
            push_elementwise(copy_loop(copy.dtype()), &[&copy], &[Operand::Array(array)], PushOptions::default())?;
        }
    }
    Ok(())
}

/// For each instruction, the entries that had memory before which it is the first to use anew.
fn after(
    (recorded, instructions): (&Recorded, &[Instruction]),
    offsets: &[Option<usize>],
    mut own: Vec<usize>,
    lower: &[usize],
) -> Vec<Vec<usize>> {
    let mut first: Vec<usize> = vec![0; recorded.entries.len()];
    for (number, lower) in own.iter().zip(lower) {
        first[*number] = *lower;
    }
    own.sort_by_key(|number| first[*number]);
    let dependencies = depend(instructions);
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
    let mut after = vec![Vec::new(); instructions.len()];
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
    after
}
