//! From a recording to entries and instructions.

use super::{Argument, Entry, EntryAccess, Instruction, Recorded, Shown, Source, is_seen, whole};
use crate::ProgramError;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use weft_array::recording::{self, Transcript};
use weft_array::{Access, Array, Buffer, Opaque, Operands, Step, known_devices, standing};
use weft_engine::{Cause, InOrder, OpContext};

/// Entries by the addresses of buffers.
struct Entries<'a> {
    transcript: &'a Transcript,
    known: HashMap<usize, usize>,
    list: Vec<Entry>,
}

pub(super) fn address(buffer: &Arc<Buffer>) -> usize {
    Arc::as_ptr(buffer).addr()
}

impl Entries<'_> {
    fn add(&mut self, source: Source, buffer: &Buffer) -> usize {
        let (reach, is_result, is_shown) = (0..0, false, false);
        let (home, bytes) = (buffer.home(), buffer.bytes());
        let (written, read, belongs) = (false, false, None);
        self.list.push(Entry { source, home, bytes, reach, written, read, is_result, is_shown, belongs });
        self.list.len() - 1
    }

    /// The entry of an array's memory.
    fn of(&mut self, array: &Array) -> Result<usize, ProgramError> {
        let buffer = array.buffer();
        if let Some(&known) = self.known.get(&address(buffer)) {
            return Ok(known);
        }
        let source = match buffer.recording() {
            Some(tag) if Arc::ptr_eq(tag, self.transcript.tag()) => Source::Fresh,
            // The entries that a part of a recording takes from around it.
            Some(tag) if self.transcript.tag().is_within(tag) => Source::State(array.clone()),
            Some(tag) => {
                let recording = tag.name().to_owned();
                return Err(weft_array::ArrayError::Recorded { recording }.into());
            }
            None if self.transcript.is_passing(buffer) => Source::Fresh,
            None if self.transcript.constants().iter().any(|constant| Arc::ptr_eq(constant, buffer)) => {
                Source::Constant { array: whole(buffer)?, copied: false }
            }
            None => Source::State(array.clone()),
        };
        let is_made = matches!(source, Source::Fresh | Source::Constant { .. });
        let entry = self.add(source, buffer);
        if is_made {
            self.list[entry].belongs = known_devices(&[Some(buffer)])[0];
        }
        self.known.insert(address(buffer), entry);
        Ok(entry)
    }

    fn reach(&mut self, entry: usize, range: &Range<usize>) {
        let reach = &mut self.list[entry].reach;
        if !range.is_empty() {
            *reach = if Range::is_empty(reach) {
                range.clone()
            } else {
                reach.start.min(range.start)..reach.end.max(range.end)
            };
        }
    }
}

impl Recorded {
    /// Resolves the arrays of a recording: these arguments, these results.
    pub fn new(transcript: Transcript, arguments: Vec<Argument>, results: &[Array]) -> Result<Self, ProgramError> {
        if let Some(failure) = transcript.failure() {
            return Err(ProgramError::Recording(failure.to_owned()));
        }
        let closed = closed(&transcript, &arguments, results);
        let mut entries = Entries { transcript: &transcript, known: HashMap::new(), list: Vec::new() };
        let mut argument_entries = Vec::new();
        for (number, argument) in arguments.iter().enumerate() {
            let placeholder = argument.placeholder.buffer();
            let entry = match entries.known.get(&address(placeholder)) {
                Some(&known) => known,
                None => entries.add(Source::Argument(number), placeholder),
            };
            entries.known.insert(address(placeholder), entry);
            // A closure over an argument means the argument.
            entries.known.insert(address(argument.array.buffer()), entry);
            entries.reach(entry, &argument.array.range());
            argument_entries.push(entry);
        }
        let mut places = Vec::with_capacity(transcript.calls().len());
        for call in transcript.calls() {
            places.push(places_of(&mut entries, call)?);
        }
        let mut shown = Vec::with_capacity(results.len());
        for array in results {
            let entry = entries.of(array)?;
            entries.reach(entry, &array.range());
            entries.list[entry].is_result = true;
            shown.push(Shown { entry, layout: array.layout().clone(), dtype: array.dtype() });
        }
        let mut list = entries.list;
        for entry in &mut list {
            let handed_out = entry.written || entry.is_result || entry.is_shown;
            if let Source::Constant { copied, .. } = &mut entry.source {
                *copied = handed_out;
            }
        }
        let (name, engine) = (transcript.tag().name().to_owned(), transcript.engine().clone());
        let looked_at = transcript.looked_at().to_vec();
        let calls = transcript.into_calls().into_iter().zip(places).enumerate();
        let instructions = calls.map(|(number, (call, places))| Instruction {
            number,
            step: standing_for(call.step, &call.arrays),
            places,
            variables: call.variables,
            name: call.name,
            place: call.place,
            priority: call.priority,
            device: call.device,
            always_run: call.always_run,
            at_arrays: call.at_arrays,
        });
        let instructions = instructions.collect();
        // The first call's arrays are not kept for it.
        let mut arguments = arguments;
        for (number, argument) in arguments.iter_mut().enumerate() {
            if !closed.contains(&number) {
                argument.array = argument.placeholder.clone();
            }
        }
        Ok(Self {
            name,
            engine,
            arguments,
            argument_entries,
            entries: list,
            instructions,
            results: shown,
            looked_at,
            closed,
        })
    }
}

