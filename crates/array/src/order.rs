//! Which variables an access to some bytes of a buffer touches.
//!
//! A buffer has one variable for the whole, and variables for ranges that were written on their own. It is in one of
//! two states, which change only by an op of their own:
//!
//! | state | an access to the whole | an access to a range | becomes |
//! |---|---|---|---|
//! | whole | the buffer's variable | to read: the buffer's variable | to write a range: *split*, by a barrier behind all before |
//! | split | becomes whole first | reads the buffer's variable, or the *gate*; and the variables of all ranges that it overlaps, its own among them | whole, by a *join*: reads the ranges' variables, mutates the buffer's |
//!
//! The gate is a variable of no values, which the barrier and the join take: who reads it comes between the two. An op
//! that sees nothing of what was there at the split reads it instead of the buffer's variable, and so owes nothing to
//! the buffer's failure: it overwrites its range, or all that it sees was written since. An overwrite takes its range
//! from those that it overlaps, which keep their failure and the rest: what it made has a variable of its own.
//!
//! An op that has the whole of a buffer and writes to a range of it too has all of it.
//!
//! So writes to disjoint ranges run side by side, and two accesses to overlapping ranges meet at the variable of the
//! one whose range was named first. A range's failure reaches the whole through the join.
//!
//! What ranges there are is decided together with the push that follows from it, under one lock for all buffers
//! (`pushing`).

use crate::pushing::Pushing;
use crate::{Array, Buffer};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use weft_engine::{AccessKind, Accesses, Engine, EngineError, OpContext, Payload, PushOptions, Variable};

/// Ranges of one buffer before they are joined: looking through them takes time.
const RANGES: usize = 256;

/// A range with a variable of its own.
struct Part {
    range: Range<usize>,
    variable: Variable,
    /// Whether it was written since the split: its variable tells all of its failure.
    written: bool,
    /// Whether the variable is that of another range too.
    is_shared: bool,
}

impl Part {
    fn overlaps(&self, range: &Range<usize>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }
}

/// What was pushed on a buffer.
#[derive(Default)]
pub(crate) struct Ranges {
    split: bool,
    parts: Vec<Part>,
    gate: Option<Variable>,
    /// Mutations pushed.
    version: u64,
    /// The op that fills the whole buffer, while nothing else has written to it since.
    pub(crate) producer: Option<std::sync::Weak<crate::elementwise::Job>>,
    /// Whether anybody has looked at what it fills since.
    pub(crate) seen: bool,
    /// The device on which it belongs, once that is known.
    device: Option<u16>,
}

impl Ranges {
    /// Of a buffer that belongs on this device, if that is known.
    pub(crate) fn on(device: Option<u16>) -> Self {
        Self { device, ..Self::default() }
    }

    /// Mutations pushed.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Whether anything was pushed on it: memory that someone else has filled may be read before it is written.
    pub(crate) fn is_used(&self) -> bool {
        self.version > 0 || self.seen
    }

    pub(crate) fn is_split(&self) -> bool {
        self.split
    }

    /// Notes an op that is being pushed.
    #[inline]
    fn note(&mut self, access: Access) {
        if access == Access::Read {
            self.seen = true;
        } else {
            self.version += 1;
            self.producer = None;
        }
    }

    /// Whether all of a range was written since the split.
    fn is_written(&self, range: &Range<usize>) -> bool {
        let mut from = range.start;
        while from < range.end {
            let here =
                self.parts.iter().filter(|part| part.written && part.range.start <= from && from < part.range.end);
            match here.map(|part| part.range.end).max() {
                Some(end) => from = end,
                None => return false,
            }
        }
        true
    }

    /// The gate.
    fn gate(&mut self, buffer: &Buffer) -> Variable {
        self.gate.get_or_insert_with(|| buffer.engine().new_variable(None)).clone()
    }
}

/// What an op does with an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Looks at it.
    Read,
    /// Changes it.
    Mutate,
    /// Writes all its elements without looking at them.
    Overwrite,
}

/// Variables of ranges, with what is done to them.
type Parts = SmallVec<[(Variable, AccessKind); 4]>;

