//! A part as it runs: its instructions, and where their operands lie.

use super::bind::{Scratch, Spot};
use crate::ProgramError;
use crate::memory::{Life, place};
use crate::passes;
use crate::recorded::{Argument, EntryAccess, Instruction, Recorded, Settings, Source, kept_by};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;
use weft_array::recording::Transcript;
use weft_array::{Access, Array, ArrayError, Operands, Step, granting, run_alone};
use weft_engine::{AccessKind, Cause, Engine, OpContext, Variable};

/// Where an entry's memory comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    /// Bound by its runner.
    Bound,
    /// From around the part: there are spots for its arrays.
    Outside,
    /// This far into the scratch memory.
    Scratch(usize),
    /// New in each turn.
    Fresh,
}

/// A part of a recording, to be run again and again.
#[allow(clippy::struct_excessive_bools)] // each answers a question of its own
pub struct Body {
    engine: Engine,
    name: String,
    instructions: Vec<Instruction>,
    /// For each place of each instruction its spot: of its entry, or of an array from outside.
    spots: Vec<SmallVec<[usize; 4]>>,
    homes: Vec<(Home, usize)>,
    /// Constants that each turn has a copy of.
    copied: Vec<(usize, Array)>,
    /// Arrays from outside, each with its access.
    outside: Vec<(Array, Access)>,
    variables: Vec<(Variable, AccessKind)>,
    inputs: Vec<usize>,
    results: Vec<usize>,
    /// Entries that foreign code sees.
    shown: Vec<bool>,
    scratch: usize,
    /// Whether some steps are told their arrays.
    in_arrays: bool,
    is_hosted: bool,
    is_private: bool,
    may_fail: bool,
}

/// Where all entries and the arrays from outside lie, for some turns.
pub(super) struct Frame {
    pub(super) spots: Vec<Spot>,
    pub(super) scratch: Arc<Scratch>,
}

fn refused(why: &str) -> ProgramError {
    ProgramError::Recording(why.to_owned())
}

impl Body {
    /// Shows `each` the objects of their makers that its steps keep.
    pub(super) fn kept(&self, each: &mut dyn FnMut(&dyn Any)) {
        kept_by(&self.instructions, each);
    }

    /// From a recording with these placeholders and results. Each is fresh: all of its memory, row after row.
    pub fn new(transcript: Transcript, placeholders: &[Array], results: &[Array]) -> Result<Self, ProgramError> {
        let arguments = placeholders.iter().map(|array| Argument { placeholder: array.clone(), array: array.clone() });
        let mut recorded = Recorded::new(transcript, arguments.collect(), results)?;
        let settings = Settings::new(false, "min", None)?;
        passes::simplify(&mut recorded, &settings);
        let instructions = passes::lower(&recorded, &settings);
        let results: Vec<usize> = recorded.results.iter().map(|shown| shown.entry).collect();
        for (at, shown) in recorded.results.iter().enumerate() {
            let entry = &recorded.entries[shown.entry];
            let whole = shown.layout.offset == 0
                && shown.layout.is_contiguous(shown.dtype.size())
                && shown.layout.size() * shown.dtype.size() == entry.bytes;
            if !matches!(entry.source, Source::Fresh) || !whole || results[..at].contains(&shown.entry) {
                return Err(refused("a result of the part is no memory of its own"));
            }
        }
        if let Some(home) = recorded.entries.iter().find_map(|entry| entry.home) {
            let name = home.name();
            return Err(refused(&format!("a part of a recording runs on the host, and it uses memory of {name}")));
        }
        let inputs = recorded.argument_entries.clone();
        for instruction in &instructions {
            let later =
                matches!(&instruction.step, Step::Opaque(step) if step.completes_later() || step.queue().is_some());
            if later || instruction.always_run {
                return Err(refused(
                    "an op of the part completes later, takes its turn in a queue, or runs after failures",
                ));
            }
            if instruction.places.iter().any(|at| at.access != Access::Read && inputs.contains(&at.entry)) {
                return Err(refused("the part changes what it is given"));
            }
        }
        Self::placed(recorded, instructions, inputs, results)
    }

