//! From planned instructions to steps of a replay of the engine.

use super::bound::{Bindings, BlockedStep, CopyStep, NativeStep, OpaqueStep, PartStep, Places};
use super::failure_groups::{Share, SharedStep, shares};
use super::graphs::Parts;
use super::last_access::{Look, Spans};
use super::layout_cache::Keeper;
use super::ports::Ports;
use crate::ProgramError;
use crate::recorded::{Entry, EntryAccess, Instruction, Recorded, Source};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use weft_array::{Access, Array, ArrayError, Portion, Step, Touch};
use weft_engine::{
    AccessKind, Device, EngineError, PortId, Replay, ReplayBuilder, StepId, StepKind, StepOptions, Variable,
};

/// The device of each entry, as far as that is known.
pub(super) type Devices = SmallVec<[Option<u16>; 8]>;

/// Calls of a program that may be under way: the next one begins layer by layer while one ends. Their arenas are their own.
const INSTANCES: u32 = 2;

/// A replay, and its bindings at each push.
pub(super) struct Lowered {
    pub(super) replay: Replay<Bindings>,
    /// By entry: the access to its buffer.
    pub(super) touched: Vec<(usize, Vec<Touch>)>,
    pub(super) variables: Vec<(PortId, Variable, AccessKind)>,
    /// The device of each entry, once a call has been pushed.
    pub(super) devices: Devices,
    /// Whether steps ask for versions.
    pub(super) keeps: bool,
}

pub(super) struct Lowering<'a> {
    pub(super) recorded: &'a Recorded,
    pub(super) offsets: &'a [Option<usize>],
    /// Results in the place of arguments that were given away.
    pub(super) given: &'a [(usize, usize)],
    pub(super) builder: ReplayBuilder<Bindings>,
    pub(super) arenas: HashMap<Option<u16>, Spans>,
    pub(super) own: HashMap<usize, Spans>,
    pub(super) ports: HashMap<usize, Ports>,
    pub(super) variables: HashMap<u64, (Variable, Spans, Ports)>,
    pub(super) steps: Vec<StepId>,
    /// Of each step its instruction.
    pub(super) of_steps: Vec<usize>,
    /// For each instruction those before it.
    pub(super) before: Vec<Vec<usize>>,
    /// The step of the part that is being entered.
    pub(super) entering: Option<StepId>,
    /// Steps with members, so far.
    pub(super) parts: usize,
    /// Whether a step keeps its layouts.
    pub(super) keeps: bool,
}

/// The place where each instruction runs, and the devices of its results, by the rule of any push.
fn placed(entries: &[Entry], instructions: &[Instruction], devices: &mut Devices) -> Vec<Device> {
    let mut all = Vec::with_capacity(instructions.len());
    for (device, entry) in devices.iter_mut().zip(entries) {
        *device = device.or(entry.device()).or(entry.belongs);
    }
    let is_elsewhere = |place: &EntryAccess| entries[place.entry].home.is_some();
    for instruction in instructions {
        let known = |writes: bool| {
            let mut places = instruction.places.iter().filter(|place| (place.access != Access::Read) == writes);
            places.find_map(|place| Some((devices[place.entry]?, is_elsewhere(place))))
        };
        let found = known(true).or_else(|| known(false));
        if let Some((found, elsewhere)) = found {
            let written = instruction.places.iter().filter(|place| place.access != Access::Read);
            for place in written.filter(|place| is_elsewhere(place) == elsewhere) {
                devices[place.entry].get_or_insert(found);
            }
        }
        let found = found.map(|(device, _)| device);
        let index = if instruction.at_arrays { found.unwrap_or(0) } else { instruction.device.index };
        all.push(Device { index, ..instruction.device });
    }
    all
}

