//! From planned instructions to a replay of the engine: steps, who comes after whom, ports.

use super::bound::{Bindings, BlockedStep, CopyStep, NativeStep, OpaqueStep, PartStep, Places};
use super::keeper::Keeper;
use super::parts::Parts;
use super::spans::{Before, Look, OUTSIDE, Spans, together};
use crate::ProgramError;
use crate::recorded::{Entry, Instruction, Place, Recorded, Source};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use weft_array::{Access, Array, ArrayError, Portion, Step, Touch};
use weft_engine::{
    AccessKind, Device, EngineError, Policy, PortId, Replay, ReplayBuilder, StepId, StepKind, StepOptions, Variable,
};

/// Ports of one entry at most; of more ranges one port has all.
const PORTS: usize = 64;

/// The device of each entry, as far as that is known.
pub(super) type Devices = SmallVec<[Option<u16>; 8]>;

/// A replay, and what is bound to it at each push.
pub(super) struct Lowered {
    pub(super) replay: Replay<Bindings>,
    /// By entry: what is done to its buffer.
    pub(super) touched: Vec<(usize, Vec<Touch>)>,
    pub(super) variables: Vec<(PortId, Variable, AccessKind)>,
    /// The device of each entry, once a call has been pushed.
    pub(super) devices: Devices,
    /// Whether steps ask for versions.
    pub(super) keeps: bool,
}

/// Where the bytes of something are kept account of.
enum Space {
    /// In the arena of the host, or of a device.
    Arena(Option<u16>),
    /// In a buffer of its own, or in none.
    Own(usize),
    Variable(u64),
}

/// The ports of an entry: ranges, in order.
struct Ports {
    ranges: Vec<Range<usize>>,
    ids: Vec<PortId>,
    written: Vec<bool>,
    seen: Vec<bool>,
}

impl Ports {
    fn of(&self, range: &Range<usize>) -> usize {
        self.ranges.partition_point(|known| known.start <= range.start).saturating_sub(1)
    }
}

struct Lowering<'a> {
    recorded: &'a Recorded,
    offsets: &'a [Option<usize>],
    /// Results in the place of arguments that were given away.
    given: &'a [(usize, usize)],
    builder: ReplayBuilder<Bindings>,
    arenas: HashMap<Option<u16>, Spans>,
    own: HashMap<usize, Spans>,
    ports: HashMap<usize, Ports>,
    variables: HashMap<u64, (Variable, Spans, Ports)>,
    steps: Vec<StepId>,
    /// Of each step its instruction.
    of_steps: Vec<usize>,
    /// For each instruction those before it.
    before: Vec<Vec<usize>>,
    /// The step of the part whose members are being entered.
    entering: Option<StepId>,
    parts: usize,
    /// Whether a step keeps what it lays out.
    keeps: bool,
}

/// What one step does, and where.
type Looks = SmallVec<[(Space, Look); 4]>;

/// The bytes of an entry that a place reaches: something has none has one, for what comes after what.
fn range_of(entry: &Entry, range: &Range<usize>) -> Range<usize> {
    if entry.bytes == 0 { 0..1 } else { range.clone() }
}

