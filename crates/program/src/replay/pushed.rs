//! Calls that are pushed: one push of the engine's replay, with a port for each access to the outside.

use super::bound::{Base, Bindings};
use super::check::Moved;
use super::figures::Figures;
use super::graphs::issues_on;
use super::lowered::{Devices, Lowered};
use super::planned::{Arenas, Planned, planned};
use super::program::{Buffers, Options};
use crate::ProgramError;
use crate::memory::{Donation, Lease, donations};
use crate::recorded::{Instruction, Recorded, Settings, Source};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weft_array::{
    Array, ArrayError, Block, Buffer, Elsewhere, Home, ReplayCall, Touched, known_devices, push_replay,
    set_known_devices,
};
use weft_engine::{AccessKind, EngineError, PortId, PushOptions, ReplayOptions, Variable};

/// Results below this size are not counted as bytes held by pending ops.
const COUNTED: usize = 4096;

/// The places of temporaries, and the pushed replay.
pub(super) struct Pushed {
    /// By entry, of those in the arena.
    pub(super) offsets: Vec<Option<usize>>,
    arenas: Arenas,
    /// Constants that each call has a copy of.
    copied: Vec<usize>,
    instructions: Vec<Instruction>,
    /// Whether no instruction falls into parts.
    whole: bool,
    /// Entries of buffers that are new in each call.
    fresh: Vec<usize>,
    /// Bytes that a call holds.
    held: u64,
    /// By the shapes of calls.
    lowered: Mutex<Vec<(Shape, Arc<Lowered>)>>,
    /// Whether steps of devices may be issued together.
    together: bool,
    donations: Vec<Donation>,
    /// Whether memory for an arena could be had.
    probed: OnceLock<()>,
    pub(super) figures: Figures,
}

impl Pushed {
    pub(super) fn new(
        recorded: &Recorded,
        instructions: Vec<Instruction>,
        settings: &Settings,
    ) -> Result<Self, ProgramError> {
        let whole = settings.sequential;
        let Planned { instructions, offsets, arenas, lives, storages, .. } =
            planned(recorded, instructions, settings.memory())?;
        let is_used = |number: &usize| recorded.entries[*number].is_result || lives[*number].is_some();
        let is_copied = |number: &usize| {
            is_used(number) && matches!(recorded.entries[*number].source, Source::Constant { copied: true, .. })
        };
        let is_fresh = |number: &usize| {
            let source = &recorded.entries[*number].source;
            let own = matches!(source, Source::Fresh | Source::Constant { copied: true, .. });
            own && is_used(number) && offsets[*number].is_none()
        };
        let copied = (0..recorded.entries.len()).filter(is_copied).collect();
        let fresh: Vec<usize> = (0..recorded.entries.len()).filter(is_fresh).collect();
        let counted = fresh.iter().map(|number| recorded.entries[*number].bytes).filter(|bytes| *bytes >= COUNTED);
        let bytes = arenas.bytes();
        let held = (counted.sum::<usize>() + if bytes >= COUNTED { bytes } else { 0 }) as u64;
        let figures = Figures::new(recorded, &instructions, (bytes, &offsets, &storages));
        let donations = donations(recorded, &instructions, settings.donated());
        let (lowered, probed) = (Mutex::default(), OnceLock::new());
        let together = settings.has("graphs") && !whole && instructions.iter().filter_map(issues_on).nth(1).is_some();
        Ok(Self {
            offsets,
            arenas,
            copied,
            instructions,
            whole,
            fresh,
            held,
            lowered,
            together,
            donations,
            probed,
            figures,
        })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.instructions.iter().map(|instruction| &*instruction.name)
    }