/// An opaque step that finds the substitutes for its recorded arrays.
struct Standing {
    step: Arc<dyn Opaque>,
    recorded: Vec<Array>,
}

impl Opaque for Standing {
    fn is_hosted(&self) -> bool {
        self.step.is_hosted()
    }

    unsafe fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: the caller's promise.
        standing(&self.recorded, arrays, || unsafe { self.step.run(arrays, context) })
    }

    fn queue(&self) -> Option<InOrder> {
        self.step.queue()
    }

    fn is_private(&self) -> bool {
        self.step.is_private()
    }

    fn has_effects(&self) -> bool {
        self.step.has_effects()
    }

    fn repeats(&self, is_pure: &dyn Fn(&dyn Any) -> bool) -> bool {
        self.step.repeats(is_pure)
    }

    fn may_fail(&self) -> bool {
        self.step.may_fail()
    }

    fn completes_later(&self) -> bool {
        self.step.completes_later()
    }

    fn discard(&self) {
        self.step.discard();
    }

    fn kept(&self, each: &mut dyn FnMut(&dyn Any)) {
        if Arc::strong_count(&self.step) == 1 {
            self.step.kept(each);
        }
    }

    fn place(&self) -> u64 {
        self.step.place()
    }
}

fn standing_for(step: Step, arrays: &Operands) -> Step {
    match step {
        // Nothing but Python's code can name the arrays that it was recorded with.
        Step::Opaque(step) if step.is_hosted() => {
            let recorded = arrays.iter().map(|(array, _)| array.clone()).collect();
            Step::Opaque(Arc::new(Standing { step, recorded }))
        }
        native => native,
    }
}

fn places_of(entries: &mut Entries<'_>, call: &recording::Recorded) -> Result<Vec<EntryAccess>, ProgramError> {
    let mut places = Vec::with_capacity(call.arrays.len());
    for (array, access) in &call.arrays {
        let (entry, range) = (entries.of(array)?, array.range());
        entries.reach(entry, &range);
        let known = &mut entries.list[entry];
        known.written |= *access != Access::Read;
        known.read |= *access != Access::Overwrite;
        known.is_shown |= is_seen(&call.step);
        let (layout, dtype, access) = (array.layout().clone(), array.dtype(), *access);
        places.push(EntryAccess { entry, layout, dtype, access, range });
    }
    Ok(places)
}

/// The arguments that a recording touches as themselves, besides by their substitutes.
fn closed(transcript: &Transcript, arguments: &[Argument], results: &[Array]) -> Vec<usize> {
    let touched: HashSet<usize> = transcript
        .calls()
        .iter()
        .flat_map(|call| call.arrays.iter().map(|(array, _)| array))
        .chain(results)
        .chain(transcript.looked_at())
        .map(|array| address(array.buffer()))
        .collect();
    let is_closed = |number: &usize| {
        let Argument { placeholder, array } = &arguments[*number];
        !Arc::ptr_eq(placeholder.buffer(), array.buffer()) && touched.contains(&address(array.buffer()))
    };
    (0..arguments.len()).filter(is_closed).collect()
}
