//! The memory of the steps of a replay, and the edges that follow: ranges of arenas, entries and variables, and ports for
//! memory outside.

use super::bound::Bindings;
use super::failure_groups::Share;
use super::last_access::{Before, Look, OUTSIDE, Spans, together};
use super::lowered::{Lowering, small};
use crate::recorded::{Entry, EntryAccess, Instruction};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;
use weft_array::Access;
use weft_engine::{AccessKind, EngineError, PortId, ReplayBuilder, StepId};

/// Ports of one entry at most; of more ranges one port has all.
const PORTS: usize = 64;

/// Where the bytes of something are kept account of.
pub(super) enum Space {
    /// In the arena of the host, or of a device.
    Arena(Option<u16>),
    /// In a buffer of its own, or in none.
    Own(usize),
    Variable(u64),
}

/// The ports of an entry: ranges, in order.
pub(super) struct Ports {
    pub(super) ranges: Vec<Range<usize>>,
    pub(super) ids: Vec<PortId>,
    /// The steps that change each.
    pub(super) writers: Vec<Vec<StepId>>,
    pub(super) seen: Vec<bool>,
}

impl Ports {
    fn of(&self, range: &Range<usize>) -> usize {
        self.ranges.partition_point(|known| known.start <= range.start).saturating_sub(1)
    }
}

/// The accesses of one step, and their places.
pub(super) type Looks = SmallVec<[(Space, Look); 4]>;

/// The bytes of an entry that a place reaches: one without any has one, for the order of accesses.
fn range_of(entry: &Entry, range: &Range<usize>) -> Range<usize> {
    if entry.bytes == 0 { 0..1 } else { range.clone() }
}

impl Lowering<'_> {
    /// Whether an entry lies in a buffer: its accesses are ports.
    fn is_bound(&self, entry: usize) -> bool {
        self.offsets.get(entry).is_none_or(Option::is_none)
    }

    pub(super) fn make_ports(&mut self, instructions: &[Instruction], copied: &[usize]) {
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
            let (writers, seen) = (vec![Vec::new(); ranges.len()], vec![false; ranges.len()]);
            self.ports.insert(entry, Ports { ranges, ids, writers, seen });
        }
    }

    /// The argument that gave an entry its place.
    fn place_of(&self, entry: usize) -> Option<usize> {
        self.given.iter().find(|(result, _)| *result == entry).map(|(_, argument)| *argument)
    }

    /// The number of the memory that a constant is copied from.
    pub(super) fn source_of(&self, constant: usize) -> usize {
        self.recorded.entries.len() + constant
    }

    fn look(&self, place: &EntryAccess, access: Access, rows: Option<&Range<usize>>) -> Option<(Space, Look)> {
        let entry = &self.recorded.entries[place.entry];
        let mut range = range_of(entry, &place.range);
        if let Some(rows) = rows {
            let (start, item) = (range.start, place.dtype.size());
            range = start + rows.start * item..start + rows.end * item;
        }
        if range.is_empty() {
            return None;
        }
        let sees = access != Access::Overwrite || !place.is_dense();
        let look = Look { range, entry: place.entry, sees, writes: access != Access::Read, spares: false };
        Some(self.in_space(look))
    }

    /// Where an entry's bytes are kept account of, and its range there.
    pub(super) fn in_space(&self, mut look: Look) -> (Space, Look) {
        match self.offsets.get(look.entry).copied().flatten() {
            Some(offset) => {
                look.range = look.range.start + offset..look.range.end + offset;
                (Space::Arena(self.recorded.entries[look.entry].device()), look)
            }
            None => (Space::Own(look.entry), look),
        }
    }

    /// The accesses of an instruction's step to these rows of all operands, or to all.
    pub(super) fn looks(&mut self, instruction: &Instruction, rows: Option<&Range<usize>>) -> Looks {
        let mut looks = self.looks_at(instruction.places.iter().map(|place| (place, place.access)), rows);
        for (variable, kind) in &instruction.variables {
            let number = variable.number();
            if !self.variables.contains_key(&number) {
                let ports = Ports {
                    ranges: std::iter::once(0..1).collect(),
                    ids: vec![self.builder.port()],
                    writers: vec![Vec::new()],
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
        // A step that reads its own output has read it before.
        looks.sort_by_key(|(_, look)| look.writes);
        looks
    }

    /// The accesses of a share of its loops, if they are fused, to these rows.
    pub(super) fn looks_of(&self, instruction: &Instruction, share: &Share, rows: Option<&Range<usize>>) -> Looks {
        let place = |array: &usize, access| (&instruction.places[*array], access);
        let reads = share.owes.iter().map(|array| place(array, Access::Read));
        self.looks_at(reads.chain(share.leaves.iter().map(|array| place(array, Access::Overwrite))), rows)
    }

    /// The accesses to these places.
    fn looks_at<'a>(
        &self,
        places: impl Iterator<Item = (&'a EntryAccess, Access)>,
        rows: Option<&Range<usize>>,
    ) -> Looks {
        let mut looks: Looks = places.filter_map(|(place, access)| self.look(place, access, rows)).collect();
        for at in 0..looks.len() {
            // An entry in the place of an argument comes behind all accesses to that, too.
            if let Some(argument) = self.place_of(looks[at].1.entry) {
                let look = looks[at].1.clone();
                looks.push((Space::Own(argument), look));
            }
        }
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
    pub(super) fn enter(&mut self, instruction: usize, steps: Vec<(StepId, Looks)>) -> Result<(), EngineError> {
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
                    if look.writes && ports.writers[at].last() != Some(id) {
                        ports.writers[at].push(*id);
                    }
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

    /// Tells the fate of the users of a port.
    pub(super) fn resolve(
        builder: &mut ReplayBuilder<Bindings>,
        steps: &[StepId],
        spans: &Spans,
        ports: &Ports,
        at: usize,
    ) -> Result<Access, EngineError> {
        let (makers, left) = spans.makers(&ports.ranges[at]);
        let makers: Vec<StepId> = makers.into_iter().map(|maker| steps[maker as usize]).collect();
        let (kind, access) = if ports.writers[at].is_empty() {
            (AccessKind::Read, Access::Read)
        } else if left || ports.seen[at] {
            (AccessKind::Mutate, Access::Mutate)
        } else {
            (AccessKind::Overwrite, Access::Overwrite)
        };
        builder.resolve(ports.ids[at], kind, (&makers, !left), &ports.writers[at])?;
        Ok(access)
    }
}