    /// The donations of a call: arguments that are not seen elsewhere.
    pub(super) fn donated(&self, arguments: &[&Array]) -> Donated<'_> {
        let alone = |array: &Array| array.is_flat() && !array.buffer().is_readonly() && array.buffer().is_alone();
        self.donations.iter().filter(|donation| alone(arguments[donation.argument])).collect()
    }

    /// Whether no call is pending. A call that is being pushed is none yet.
    pub(super) fn is_idle(&self) -> bool {
        self.lowered.try_lock().is_ok_and(|lowered| lowered.iter().all(|(_, lowered)| lowered.replay.is_idle()))
    }

    /// Pushes a call.
    pub(super) fn run(
        &self,
        recorded: &Recorded,
        arguments: &[&Array],
        moved: &Moved,
        donated: &Donated<'_>,
        sequential: bool,
        options: &Options<'_>,
    ) -> Result<Buffers, ProgramError> {
        let engine = &recorded.engine;
        if engine.is_closed() && !engine.is_inside_op() {
            return Err(ArrayError::from(EngineError::Closed { engine: engine.name().to_owned() }).into());
        }
        self.probe()?;
        let buffers = self.buffers(recorded);
        if self.instructions.is_empty() && self.copied.is_empty() {
            return Ok(buffers);
        }
        let given = donated.iter().filter_map(|donation| Some((donation.into?, donation.entry))).collect();
        let call = Located { recorded, arguments, moved, fresh: &buffers, given };
        self.push(&call, sequential, options)?;
        Ok(buffers)
    }

    fn push(&self, call: &Located<'_>, sequential: bool, options: &Options<'_>) -> Result<(), ProgramError> {
        let recorded = call.recorded;
        let engine = &recorded.engine;
        // A trace shows each op, and one by one is one by one.
        let lowered = self.lowered(call, self.together && !sequential && !engine.is_traced())?;
        let traced = if engine.is_traced() { options.note } else { None };
        let note = |instruction: &Instruction| traced.map(|note| note(&instruction.name, instruction.place));
        let notes = self.instructions.iter().map_while(note).collect();
        let lease = (self.arenas.host > 0).then(|| Lease::new(self.arenas.host));
        let arena = |(home, bytes): &(&'static dyn Home, usize)| {
            (home.number(), Buffer::elsewhere(engine, *bytes, false, Elsewhere::fresh(*home, *bytes)))
        };
        let arenas: DeviceArenas = self.arenas.devices.iter().map(arena).collect();
        let bases = (0..recorded.entries.len()).map(|entry| self.base(call, &arenas, entry)).collect();
        let mut touched: SmallVec<[Touched<'_>; 16]> = SmallVec::new();
        let mut versions: (SmallVec<[usize; 16]>, _) = (SmallVec::new(), OnceLock::new());
        for (entry, touches) in &lowered.touched {
            if let Some((buffer, by)) = call.buffer(*entry) {
                touched.push((buffer, by, touches));
                if lowered.keeps {
                    versions.0.push(*entry);
                }
            }
        }
        let bindings = Arc::new(Bindings { bases, lease, notes, left_out: Mutex::default(), versions });
        let variables: SmallVec<[(PortId, &Variable, AccessKind); 4]> =
            lowered.variables.iter().map(|(port, variable, kind)| (*port, variable, *kind)).collect();
        let push = PushOptions { priority: options.priority, bytes: self.held, ..PushOptions::default() };
        let options = ReplayOptions { push, sequential };
        let noting = lowered.keeps.then(|| Arc::clone(&bindings));
        let versions = noting.as_ref().map(|bindings| &bindings.versions.1);
        let call = ReplayCall { engine, touched: &touched, variables: &variables, options, versions };
        Ok(push_replay(&lowered.replay, &call, bindings)?)
    }

    /// Makes sure, once, that there may be memory for an arena: a call of a program that can never run changes nothing.
    fn probe(&self) -> Result<(), ProgramError> {
        if self.arenas.host > 0 && self.probed.get().is_none() {
            Block::probe_arena(self.arenas.host)?;
            let _ = self.probed.set(());
        }
        Ok(())
    }

    /// The buffers that are new in this call.
    fn buffers(&self, recorded: &Recorded) -> Buffers {
        let mut buffers: Buffers = Vec::new();
        if !self.fresh.is_empty() {
            buffers.resize(recorded.entries.len(), None);
        }
        for number in &self.fresh {
            let entry = &recorded.entries[*number];
            buffers[*number] = Some(match entry.home {
                None => Buffer::new(&recorded.engine, entry.bytes),
                Some(home) => Buffer::new_on(&recorded.engine, entry.bytes, home),
            });
        }
        buffers
    }

    fn base(&self, call: &Located<'_>, arenas: &DeviceArenas, entry: usize) -> Base {
        let given = || call.given.iter().find(|(result, _)| *result == entry);
        let storage = |entry: usize| call.buffer(entry).and_then(|(buffer, _)| buffer.storage().ok()).map(Arc::clone);
        let is_own = call.fresh.get(entry).is_some_and(Option::is_some) && !call.recorded.entries[entry].is_shown;
        if is_own && let Some(own) = storage(entry) {
            return match given().and_then(|(_, argument)| storage(*argument)) {
                Some(argument) => Base::Given(own, argument),
                None => Base::Made(own),
            };
        }
        match (self.offsets[entry], call.buffer(entry)) {
            (Some(offset), _) => match call.recorded.entries[entry].device() {
                None => Base::Arena(offset),
                Some(device) => match arenas.iter().find(|(known, _)| *known == device) {
                    Some((_, arena)) => Base::Buffer(Arc::clone(arena), offset.cast_signed()),
                    None => unreachable!("what has a place in an arena has an arena"),
                },
            },
            (None, Some((buffer, by))) => Base::Buffer(Arc::clone(buffer), by),
            (None, None) => Base::Nowhere,
        }
    }

    /// The replay that is pushed for this call.
    fn lowered(&self, call: &Located<'_>, together: bool) -> Result<Arc<Lowered>, ProgramError> {
        let buffers: SmallVec<[Option<&Arc<Buffer>>; 16]> =
            (0..call.recorded.entries.len()).map(|entry| call.buffer(entry).map(|(buffer, _)| buffer)).collect();
        let shape = Shape { devices: known_devices(&buffers), given: call.given.clone(), together };
        let find = || {
            let lowered = self.lowered.lock().unwrap_or_else(PoisonError::into_inner);
            let mut known = lowered.iter().filter(|(known, _)| *known == shape);
            known.next().map(|(_, lowered)| Arc::clone(lowered))
        };
        let lowered = if let Some(known) = find() {
            known
        } else {
            let parts = (&self.instructions[..], &self.offsets[..], &self.copied[..]);
            let how = (self.whole, together);
            let made = Arc::new(Lowered::new(call.recorded, parts, &shape.devices, &shape.given, how)?);
            let mut lowered = self.lowered.lock().unwrap_or_else(PoisonError::into_inner);
            lowered.push((shape.clone(), Arc::clone(&made)));
            made
        };
        if lowered.devices != shape.devices {
            set_known_devices(&buffers, &lowered.devices);
        }
        Ok(lowered)
    }
}

