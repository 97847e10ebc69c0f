//! Calls of small programs, run by their caller: handing them over takes longer.
//!
//! If nothing is pending on their memory, all instructions run one after the other, under one look at the arrays.

use super::check::Moved;
use super::program::Buffers;
use crate::ProgramError;
use crate::memory::{Life, place};
use crate::passes;
use crate::recorded::{Entry, Recorded, Settings, Source};
use smallvec::SmallVec;
use std::ops::Range;
use weft_array::{Access, Array, ArrayError, Block, Buffer, Step, run_idle};

/// Nanoseconds of all instructions together, about, and instructions, at most: other threads' pushes wait meanwhile.
const NANOSECONDS: usize = 64_000;
const INSTRUCTIONS: usize = 2048;

/// Where an operand lies: an entry, bytes from its start.
#[derive(Clone, Copy)]
struct Operand {
    entry: u32,
    offset: usize,
}

/// A small program.
pub(super) struct Here {
    steps: Vec<(Step, Range<usize>)>,
    operands: Vec<Operand>,
    /// Temporaries, by entry, and where they lie.
    temporaries: Vec<(usize, usize)>,
    scratch: usize,
    /// Entries from outside, with their accesses.
    outside: Vec<(usize, Access)>,
    /// Entries that are new in each call and shown by results.
    fresh: Vec<usize>,
    /// Constants that are copied anew.
    copied: Vec<usize>,
}

impl Here {
    /// Of a program that is small and native throughout.
    pub(super) fn new(recorded: &Recorded, settings: &Settings) -> Option<Self> {
        let instructions = &recorded.instructions;
        let native = |instruction: &crate::Instruction| {
            let sure = instruction.step.is_native() && !matches!(instruction.step, Step::Blocked(_));
            sure && instruction.variables.is_empty() && !instruction.always_run
        };
        let total = instructions.iter().fold(0_usize, |sum, each| sum.saturating_add(each.step.nanoseconds()));
        // Where something belongs, a pushed call finds out.
        let elsewhere = |entry: &Entry| entry.home.is_some() || entry.belongs.is_some_and(|device| device > 0);
        let on_host = !recorded.entries.iter().any(elsewhere);
        if !on_host || instructions.len() > INSTRUCTIONS || !instructions.iter().all(native) || total > NANOSECONDS {
            return None;
        }
        let instructions = passes::lower_small(recorded, settings);
        let (mut steps, mut operands) = (Vec::new(), Vec::new());
        let mut lives: Vec<Option<(usize, usize)>> = vec![None; recorded.entries.len()];
        for (at, instruction) in instructions.iter().enumerate() {
            let from = operands.len();
            for place in &instruction.places {
                let entry = u32::try_from(place.entry).ok()?;
                operands.push(Operand { entry, offset: place.layout.offset });
                let life = lives[place.entry].get_or_insert((at, at + 1));
                life.1 = at + 1;
            }
            steps.push((instruction.step.clone(), from..operands.len()));
        }
        let (mut own, mut outside, mut fresh, mut copied) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (number, entry) in recorded.entries.iter().enumerate() {
            let access = if entry.written { Access::Mutate } else { Access::Read };
            match &entry.source {
                // An entry without an access may be pending.
                Source::Argument(_) | Source::State(_) | Source::Constant { copied: false, .. } => {
                    if lives[number].is_some() {
                        outside.push((number, access));
                    }
                }
                source => {
                    let is_used = entry.is_result || lives[number].is_some();
                    if let Source::Constant { .. } = source
                        && is_used
                    {
                        copied.push(number);
                        lives[number] = lives[number].map(|(_, last)| (0, last));
                    }
                    if entry.is_result {
                        fresh.push(number);
                    } else if let Some(life) = lives[number] {
                        own.push((number, life));
                    }
                }
            }
        }
        let life = |(number, (first, end)): &(usize, (usize, usize))| Life {
            first: *first,
            last: *end - 1,
            bytes: recorded.entries[*number].bytes,
        };
        let (offsets, scratch) = place(&own.iter().map(life).collect::<Vec<_>>()).ok()?;
        let temporaries = own.iter().zip(offsets).map(|((number, _), offset)| (*number, offset)).collect();
        Some(Self { steps, operands, temporaries, scratch, outside, fresh, copied })
    }

    /// Runs it if nothing stands in its way.
    pub(super) fn run(
        &self,
        recorded: &Recorded,
        arguments: &[&Array],
        moved: &Moved,
    ) -> Result<Option<Buffers>, ProgramError> {
        let mut bases: SmallVec<[*mut u8; 32]> = SmallVec::from_elem(std::ptr::null_mut(), recorded.entries.len());
        let mut outside: SmallVec<[(&Array, Access); 8]> = SmallVec::new();
        for (number, access) in &self.outside {
            let array = match &recorded.entries[*number].source {
                Source::Argument(first) => arguments[*first],
                Source::State(array) | Source::Constant { array, .. } => array,
                Source::Fresh => continue,
            };
            array.buffer().pin_for_good(); // the address is asked for before the lock is held
            let Ok(start) = array.buffer().start() else { return Ok(None) };
            bases[*number] = start.wrapping_offset(moved[*number]);
            outside.push((array, *access));
        }
        let mut buffers = Buffers::new();
        if !self.fresh.is_empty() {
            buffers.resize(recorded.entries.len(), None);
        }
        for number in &self.fresh {
            let buffer = Buffer::new(&recorded.engine, recorded.entries[*number].bytes);
            let Ok(start) = buffer.start() else { return Ok(None) };
            bases[*number] = start;
            buffers[*number] = Some(buffer);
        }
        let block = if self.scratch > 0 {
            let Ok(block) = Block::arena(self.scratch) else { return Ok(None) };
            Some(block)
        } else {
            None
        };
        if let Some(block) = &block {
            for (number, offset) in &self.temporaries {
                bases[*number] = block.start().wrapping_add(*offset);
            }
        }
        let mut ran = Ok(());
        let was_idle = run_idle(&recorded.engine, &outside, || ran = self.run_on(recorded, &bases))?;
        drop(block);
        ran?;
        Ok(was_idle.then_some(buffers))
    }

    /// Runs all instructions where the entries lie.
    fn run_on(&self, recorded: &Recorded, bases: &[*mut u8]) -> Result<(), ArrayError> {
        for number in &self.copied {
            if let Source::Constant { array, .. } = &recorded.entries[*number].source
                && let Ok(from) = array.buffer().start()
            {
                // SAFETY: both have the bytes of the constant; the copy is private.
                unsafe { from.copy_to_nonoverlapping(bases[*number], array.buffer().bytes()) };
            }
        }
        let mut pointers: SmallVec<[*mut u8; 4]> = SmallVec::new();
        for (step, range) in &self.steps {
            let mut places = self.operands[range.clone()]
                .iter()
                .map(|operand| bases[operand.entry as usize].wrapping_add(operand.offset));
            if let Step::Strided(strided) = step {
                let next = || places.next().unwrap_or(std::ptr::null_mut());
                // SAFETY: as below; a step has as many places as arrays.
                unsafe { strided.run_next(next) };
                continue;
            }
            pointers.clear();
            pointers.extend(places);
            // SAFETY: the entries are there, as large as they were recorded, and no other op has them: `run_idle`.
            unsafe { step.run(&pointers) }?;
        }
        Ok(())
    }
}