impl Lowered {
    /// The instructions with their temporaries at these offsets, for a call whose entries are on these devices.
    /// `together` allows steps of devices to be issued together.
    pub(super) fn new(
        recorded: &Recorded,
        (instructions, offsets, copied): (&[Instruction], &[Option<usize>], &[usize]),
        devices: &Devices,
        given: &[(usize, usize)],
        (whole, together): (bool, bool),
    ) -> Result<Self, ProgramError> {
        let lower = |parts: &Parts| {
            let mut lowering = Lowering::new(recorded, offsets, given, instructions.len());
            lowering.make_ports(instructions, copied);
            for number in copied {
                if let Source::Constant { array, .. } = &recorded.entries[*number].source {
                    lowering.copy(*number, array)?;
                }
            }
            let mut devices = devices.clone();
            let apart = recorded.engine.policy().separates_devices();
            let placed = placed(&recorded.entries, instructions, &mut devices);
            let mut starts = parts.parts.iter().peekable();
            let mut end = 0;
            for (place, at) in parts.order.iter().enumerate() {
                if let Some((first, count)) = starts.next_if(|(first, _)| *first == place) {
                    end = first + count;
                    let members: Vec<_> = parts.order[*first..end].iter().map(|at| &instructions[*at]).collect();
                    lowering.part(&members);
                } else if place == end {
                    lowering.entering = None;
                }
                let device = apart.then_some(placed[*at]);
                lowering.instruction((*at, &instructions[*at]), device, whole)?;
            }
            Ok::<_, EngineError>((lowering, devices))
        };
        let in_order = Parts { order: (0..instructions.len()).collect(), parts: Vec::new() };
        let (mut lowering, mut devices) = lower(&in_order).map_err(ArrayError::from)?;
        if together {
            let parts = Parts::new(instructions, &lowering.before);
            if !parts.parts.is_empty() {
                (lowering, devices) = lower(&parts).map_err(ArrayError::from)?;
            }
        }
        lowering.finish(devices).map_err(|error| ArrayError::from(error).into())
    }
}

impl<'a> Lowering<'a> {
    fn new(
        recorded: &'a Recorded,
        offsets: &'a [Option<usize>],
        given: &'a [(usize, usize)],
        instructions: usize,
    ) -> Self {
        let mut builder = ReplayBuilder::new();
        builder.name(&recorded.name);
        builder.instances(INSTANCES);
        Self {
            recorded,
            offsets,
            given,
            builder,
            arenas: HashMap::new(),
            own: HashMap::new(),
            ports: HashMap::new(),
            variables: HashMap::new(),
            steps: Vec::new(),
            of_steps: Vec::new(),
            before: vec![Vec::new(); instructions],
            entering: None,
            parts: 0,
            keeps: false,
        }
    }

    /// Enters the step that issues these instructions together; they come next.
    fn part(&mut self, members: &[&Instruction]) {
        let opaque = |instruction: &&Instruction| match &instruction.step {
            Step::Opaque(opaque) => (Arc::clone(opaque), self.places(instruction)),
            _ => unreachable!("what may be issued together is opaque"),
        };
        let of_members: Vec<_> = members.iter().map(opaque).collect();
        let (Some((opaque, _)), Some(last)) = (of_members.first(), members.last()) else { return };
        let name = format!("{}: {} ops up to {}", self.recorded.name, members.len(), last.name);
        let (Some(together), queue) = (opaque.together(&name, last.place), opaque.queue()) else {
            unreachable!("a step that may be issued together says how")
        };
        // All entries in the arena of the device lie in one buffer.
        let in_arena = |entry: usize| self.offsets[entry].is_some();
        let mut entries: Vec<usize> = Vec::new();
        for place in members.iter().flat_map(|instruction| &instruction.places) {
            let known = |entry: &usize| *entry == place.entry || in_arena(*entry) && in_arena(place.entry);
            if !entries.iter().any(known) {
                entries.push(place.entry);
            }
        }
        let kind = queue.map_or(StepKind::Native, StepKind::InOrder);
        let step = PartStep { together, members: of_members, entries, part: self.parts };
        self.parts += 1;
        self.entering =
            Some(self.builder.step(step, &StepOptions { kind, name: Some(&name), ..StepOptions::default() }));
    }

    fn copy(&mut self, number: usize, array: &Array) -> Result<(), EngineError> {
        let bytes = self.recorded.entries[number].bytes.max(1);
        let reads = Look { range: 0..bytes, entry: self.source_of(number), sees: true, writes: false, spares: false };
        let writes = Look { range: 0..bytes, entry: number, sees: false, writes: true, spares: false };
        let looks = [reads, writes].map(|look| self.in_space(look)).into_iter().collect();
        let step = CopyStep { from: array.clone(), to: small(number) };
        let options = StepOptions { name: Some("copy"), cost: cost(bytes), ..StepOptions::default() };
        let id = self.builder.step(step, &options);
        self.enter(usize::MAX - 1 - number, vec![(id, looks)])
    }