/// What an op does with one buffer, all its arrays on it taken together.
struct Use {
    /// It looks at, or writes to, all of it.
    whole: bool,
    /// It writes to a part of it.
    writes_part: bool,
    /// How many of its arrays come before the one in question, and how many there are.
    before: usize,
    count: usize,
}

impl Use {
    #[inline]
    fn of(arrays: &[(&Array, Access)], index: usize) -> Self {
        let buffer = arrays[index].0.buffer();
        let mut all = Self { whole: false, writes_part: false, before: 0, count: 0 };
        for (other, (array, access)) in arrays.iter().enumerate() {
            if Arc::ptr_eq(array.buffer(), buffer) {
                let range = array.range();
                let whole = buffer.is_whole(&range);
                all.whole |= whole;
                all.writes_part |= !whole && !range.is_empty() && *access != Access::Read;
                all.before += usize::from(other < index);
                all.count += 1;
            }
        }
        all
    }
}

/// Notes what the op does with one of its arrays, changes the buffer's state if need be, and collects the variables
/// of ranges. Answers what is done to the buffer's own variable, if anything.
///
/// The states that the op's arrays on one buffer ask for must not come one after the other: an access in one state
/// would be unknown to those who come in the next. So whoever also has the whole takes all of it.
#[inline]
fn enter(
    pushing: &mut Pushing,
    arrays: &[(&Array, Access)],
    index: usize,
    parts: &mut Parts,
) -> Result<Option<AccessKind>, EngineError> {
    let (array, mut access) = arrays[index];
    let (buffer, range) = (array.buffer(), array.range());
    if access == Access::Overwrite && !array.is_contiguous() {
        access = Access::Mutate; // what lies between its elements stays
    }
    let of_op = Use::of(arrays, index);
    let is_whole = buffer.is_whole(&range);
    if range.is_empty() && !is_whole {
        return Ok(Some(AccessKind::Read)); // there is nothing to be looked at, or written
    }
    let ranges = buffer.ranges.get(pushing);
    ranges.note(access);
    if of_op.whole {
        if ranges.split {
            join(ranges, buffer)?;
        }
        return Ok(Some(match access {
            Access::Read => AccessKind::Read,
            Access::Overwrite if is_whole => AccessKind::Overwrite,
            Access::Mutate | Access::Overwrite => AccessKind::Mutate,
        }));
    }
    if ranges.split && of_op.before == 0 && ranges.parts.len() + of_op.count > RANGES {
        join(ranges, buffer)?;
    }
    if !ranges.split && of_op.writes_part {
        barrier(ranges, buffer)?;
        ranges.split = true;
    }
    if ranges.split {
        // An op that also looks at the buffer elsewhere may look at what it overwrites.
        let sees = access != Access::Overwrite || of_op.count > 1;
        let owes = sees && !ranges.is_written(&range);
        if sees {
            part(ranges, buffer, &range, access, parts);
        } else {
            take_part(ranges, buffer, &range, parts);
        }
        if !owes {
            parts.push((ranges.gate(buffer), AccessKind::Read));
            return Ok(None);
        }
    }
    Ok(Some(AccessKind::Read))
}

/// Notes what an op does with all of a buffer, and makes that whole.
#[inline]
pub(crate) fn enter_whole(pushing: &mut Pushing, buffer: &Buffer, access: Access) -> Result<(), EngineError> {
    let ranges = buffer.ranges.get(pushing);
    ranges.note(access);
    if ranges.split { join(ranges, buffer) } else { Ok(()) }
}

/// Whether nothing was ever pushed on a buffer.
pub(crate) fn is_untouched(buffer: &Buffer) -> bool {
    !buffer.ranges.get(&mut Pushing::lock()).is_used()
}

/// The device on which an op on these arrays runs: that of what it writes, or else of what it reads. What it writes
/// belongs there from now on, unless that is the host's memory, and the device has one of its own.
#[inline]
pub(crate) fn place(pushing: &mut Pushing, arrays: &[(&Array, Access)]) -> u16 {
    let mut found = None;
    for wanted in [true, false] {
        for (array, _) in arrays.iter().filter(|(_, access)| (*access != Access::Read) == wanted) {
            let buffer = array.buffer();
            let device = buffer.ranges.get(pushing).device;
            found = found.or(device.map(|device| (device, buffer.is_elsewhere())));
        }
    }
    let Some((device, elsewhere)) = found else { return 0 };
    for (array, _) in arrays.iter().filter(|(_, access)| *access != Access::Read) {
        if array.buffer().is_elsewhere() == elsewhere {
            array.buffer().ranges.get(pushing).device.get_or_insert(device);
        }
    }
    device
}

