//! A recording before its plan.
//!
//! An *entry* is the memory behind some arrays: an argument's, a state's, a constant's, or fresh at each replay. An
//! *instruction* is a step with its *places*: layouts on entries. Views are no more than that; dependencies follow
//! from the bytes that places reach.

mod dependencies;
mod describe;
mod lower;
mod parted;

pub(crate) use dependencies::{depend, overlap};
pub use describe::Description;
pub use parted::{Parted, Taken};

use crate::ProgramError;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use weft_array::{Access, Array, Buffer, DType, Home, Layout, Step};
use weft_engine::{AccessKind, Device, Engine, Variable};

/// An array that a recorded function takes.
#[derive(Clone)]
pub struct Argument {
    /// Its substitute in the recording.
    pub placeholder: Array,
    /// Itself, at the recording.
    pub array: Array,
}

/// Where the memory of an entry comes from.
pub(crate) enum Source {
    /// That of the argument of this number.
    Argument(usize),
    /// Of an array from outside that is the same at each replay.
    State(Array),
    /// Of values that were known. If it is changed or handed out, each replay has its own copy.
    Constant { array: Array, copied: bool },
    /// New at each replay.
    Fresh,
}

/// The memory behind some arrays.
#[allow(clippy::struct_excessive_bools)] // each answers a question of its own
pub(crate) struct Entry {
    pub(crate) source: Source,
    /// The device that has its memory, if the host has not.
    pub(crate) home: Option<&'static dyn Home>,
    /// As it was recorded.
    pub(crate) bytes: usize,
    /// The bytes that are touched, as they were recorded.
    pub(crate) reach: Range<usize>,
    /// Whether it is written to, and whether anything looks at it.
    pub(crate) written: bool,
    pub(crate) read: bool,
    /// Whether results show it.
    pub(crate) is_result: bool,
    /// Whether foreign code sees it, and may keep a view of it.
    pub(crate) is_shown: bool,
    /// The device on which it belongs, if it is made in a call, and that is known.
    pub(crate) belongs: Option<u16>,
}

impl Entry {
    /// The number of the device that has its memory; none for the host.
    pub(crate) fn device(&self) -> Option<u16> {
        self.home.map(Home::number)
    }

    /// Whether it is new at each replay.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self.source, Source::Fresh)
    }

    /// Whether it is never seen outside of a replay.
    pub(crate) fn is_temporary(&self) -> bool {
        let own = match self.source {
            Source::Fresh => true,
            Source::Constant { copied, .. } => copied,
            _ => false,
        };
        own && !self.is_result
    }
}

/// One operand of an instruction.
#[derive(Clone)]
pub struct EntryAccess {
    /// The number of the entry.
    pub entry: usize,
    /// Where in it the elements lie, as was recorded.
    pub layout: Layout,
    /// Their type.
    pub dtype: DType,
    /// The access to them.
    pub access: Access,
    /// The bytes that they reach.
    pub range: Range<usize>,
}

impl EntryAccess {
    /// Whether it is all of the bytes that it reaches.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.layout.size() * self.dtype.size() == self.range.len() && self.layout.is_dense(self.dtype.size())
    }
}

/// A step and its places.
#[derive(Clone)]
pub struct Instruction {
    /// What it runs.
    pub step: Step,
    /// Its operands; a native step's inputs first.
    pub places: Vec<EntryAccess>,
    /// Its other accesses.
    pub variables: Vec<(Variable, AccessKind)>,
    /// Its name.
    pub name: String,
    /// Where it was asked for.
    pub place: u64,
    /// Its number in the recording.
    pub number: usize,
    pub(crate) priority: i32,
    pub(crate) device: Device,
    pub(crate) always_run: bool,
    pub(crate) at_arrays: bool,
}

impl Instruction {
    /// Whether it does more than compute the contents of its places.
    pub(crate) fn has_effects(&self) -> bool {
        let of_step = if let Step::Opaque(opaque) = &self.step { opaque.has_effects() } else { false };
        of_step || !self.variables.is_empty() || self.always_run
    }
}

/// Whether nobody notices that these instructions run once more on arrays that are as they were ([`weft_array::Opaque::repeats`]).
pub(crate) fn repeat(instructions: &[Instruction], is_pure: &dyn Fn(&dyn Any) -> bool) -> bool {
    let repeats = |step: &Step| if let Step::Opaque(opaque) = step { opaque.repeats(is_pure) } else { true };
    instructions.iter().all(|instruction| repeats(&instruction.step))
}

/// Whether foreign code sees the arrays of a step.
pub(crate) fn is_seen(step: &Step) -> bool {
    if let Step::Opaque(opaque) = step { !opaque.is_private() } else { false }
}

/// How much longer the longest way through a program may become for the sake of memory that temporaries share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Memory {
    /// As long as it takes.
    Min,
    /// By a twentieth.
    #[default]
    Balanced,
    /// Not at all.
    Speed,
}

/// How a recording is to become a program.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Whether a replay runs its instructions one by one, in recorded order.
    pub sequential: bool,
    memory: Memory,
    /// Passes to be applied.
    passes: Vec<&'static str>,
    /// Numbers of the arguments whose memory is given away.
    donated: Vec<usize>,
}