/// Where each instruction runs, and on which devices what they write belongs, by the rule of any push.
fn placed(entries: &[Entry], instructions: &[Instruction], devices: &mut Devices) -> Vec<Device> {
    let mut all = Vec::with_capacity(instructions.len());
    for (device, entry) in devices.iter_mut().zip(entries) {
        *device = device.or(entry.device()).or(entry.belongs);
    }
    let is_elsewhere = |place: &Place| entries[place.entry].home.is_some();
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
    /// The instructions with their temporaries at these offsets, for a call whose entries are on these devices. `together` says
    /// whether steps of devices may be issued together.
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
            let apart = recorded.engine.policy() == Policy::PerDevice;
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

    /// Enters what issues these instructions together, which come next.
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
        // What lies in the arena of the device lies in one buffer.
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

    /// Whether an entry lies in a buffer, whose accesses are ports.
    fn is_bound(&self, entry: usize) -> bool {
        self.offsets.get(entry).is_none_or(Option::is_none)
    }

    fn make_ports(&mut self, instructions: &[Instruction], copied: &[usize]) {
        let mut reached: HashMap<usize, Vec<Range<usize>>> = HashMap::new();
        for place in instructions.iter().flat_map(|instruction| &instruction.places) {
            let range = range_of(&self.recorded.entries[place.entry], &place.range);
            if self.is_bound(place.entry) && !range.is_empty() {
                let ranges = reached.entry(place.entry).or_default();
                if ranges.last() != Some(&range) {
                    ranges.push(range.clone());
                }
                if let Some(argument) = self.place_of(place.entry) {
                    reached.entry(argument).or_default().push(range);
                }
            }
        }
        for number in copied {
            let bytes = self.recorded.entries[*number].bytes.max(1);
            for entry in [*number, self.source_of(*number)] {
                if self.is_bound(entry) {
                    reached.entry(entry).or_default().push(0..bytes);
                }
            }
        }
        let mut reached: Vec<_> = reached.into_iter().collect();
        reached.sort_unstable_by_key(|(entry, _)| *entry);
        for (entry, ranges) in reached {
            let ranges = together(ranges, PORTS);
            let ids = ranges.iter().map(|_| self.builder.port()).collect();
            let (written, seen) = (vec![false; ranges.len()], vec![false; ranges.len()]);
            self.ports.insert(entry, Ports { ranges, ids, written, seen });
        }
    }

    /// The argument in whose place an entry lies.
    fn place_of(&self, entry: usize) -> Option<usize> {
        self.given.iter().find(|(result, _)| *result == entry).map(|(_, argument)| *argument)
    }

    /// The number by which the memory goes from which a constant is copied.
    fn source_of(&self, constant: usize) -> usize {
        self.recorded.entries.len() + constant
    }

    fn look(&self, place: &Place, rows: Option<&Range<usize>>) -> Option<(Space, Look)> {
        let entry = &self.recorded.entries[place.entry];
        let mut range = range_of(entry, &place.range);
        if let Some(rows) = rows {
            let (start, item) = (range.start, place.dtype.size());
            range = start + rows.start * item..start + rows.end * item;
        }
        if range.is_empty() {
            return None;
        }
        let sees = place.access != Access::Overwrite || !place.is_dense();
        let look = Look { range, entry: place.entry, sees, writes: place.access != Access::Read, spares: false };
        Some(self.in_space(look))
    }

    /// Where an entry's bytes are kept account of, and its range there.
    fn in_space(&self, mut look: Look) -> (Space, Look) {
        match self.offsets.get(look.entry).copied().flatten() {
            Some(offset) => {
                look.range = look.range.start + offset..look.range.end + offset;
                (Space::Arena(self.recorded.entries[look.entry].device()), look)
            }
            None => (Space::Own(look.entry), look),
        }
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
        for portion in Portion::of(&instruction.step, whole) {
            let rows = portion.rows();
            let looks = self.looks(instruction, rows.as_ref());
            let bytes = looks.iter().map(|(_, look)| look.range.len()).sum();
            let operand = |place: &Place| (small(place.entry), place.layout.offset);
            let operands = instruction.places.iter().map(operand).collect();
            let options = StepOptions { cost: portion.cost(bytes), ..options };
            let id = self.builder.step(NativeStep { portion, operands, instruction: at }, &options);
            steps.push((id, looks));
        }
        self.enter(at, steps)
    }

    fn places(&self, instruction: &Instruction) -> Places {
        Places { engine: self.recorded.engine.clone(), places: instruction.places.clone() }
    }

    /// What a step of an instruction does, if it touches these rows of all operands, or all.
    fn looks(&mut self, instruction: &Instruction, rows: Option<&Range<usize>>) -> Looks {
        let places = instruction.places.iter();
        let mut looks: Looks = places.filter_map(|place| self.look(place, rows)).collect();
        for at in 0..looks.len() {
            // What lies in the place of an argument comes behind all that touches that, too.
            if let Some(argument) = self.place_of(looks[at].1.entry) {
                let look = looks[at].1.clone();
                looks.push((Space::Own(argument), look));
            }
        }
        for (variable, kind) in &instruction.variables {
            let number = variable.number();
            if !self.variables.contains_key(&number) {
                let ports = Ports {
                    ranges: std::iter::once(0..1).collect(),
                    ids: vec![self.builder.port()],
                    written: vec![false],
                    seen: vec![false],
                };
                self.variables.insert(number, (variable.clone(), Spans::new(usize::MAX, true), ports));
            }
            let (sees, writes) = (kind.sees_value(), kind.is_exclusive());
            let look = Look { range: 0..1, entry: usize::MAX, sees, writes, spares: false };
            looks.push((Space::Variable(number), look));
        }
        for (_, look) in &mut looks {
            look.spares = instruction.always_run && look.sees && look.writes;
        }
        // Who reads what he writes has read it before.
        looks.sort_by_key(|(_, look)| look.writes);
        looks
    }

    fn spans(&mut self, space: &Space) -> (&mut Spans, Option<&mut Ports>) {
        match space {
            Space::Arena(device) => (self.arenas.entry(*device).or_insert_with(|| Spans::new(usize::MAX, false)), None),
            Space::Own(entry) => {
                let spans = self.own.entry(*entry).or_insert_with(|| Spans::new(*entry, true));
                (spans, self.ports.get_mut(entry))
            }
            Space::Variable(number) => match self.variables.get_mut(number) {
                Some((_, spans, ports)) => (spans, Some(ports)),
                None => unreachable!("noted with the look"),
            },
        }
    }

    /// Enters the steps of one instruction behind those before it.
    fn enter(&mut self, instruction: usize, steps: Vec<(StepId, Looks)>) -> Result<(), EngineError> {
        for (id, looks) in &steps {
            let mut follows = Vec::new();
            let mut needed: SmallVec<[u32; 8]> = SmallVec::new();
            let mut touched: SmallVec<[PortId; 4]> = SmallVec::new();
            for (space, look) in looks {
                let mut before = Before::default();
                let (spans, ports) = self.spans(space);
                spans.look(look, &mut before);
                let mut bound = None;
                if let Some(ports) = ports {
                    let (at, sees) = (ports.of(&look.range), before.needs.contains(&OUTSIDE));
                    ports.seen[at] |= sees;
                    ports.written[at] |= look.writes;
                    bound = Some(ports.ids[at]);
                    if !sees && !touched.contains(&ports.ids[at]) {
                        touched.push(ports.ids[at]);
                    }
                }
                follows.append(&mut before.follows);
                for earlier in before.needs {
                    match bound {
                        Some(port) if earlier == OUTSIDE => self.builder.touches(*id, port, true)?,
                        _ if needed.contains(&earlier) => {}
                        _ => {
                            self.builder.needs(*id, self.steps[earlier as usize])?;
                            self.note(instruction, self.of_steps[earlier as usize]);
                            needed.push(earlier);
                        }
                    }
                }
            }
            follows.sort_unstable();
            follows.dedup();
            for earlier in follows {
                self.builder.follows(*id, self.steps[earlier as usize])?;
                self.note(instruction, self.of_steps[earlier as usize]);
            }
            for port in touched {
                self.builder.touches(*id, port, false)?;
            }
        }
        for (id, looks) in steps {
            let number = small(self.steps.len());
            self.steps.push(id);
            self.of_steps.push(instruction);
            for (space, look) in &looks {
                self.spans(space).0.enter(look, number, instruction);
            }
        }
        Ok(())
    }

    /// Notes that an instruction comes after another one.
    fn note(&mut self, instruction: usize, earlier: usize) {
        // Constants are copied ahead of all instructions, and are none.
        if earlier != instruction
            && earlier < self.before.len()
            && let Some(before) = self.before.get_mut(instruction)
        {
            before.push(earlier);
        }
    }

    /// Says what the users of a port come to.
    fn resolve(
        builder: &mut ReplayBuilder<Bindings>,
        steps: &[StepId],
        spans: &Spans,
        ports: &Ports,
        at: usize,
    ) -> Result<Access, EngineError> {
        let (makers, left) = spans.makers(&ports.ranges[at]);
        let makers: Vec<StepId> = makers.into_iter().map(|maker| steps[maker as usize]).collect();
        let (kind, access) = if !ports.written[at] {
            (AccessKind::Read, Access::Read)
        } else if left || ports.seen[at] {
            (AccessKind::Mutate, Access::Mutate)
        } else {
            (AccessKind::Overwrite, Access::Overwrite)
        };
        builder.resolve(ports.ids[at], kind, &makers, !left)?;
        Ok(access)
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
fn small(number: usize) -> u32 {
    number as u32
}

fn cost(bytes: usize) -> u32 {
    u32::try_from(bytes / 8 + 100).unwrap_or(u32::MAX)
}