/// The donations of one call.
pub(super) type Donated<'a> = SmallVec<[&'a Donation; 4]>;

/// The key shared by calls that push the same replay.
#[derive(Clone, PartialEq, Eq)]
struct Shape {
    /// The devices of their entries, most of them on none in particular.
    devices: Devices,
    /// Results in the place of arguments.
    given: Given,
    /// Whether steps of devices are issued together.
    together: bool,
}

/// The arenas of a call in the memory of devices.
type DeviceArenas = SmallVec<[(u16, Arc<Buffer>); 1]>;

/// Where the entries of a call lie.
struct Located<'a> {
    recorded: &'a Recorded,
    arguments: &'a [&'a Array],
    moved: &'a Moved,
    fresh: &'a Buffers,
    given: Given,
}

/// Results, and the arguments that gave them their places.
type Given = SmallVec<[(usize, usize); 2]>;

impl<'a> Located<'a> {
    /// The buffer of an entry, and how far the entry has moved; behind the entries, those of the constants that are copied.
    fn buffer(&self, entry: usize) -> Option<(&'a Arc<Buffer>, isize)> {
        let entries = &self.recorded.entries;
        if let Some(constant) = entry.checked_sub(entries.len()) {
            return match &entries[constant].source {
                Source::Constant { array, .. } => Some((array.buffer(), 0)),
                _ => None,
            };
        }
        match &entries[entry].source {
            Source::Argument(first) => Some((self.arguments[*first].buffer(), self.moved[entry])),
            Source::State(array) | Source::Constant { array, copied: false } => Some((array.buffer(), 0)),
            _ => Some((self.fresh.get(entry)?.as_ref()?, 0)),
        }
    }
}