    fn instruction(
        &mut self,
        (at, instruction): (usize, &Instruction),
        device: Option<Device>,
        whole: bool,
    ) -> Result<(), EngineError> {
        let options = StepOptions {
            kind: if device.is_some() { StepKind::Native } else { StepKind::Plain },
            name: Some(&instruction.name),
            place: instruction.place,
            priority: instruction.priority,
            always_run: instruction.always_run,
            device: device.unwrap_or_default(),
            ..StepOptions::default()
        };
        let mut steps = Vec::new();
        if let Step::Opaque(opaque) = &instruction.step {
            let id = if let Some(part) = self.entering {
                self.builder.member(part, Some(&instruction.name))?
            } else {
                let places = self.places(instruction);
                let native = || opaque.queue().map_or(StepKind::Native, StepKind::InOrder);
                let kind = if opaque.is_hosted() { StepKind::Hosted } else { native() };
                let step = OpaqueStep { step: Arc::clone(opaque), places, instruction: at };
                self.builder.step(step, &StepOptions { kind, ..options })
            };
            steps.push((id, self.looks(instruction, None)));
        }
        if let Step::Blocked(blocked) = &instruction.step {
            let keeper = Keeper::of(blocked, instruction, &self.recorded.entries);
            self.keeps |= keeper.is_some();
            let places = self.places(instruction);
            let step = BlockedStep { step: Arc::clone(blocked), keeper, places, instruction: at };
            let cost = u32::try_from(blocked.operations() / 16).unwrap_or(u32::MAX);
            let id = self.builder.step(step, &StepOptions { kind: StepKind::Native, cost, ..options });
            steps.push((id, self.looks(instruction, None)));
        }
        let shares = if let Step::Fused(fused) = &instruction.step { shares(fused) } else { Vec::new() };
        let shares: Arc<[Share]> = shares.into();
        for portion in Portion::of(&instruction.step, whole) {
            let rows = portion.rows();
            let looks = self.looks(instruction, rows.as_ref());
            let bytes = looks.iter().map(|(_, look)| look.range.len()).sum();
            let operand = |place: &EntryAccess| (small(place.entry), place.layout.offset);
            let operands = instruction.places.iter().map(operand).collect();
            let options = StepOptions { cost: portion.cost(bytes), ..options };
            match portion {
                Portion::Fused(fused, blocks) if !shares.is_empty() => {
                    let (shares_of_it, part) = (Arc::clone(&shares), self.parts);
                    self.parts += 1;
                    let step = SharedStep { fused, blocks, shares: shares_of_it, operands, instruction: at, part };
                    let id = self.builder.step(step, &options);
                    for share in &*shares {
                        let member = self.builder.member(id, Some(&instruction.name))?;
                        steps.push((member, self.looks_of(instruction, share, rows.as_ref())));
                    }
                }
                portion => {
                    let id = self.builder.step(NativeStep { portion, operands, instruction: at }, &options);
                    steps.push((id, looks));
                }
            }
        }
        self.enter(at, steps)
    }

    fn places(&self, instruction: &Instruction) -> Places {
        Places { engine: self.recorded.engine.clone(), places: instruction.places.clone() }
    }

    fn finish(mut self, devices: Devices) -> Result<Lowered, EngineError> {
        let mut entries: Vec<usize> = self.ports.keys().copied().collect();
        entries.sort_unstable();
        let mut of_entries = Vec::with_capacity(entries.len());
        for entry in entries {
            let (Some(spans), Some(ports)) = (self.own.get(&entry), self.ports.get(&entry)) else { continue };
            let is_empty = self.recorded.entries.get(entry).is_some_and(|entry| entry.bytes == 0);
            let mut touches = Vec::with_capacity(ports.ids.len());
            for (at, port) in ports.ids.iter().enumerate() {
                let access = Self::resolve(&mut self.builder, &self.steps, spans, ports, at)?;
                let range = if is_empty { 0..0 } else { ports.ranges[at].clone() };
                touches.push(Touch { port: *port, range, access });
            }
            of_entries.push((entry, touches));
        }
        let mut variables = Vec::with_capacity(self.variables.len());
        for (variable, spans, ports) in self.variables.values() {
            let access = Self::resolve(&mut self.builder, &self.steps, spans, ports, 0)?;
            let kind = match access {
                Access::Read => AccessKind::Read,
                Access::Mutate => AccessKind::Mutate,
                Access::Overwrite => AccessKind::Overwrite,
            };
            variables.push((ports.ids[0], variable.clone(), kind));
        }
        let replay = self.recorded.engine.new_replay(self.builder)?;
        Ok(Lowered { replay, touched: of_entries, variables, devices, keeps: self.keeps })
    }
}

#[allow(clippy::cast_possible_truncation)] // a replay has fewer
pub(super) fn small(number: usize) -> u32 {
    number as u32
}

fn cost(bytes: usize) -> u32 {
    u32::try_from(bytes / 8 + 100).unwrap_or(u32::MAX)
}
