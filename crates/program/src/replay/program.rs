//! A program and its calls.

use super::check::{Moved, Signature};
use super::figures::Figures;
use super::here::Here;
use super::pushed::{Donated, Pushed};
use crate::ProgramError;
use crate::passes;
use crate::recorded::{Recorded, Settings, Shown, Source};
use std::sync::Arc;
use weft_array::{Array, Buffer, Layout};
use weft_engine::trace::Note;

/// A recording that can be run again and again.
pub struct Program {
    recorded: Recorded,
    settings: Settings,
    signature: Signature,
    here: Option<Here>,
    pushed: Pushed,
    /// For each result the first one that shows the same.
    same: Vec<usize>,
}

/// Makes a note of an instruction's name and place.
pub type Noting<'a> = dyn Fn(&str, u64) -> Note + 'a;

/// The options of a call, besides its arguments.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// As of a push, added to the instructions' own.
    pub priority: i32,
    /// Whether the instructions run one by one, against the program's settings.
    pub sequential: Option<bool>,
    /// The traced facts of an instruction: its name and its place.
    pub note: Option<&'a Noting<'a>>,
}

/// One result of a call.
pub enum Output {
    /// The argument of this number, as it was given.
    Argument(usize),
    /// The state of this number.
    State(usize),
    /// The same as the result of this number.
    Same(usize),
    /// A new array, or a view.
    Array(Array),
}

/// The memory of entries in a call, by number; none for those that are never seen outside.
pub(super) type Buffers = Vec<Option<Arc<Buffer>>>;

impl Program {
    /// Makes a program of a recording.
    pub fn new(mut recorded: Recorded, settings: Settings) -> Result<Self, ProgramError> {
        passes::simplify(&mut recorded, &settings);
        let signature = Signature::new(&recorded);
        let here = Here::new(&recorded, &settings);
        let pushed = Pushed::new(&recorded, passes::lower(&recorded, &settings), &settings)?;
        let alike = |one: &Shown, other: &Shown| {
            one.entry == other.entry && one.layout == other.layout && one.dtype == other.dtype
        };
        let results = &recorded.results;
        let first = |at: usize| results.iter().position(|other| alike(other, &results[at])).unwrap_or(at);
        let same = (0..results.len()).map(first).collect();
        Ok(Self { recorded, settings, signature, here, pushed, same })
    }

    /// The names of the steps of a call that is pushed, as traces show them: several ops may be one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pushed.names()
    }

    /// The recording.
    #[must_use]
    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Whether no call of it is pending. A call that is being pushed is none yet.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.pushed.is_idle()
    }

    /// The engine of its pushes.
    #[must_use]
    pub fn engine(&self) -> &weft_engine::Engine {
        &self.recorded.engine
    }

    /// How many ops a call runs.
    #[must_use]
    pub fn ops(&self) -> usize {
        self.recorded.instructions.len()
    }

    /// How much memory it takes.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.pushed.figures
    }

    /// Where in the arena an entry lies, if it does.
    #[must_use]
    pub fn arena_offset(&self, entry: usize) -> Option<usize> {
        self.pushed.offsets.get(entry).copied().flatten()
    }

    /// Whether some of its ops need the engine's host.
    #[must_use]
    pub fn is_hosted(&self) -> bool {
        self.recorded.instructions.iter().any(|instruction| !instruction.step.is_native())
    }

    /// Calls it. The caller has waited for room.
    pub fn run(&self, arguments: &[&Array], options: &Options<'_>) -> Result<Vec<Output>, ProgramError> {
        let moved = self.signature.check(&self.recorded, arguments)?;
        // Asked once: the answer may change meanwhile, and results lie in the memory of just those that are given away.
        let donated = self.pushed.donated(arguments);
        if let Some(here) = &self.here
            && !self.recorded.engine.is_traced()
        {
            let buffers = here.run(&self.recorded, arguments, &moved)?;
            if let Some(buffers) = buffers {
                let outputs = self.outputs(arguments, &moved, &buffers)?;
                self.give_away(arguments, &donated);
                return Ok(outputs);
            }
        }
        let sequential = options.sequential.unwrap_or(self.settings.sequential);
        let buffers = self.pushed.run(&self.recorded, arguments, &moved, &donated, sequential, options)?;
        let outputs = self.outputs(arguments, &moved, &buffers)?;
        self.give_away(arguments, &donated);
        Ok(outputs)
    }

    /// From now on their handles raise.
    fn give_away(&self, arguments: &[&Array], donated: &Donated<'_>) {
        for donation in donated {
            arguments[donation.argument].buffer().give_away(&self.recorded.name);
        }
    }

    /// The places of the results.
    fn outputs(&self, arguments: &[&Array], moved: &Moved, buffers: &Buffers) -> Result<Vec<Output>, ProgramError> {
        let mut outputs = Vec::with_capacity(self.recorded.results.len());
        for (at, shown) in self.recorded.results.iter().enumerate() {
            if self.same[at] < at {
                outputs.push(Output::Same(self.same[at]));
                continue;
            }
            outputs.push(match &self.recorded.entries[shown.entry].source {
                Source::Argument(first) => {
                    let layout = shifted(&shown.layout, moved[shown.entry]);
                    let is_it = |array: &&Array| {
                        Arc::ptr_eq(array.buffer(), arguments[*first].buffer())
                            && *array.layout() == layout
                            && array.dtype() == shown.dtype
                    };
                    if let Some(number) = arguments.iter().position(is_it) {
                        Output::Argument(number)
                    } else {
                        let buffer = Arc::clone(arguments[*first].buffer());
                        Output::Array(Array::on(buffer, layout, shown.dtype)?)
                    }
                }
                Source::State(array) => {
                    if *array.layout() == shown.layout && array.dtype() == shown.dtype {
                        let is_it = |state: &Array| Arc::ptr_eq(state.buffer(), array.buffer());
                        Output::State(self.recorded.states().position(is_it).unwrap_or(0))
                    } else {
                        Output::Array(Array::on(Arc::clone(array.buffer()), shown.layout.clone(), shown.dtype)?)
                    }
                }
                Source::Constant { .. } | Source::Fresh => match &buffers[shown.entry] {
                    Some(buffer) => Output::Array(Array::on(Arc::clone(buffer), shown.layout.clone(), shown.dtype)?),
                    None => unreachable!("what results show has a buffer"),
                },
            });
        }
        Ok(outputs)
    }
}

/// A layout so many bytes further on.
pub(super) fn shifted(layout: &Layout, by: isize) -> Layout {
    let mut layout = layout.clone();
    layout.offset = layout.offset.wrapping_add_signed(by);
    layout
}