    /// Decides where entries lie.
    fn placed(
        recorded: Recorded,
        instructions: Vec<Instruction>,
        inputs: Vec<usize>,
        results: Vec<usize>,
    ) -> Result<Self, ProgramError> {
        let count = recorded.entries.len();
        let shown: Vec<bool> = recorded.entries.iter().map(|entry| entry.is_shown).collect();
        let mut copied = Vec::new();
        let mut homes = Vec::with_capacity(count);
        for (number, entry) in recorded.entries.iter().enumerate() {
            let home = match &entry.source {
                Source::State(_) | Source::Constant { copied: false, .. } => Home::Outside,
                _ if inputs.contains(&number) || results.contains(&number) => Home::Bound,
                Source::Constant { array, copied: true } => {
                    copied.push((number, array.clone()));
                    Home::Fresh
                }
                _ if entry.is_shown => Home::Fresh,
                _ => Home::Scratch(0),
            };
            homes.push((home, entry.bytes));
        }
        let mut lives: Vec<Option<Life>> = vec![None; count];
        let mut outside: Vec<(Array, Access)> = Vec::new();
        let mut spots = Vec::with_capacity(instructions.len());
        for (at, instruction) in instructions.iter().enumerate() {
            let mut own = SmallVec::new();
            for place in &instruction.places {
                own.push(match homes[place.entry].0 {
                    Home::Outside => count + outside_of(&recorded, place, &mut outside)?,
                    _ => place.entry,
                });
                let bytes = recorded.entries[place.entry].bytes;
                lives[place.entry].get_or_insert(Life { first: at, last: at, bytes }).last = at;
            }
            spots.push(own);
        }
        let is_scratch = |number: &usize| matches!(homes[*number].0, Home::Scratch(_)) && lives[*number].is_some();
        let own: Vec<usize> = (0..count).filter(is_scratch).collect();
        let (offsets, scratch) = place(&own.iter().filter_map(|number| lives[*number]).collect::<Vec<_>>())?;
        for (number, offset) in own.into_iter().zip(offsets) {
            homes[number].0 = Home::Scratch(offset);
        }
        let mut variables: Vec<(Variable, AccessKind)> = Vec::new();
        for (variable, kind) in instructions.iter().flat_map(|instruction| &instruction.variables) {
            match variables.iter_mut().find(|(known, _)| known.number() == variable.number()) {
                None => variables.push((variable.clone(), *kind)),
                Some((_, AccessKind::Exclusive)) => {}
                Some((_, known)) if *known == *kind => {}
                Some((_, known)) => *known = AccessKind::Exclusive,
            }
        }
        let opaque = || {
            instructions.iter().filter_map(|instruction| match &instruction.step {
                Step::Opaque(step) => Some(step),
                _ => None,
            })
        };
        let (in_arrays, is_hosted) = (opaque().next().is_some(), opaque().any(|step| step.is_hosted()));
        let is_private = opaque().all(|step| step.is_private());
        let may_fail = instructions.iter().any(|instruction| instruction.step.may_fail());
        let (engine, name) = (recorded.engine.clone(), recorded.name);
        Ok(Self {
            engine,
            name,
            instructions,
            spots,
            homes,
            copied,
            outside,
            variables,
            inputs,
            results,
            shown,
            scratch,
            in_arrays,
            is_hosted,
            is_private,
            may_fail,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arrays from around it that it touches, each with its access.
    #[must_use]
    pub fn outside(&self) -> &[(Array, Access)] {
        &self.outside
    }

    /// Its other accesses.
    #[must_use]
    pub fn variables(&self) -> &[(Variable, AccessKind)] {
        &self.variables
    }

    /// Its instructions.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Whether it needs the engine's host.
    pub(super) fn is_hosted(&self) -> bool {
        self.is_hosted
    }

    /// Whether its arrays are hidden from foreign code.
    pub(super) fn is_private(&self) -> bool {
        self.is_private
    }

    /// Whether some step may fail where its inputs have been made.
    pub(super) fn may_fail(&self) -> bool {
        self.may_fail
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Bytes of scratch memory that its temporaries take.
    pub(super) fn scratch(&self) -> usize {
        self.scratch
    }

    /// Whether some of its steps are told their arrays.
    pub(super) fn in_arrays(&self) -> bool {
        self.in_arrays
    }

    /// Whether foreign code sees an input, or a result.
    pub(super) fn shows_input(&self, number: usize) -> bool {
        self.shown[self.inputs[number]]
    }

    pub(super) fn shows_result(&self, number: usize) -> bool {
        self.shown[self.results[number]]
    }

    pub(super) fn result_bytes(&self, number: usize) -> usize {
        self.homes[self.results[number]].1
    }

    /// A frame with so many more bytes of scratch memory, and with the arrays from outside at their places.
    pub(super) fn frame(&self, extra: usize, outside: &[(Array, Access)]) -> Result<Frame, Cause> {
        let scratch = Scratch::new(self.scratch + extra);
        let mut spots = vec![Spot::none(); self.homes.len()];
        for (spot, (home, bytes)) in spots.iter_mut().zip(&self.homes) {
            if let Home::Scratch(offset) = home
                && *bytes > 0
            {
                *spot = scratch.spot(&self.engine, *offset, *bytes, self.in_arrays)?;
            }
        }
        for ((array, _), (recorded, _)) in outside.iter().zip(&self.outside) {
            spots.push(Spot::of(array, recorded.layout().offset)?);
        }
        Ok(Frame { spots, scratch })
    }

    pub(super) fn bind_input(&self, frame: &mut Frame, number: usize, spot: Spot) {
        frame.spots[self.inputs[number]] = spot;
    }

    pub(super) fn bind_result(&self, frame: &mut Frame, number: usize, spot: Spot) {
        frame.spots[self.results[number]] = spot;
    }

    pub(super) fn result_of<'a>(&self, frame: &'a Frame, number: usize) -> &'a Spot {
        &frame.spots[self.results[number]]
    }

    /// Runs all instructions, where the frame says.
    pub(super) fn run(&self, frame: &mut Frame, context: &mut OpContext<'_>) -> Result<(), Cause> {
        for (number, (home, bytes)) in self.homes.iter().enumerate() {
            if *home == Home::Fresh {
                frame.spots[number] = Spot::fresh(&self.engine, *bytes)?;
            }
        }
        for (number, array) in &self.copied {
            let (from, bytes) = (array.buffer().start()?, array.buffer().bytes());
            // SAFETY: both have the bytes of the constant, and the copy is private.
            unsafe { from.copy_to_nonoverlapping(frame.spots[*number].start, bytes) };
        }
        let mut pointers: SmallVec<[*mut u8; 8]> = SmallVec::new();
        for (instruction, spots) in self.instructions.iter().zip(&self.spots) {
            let placed = instruction.places.iter().zip(spots).map(|(place, spot)| (place, &frame.spots[*spot]));
            if let Step::Opaque(step) = &instruction.step {
                let operands = placed.map(|(place, spot)| on(place, spot));
                let operands = operands.collect::<Result<Operands, ArrayError>>();
                let operands = operands.map_err(|error| Cause::Error(Box::new(error)))?;
                // SAFETY: the op was granted their buffers, and they have the layouts that were recorded.
                granting(&operands, || unsafe { step.run(&operands, context) })?;
                continue;
            }
            pointers.clear();
            pointers.extend(placed.map(|(place, spot)| spot.start.wrapping_add(place.layout.offset)));
            // SAFETY: each operand has the layout that was recorded; the op was granted all that is outside or bound,
            // and the rest is private.
            unsafe {
                match &instruction.step {
                    Step::Blocked(step) => {
                        let bytes = |place: &EntryAccess| place.layout.size() * place.dtype.size();
                        let operands = instruction.places.iter().map(|place| (bytes(place), place.dtype, place.access));
                        run_alone(&**step, operands, &mut pointers)?;
                    }
                    step => step.run(&pointers).map_err(|error| Cause::Error(Box::new(error)))?,
                }
            }
        }
        Ok(())
    }
}

/// The array of a place.
fn on(place: &EntryAccess, spot: &Spot) -> Result<(Array, Access), ArrayError> {
    let Some(buffer) = &spot.buffer else {
        return Err(ArrayError::Invalid("an operand of a part has no array".to_owned()));
    };
    let mut layout = place.layout.clone();
    layout.offset = layout.offset.wrapping_add_signed(spot.shift);
    Ok((Array::on(Arc::clone(buffer), layout, place.dtype)?, place.access))
}

/// The number of the array from outside that a place is.
fn outside_of(
    recorded: &Recorded,
    place: &EntryAccess,
    outside: &mut Vec<(Array, Access)>,
) -> Result<usize, ProgramError> {
    let (Source::State(array) | Source::Constant { array, .. }) = &recorded.entries[place.entry].source else {
        return Err(refused("what is outside has an array"));
    };
    let is_it = |(known, _): &(Array, Access)| {
        Arc::ptr_eq(known.buffer(), array.buffer()) && *known.layout() == place.layout && known.dtype() == place.dtype
    };
    if let Some(at) = outside.iter().position(is_it) {
        let known = &mut outside[at].1;
        if *known != place.access {
            *known = Access::Mutate;
        }
        return Ok(at);
    }
    // A later turn sees the writes of an earlier one.
    let access = if place.access == Access::Read { Access::Read } else { Access::Mutate };
    outside.push((Array::on(Arc::clone(array.buffer()), place.layout.clone(), place.dtype)?, access));
    Ok(outside.len() - 1)
}

/// Copies so many bytes, if the places differ.
pub(super) fn copy(from: &Spot, to: &Spot, bytes: usize) {
    if from.start != to.start && bytes > 0 {
        // SAFETY: both have so many bytes, one of a turn's own and the other of the op's result.
        unsafe { from.start.copy_to_nonoverlapping(to.start, bytes) };
    }
}

/// Bytes from the first row to this one.
pub(super) fn row(stride: isize, number: usize) -> isize {
    stride * number.cast_signed()
}