/// Whether an op on these arrays could run at this moment, before anything else is pushed: what it reads is there, and
/// nobody has ever touched what it writes to.
#[inline]
pub(crate) fn is_all_there(pushing: &mut Pushing, engine: &Engine, arrays: &[(&Array, Access)]) -> bool {
    !engine.is_closed()
        && arrays.iter().all(|(array, access)| {
            let buffer = array.buffer();
            let ranges = buffer.ranges.get(pushing);
            if *access == Access::Read {
                !ranges.split
                    && buffer.known_variable().is_none_or(|variable| variable.is_ready() && !variable.has_failed())
            } else {
                !ranges.is_used()
            }
        })
}

/// Notes that an op has written to these arrays, without a push.
#[inline]
pub(crate) fn note_written(pushing: &mut Pushing, arrays: &[(&Array, Access)]) {
    for (array, _) in arrays {
        array.buffer().ranges.get(pushing).version += 1;
    }
}

/// Says on which device the buffer belongs.
pub(crate) fn set_device(buffer: &Buffer, device: u16) {
    buffer.ranges.get(&mut Pushing::lock()).device = Some(device);
}

/// The device on which the buffer belongs; the first one if nobody has said.
pub(crate) fn device(buffer: &Buffer) -> u16 {
    buffer.ranges.get(&mut Pushing::lock()).device.unwrap_or(0)
}

/// Enters the arrays' queues as one op, which [`Engine::follow_up`] then is owed.
#[inline]
pub(crate) fn enqueue<P: Payload>(
    pushing: &mut Pushing,
    engine: &Engine,
    arrays: &[(&Array, Access)],
    variables: &[(&Variable, AccessKind)],
    options: &PushOptions<'_>,
    payload: P,
) -> Result<(), EngineError> {
    let (mut parts, mut kinds) = (Parts::new(), SmallVec::<[Option<AccessKind>; 4]>::new());
    for index in 0..arrays.len() {
        kinds.push(enter(pushing, arrays, index, &mut parts)?);
    }
    let mut accesses = Accesses::new(engine);
    for ((array, _), kind) in arrays.iter().zip(kinds) {
        if let Some(kind) = kind {
            accesses.add(array.buffer().variable(), kind)?;
        }
    }
    for (variable, kind) in &parts {
        accesses.add(variable, *kind)?;
    }
    for (variable, kind) in variables {
        accesses.add(variable, *kind)?;
    }
    engine.enqueue(payload, &mut accesses, options)
}

/// The variables of a range of a split buffer.
fn part(ranges: &mut Ranges, buffer: &Buffer, range: &Range<usize>, access: Access, parts: &mut Parts) {
    let kind = if access == Access::Read { AccessKind::Read } else { AccessKind::Mutate };
    let mut known = false;
    for part in ranges.parts.iter_mut().filter(|part| part.overlaps(range)) {
        if part.range == *range {
            known = true;
            part.written |= access != Access::Read;
        }
        // Only who writes all of it makes a version of it that owes nothing to the one before.
        let covered = !part.is_shared && range.start <= part.range.start && part.range.end <= range.end;
        let kind = if covered && access == Access::Overwrite { AccessKind::Overwrite } else { kind };
        parts.push((part.variable.clone(), kind));
    }
    if !known {
        add_part(ranges, buffer, range, access != Access::Read, kind, parts);
    }
}

/// The variables of a range of a split buffer that is overwritten: it is taken from the others.
fn take_part(ranges: &mut Ranges, buffer: &Buffer, range: &Range<usize>, parts: &mut Parts) {
    let mut overlapping = ranges.parts.iter_mut().filter(|part| part.overlaps(range));
    match (overlapping.next(), overlapping.next()) {
        (None, _) => {}
        (Some(part), None) if part.range == *range && !part.is_shared => {
            part.written = true;
            return parts.push((part.variable.clone(), AccessKind::Overwrite));
        }
        _ => cut(ranges, range, parts),
    }
    add_part(ranges, buffer, range, true, AccessKind::Overwrite, parts);
}