/// The passes that there are, in their order.
pub(crate) const PASSES: [&str; 7] = ["dead", "common", "follow", "layout", "early", "fuse", "graphs"];

impl Settings {
    /// Those of these names. `memory` says how much memory may be saved at the price of time.
    pub fn new(sequential: bool, memory: &str, passes: Option<&[String]>) -> Result<Self, ProgramError> {
        let memory = match memory {
            "min" => Memory::Min,
            "balanced" => Memory::Balanced,
            "speed" => Memory::Speed,
            other => {
                let message = format!("memory is \"min\", \"balanced\" or \"speed\", not \"{other}\"");
                return Err(ProgramError::Arguments(message));
            }
        };
        // One by one nothing runs side by side.
        let memory = if sequential { Memory::Min } else { memory };
        let known = |name: &&&str| passes.is_none_or(|passes| passes.iter().any(|pass| pass == *name));
        if let Some(unknown) = passes.into_iter().flatten().find(|pass| !PASSES.contains(&pass.as_str())) {
            let message = format!("no pass is called '{unknown}': there are {}", PASSES.join(", "));
            return Err(ProgramError::Arguments(message));
        }
        let passes = PASSES.iter().filter(known).copied().collect();
        Ok(Self { sequential, memory, passes, donated: Vec::new() })
    }

    /// The same, with the memory of these arguments given away at each call, where it is not seen elsewhere.
    #[must_use]
    pub fn donating(self, arguments: Vec<usize>) -> Self {
        Self { donated: arguments, ..self }
    }

    /// Numbers of the arguments whose memory is given away.
    pub(crate) fn donated(&self) -> &[usize] {
        &self.donated
    }

    /// How much may be saved.
    pub(crate) fn memory(&self) -> Memory {
        self.memory
    }

    /// Whether a pass is to be applied.
    pub(crate) fn has(&self, pass: &str) -> bool {
        self.passes.contains(&pass)
    }
}

/// The place of a result.
pub(crate) struct Shown {
    pub(crate) entry: usize,
    pub(crate) layout: Layout,
    pub(crate) dtype: DType,
}

/// A recording, its arrays resolved.
pub struct Recorded {
    pub(crate) name: String,
    pub(crate) engine: Engine,
    pub(crate) arguments: Vec<Argument>,
    /// The entry of each argument.
    pub(crate) argument_entries: Vec<usize>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) results: Vec<Shown>,
    pub(crate) looked_at: Vec<Array>,
    /// The arguments that the function refers to itself, too.
    pub(crate) closed: Vec<usize>,
}

impl Recorded {
    /// Arrays from outside that it touches, in the order of their first use.
    pub fn states(&self) -> impl Iterator<Item = &Array> {
        self.entries.iter().filter_map(|entry| match &entry.source {
            Source::State(array) => Some(array),
            _ => None,
        })
    }

    /// Arrays from outside whose values decided the recording.
    #[must_use]
    pub fn looked_at(&self) -> &[Array] {
        &self.looked_at
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The numbers of the arguments that the function refers to itself, too: a call is of this program if it is given the
    /// same ones.
    #[must_use]
    pub fn closed(&self) -> &[usize] {
        &self.closed
    }

    /// The numbers of the arguments that it writes to.
    pub fn written(&self) -> impl Iterator<Item = usize> + '_ {
        let entries = self.argument_entries.iter().enumerate();
        entries.filter(|(_, entry)| self.entries[**entry].written).map(|(number, _)| number)
    }

    /// The entries of the results.
    #[must_use]
    pub fn result_entries(&self) -> Vec<usize> {
        self.results.iter().map(|shown| shown.entry).collect()
    }

    /// Shows `each` what its steps keep of their makers', as far as it is the only one to have them: ask before a
    /// [`Program`](crate::Program) is made of it.
    pub fn kept(&self, each: &mut dyn FnMut(&dyn Any)) {
        kept_by(&self.instructions, each);
    }

    /// Whether nobody notices that all of it runs once more on arrays that are as they were ([`weft_array::Opaque::repeats`]).
    #[must_use]
    pub fn repeats(&self, is_pure: &dyn Fn(&dyn Any) -> bool) -> bool {
        repeat(&self.instructions, is_pure)
    }

    /// Its instructions, in recorded order.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }
}

/// Shows `each` what the steps of instructions keep of their makers', if nobody else has these steps.
pub(crate) fn kept_by(instructions: &[Instruction], each: &mut dyn FnMut(&dyn Any)) {
    for instruction in instructions {
        if let Step::Opaque(step) = &instruction.step
            && Arc::strong_count(step) == 1
        {
            step.kept(each);
        }
    }
}

/// All of a buffer as an array of bytes.
pub(crate) fn whole(buffer: &Arc<Buffer>) -> Result<Array, weft_array::ArrayError> {
    Array::on(Arc::clone(buffer), Layout::contiguous(&[buffer.bytes()], 1)?, DType::UInt8)
}