/// Takes a range from the others, behind all that was pushed on them.
fn cut(ranges: &mut Ranges, range: &Range<usize>, parts: &mut Parts) {
    for part in std::mem::take(&mut ranges.parts) {
        if !part.overlaps(range) {
            ranges.parts.push(part);
            continue;
        }
        let Part { range: whole, variable, written, is_shared } = part;
        parts.push((variable.clone(), AccessKind::Exclusive));
        let rests = [whole.start..range.start, range.end..whole.end];
        let is_shared = is_shared || rests.iter().all(|rest| !rest.is_empty());
        for range in rests.into_iter().filter(|rest| !rest.is_empty()) {
            ranges.parts.push(Part { range, variable: variable.clone(), written, is_shared });
        }
    }
}

fn add_part(
    ranges: &mut Ranges,
    buffer: &Buffer,
    range: &Range<usize>,
    written: bool,
    kind: AccessKind,
    parts: &mut Parts,
) {
    let variable = buffer.engine().new_variable_of(range.len() as u64);
    parts.push((variable.clone(), kind));
    ranges.parts.push(Part { range: range.clone(), variable, written, is_shared: false });
}

#[allow(clippy::unnecessary_wraps)] // a payload
fn nothing(_: &mut OpContext<'_>) -> Result<(), weft_engine::Cause> {
    Ok(())
}

/// What a trace shows of an op that computes nothing.
fn named(buffer: &Buffer, name: &'static str) -> PushOptions<'static> {
    PushOptions { name: buffer.engine().is_traced().then_some(name), ..PushOptions::default() }
}

/// Waits, as an op, for all accesses before.
#[cold]
fn barrier(ranges: &mut Ranges, buffer: &Buffer) -> Result<(), EngineError> {
    let gate = ranges.gate(buffer);
    let mut accesses = Accesses::new(buffer.engine());
    accesses.add(buffer.variable(), AccessKind::Exclusive)?;
    accesses.add(&gate, AccessKind::Exclusive)?;
    buffer.engine().enqueue(nothing, &mut accesses, &named(buffer, "split"))
}

/// Makes a split buffer whole.
#[cold]
fn join(ranges: &mut Ranges, buffer: &Buffer) -> Result<(), EngineError> {
    // If nothing is left of what was there before, nothing is left of its failure.
    let all = ranges.is_written(&(0..buffer.bytes()));
    let kind = if all { AccessKind::Overwrite } else { AccessKind::Mutate };
    let gate = ranges.gate(buffer);
    let parts = std::mem::take(&mut ranges.parts);
    let mut accesses = Accesses::new(buffer.engine());
    for part in &parts {
        accesses.add(&part.variable, AccessKind::Read)?;
    }
    accesses.add(buffer.variable(), kind)?;
    accesses.add(&gate, AccessKind::Exclusive)?;
    let joined = buffer.engine().enqueue(nothing, &mut accesses, &named(buffer, "join"));
    if joined.is_ok() {
        ranges.split = false;
    }
    drop(accesses);
    if joined.is_err() {
        ranges.parts = parts;
    }
    joined
}

/// Whether the buffer's one variable tells of all of it.
#[inline]
pub(crate) fn is_whole(buffer: &Buffer) -> bool {
    !buffer.ranges.get(&mut Pushing::lock()).split
}

/// The variables that tell of the array's elements.
pub(crate) fn variables(array: &Array) -> SmallVec<[Variable; 2]> {
    let (buffer, range) = (array.buffer(), array.range());
    let mut pushing = Pushing::lock();
    let ranges = buffer.ranges.get(&mut pushing);
    let overlapping = ranges.parts.iter().filter(|part| part.overlaps(&range)).map(|part| &part.variable);
    let owes = !ranges.split || range.is_empty() || !ranges.is_written(&range);
    buffer.known_variable().filter(|_| owes).into_iter().chain(overlapping).cloned().collect()
}

/// Mutations of the buffer that were pushed.
pub(crate) fn version(buffer: &Arc<Buffer>) -> u64 {
    buffer.ranges.get(&mut Pushing::lock()).version()
}
