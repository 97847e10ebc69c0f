//! Which variables an access to some bytes of a buffer touches.
//!
//! A buffer has one variable for the whole, and variables for ranges that were written on their own. It is in one of
//! two states, which change only by an op of their own:
//!
//! | state | an access to the whole | an access to a range | becomes |
//! |---|---|---|---|
//! | whole | the buffer's variable | to read: the buffer's variable | to write a range: *split*, by a barrier behind all before |
//! | split | becomes whole first | reads the *base*, or the *gate*; and the variables of all ranges that it overlaps, its own among them if it writes; what it reads beyond them becomes ranges, too | whole, by a *join*: reads the ranges' variables, mutates the buffer's |
//!
//! The base is the buffer's variable. The gate is a variable of no values, which the barrier and the join take: who reads
//! it comes between the two. An op that sees nothing of what was there at the split reads it instead of the base, and so
//! owes nothing to the buffer's failure: it overwrites its range, or all that it sees was written since. An overwrite
//! takes its range from those that it overlaps, which keep their failure and the rest: what it made has a variable of its
//! own.
//!
//! Ranges that were read before the split, by ops that may be pending, must not hold up who writes to others. If that is
//! all that has read the buffer since it was last written to, there are two barriers: one behind the writers, which makes
//! a base of its own, a variable that fails as the buffer's does; and one behind the readers, which takes variables of
//! their ranges.
//!
//! An op that has the whole of a buffer and writes to a range of it too has all of it.
//!
//! So writes to disjoint ranges run side by side, unless both lie in one that was named before; and two accesses to
//! overlapping ranges meet at the variable of such a one. A range's failure reaches the whole through the join.
//!
//! What ranges there are is decided together with the push that follows from it, under one lock for all buffers
//! (`pushing`).

use crate::pushing::Pushing;
use crate::{Array, Buffer};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use weft_engine::{AccessKind, Accesses, Engine, EngineError, OpContext, Payload, PushOptions, Variable, drop_later};

/// Ranges of one buffer before they are joined: looking through them takes time.
const RANGES: usize = 256;
/// Ranges that are kept of those who read a buffer that is whole.
const READ: usize = 16;

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

/// What was read of a whole buffer since it was last written to.
#[derive(Default)]
struct Readers {
    ranges: Vec<Range<usize>>,
    /// All of it, or too many ranges.
    whole: bool,
}

impl Readers {
    #[inline]
    fn add(&mut self, range: &Range<usize>) {
        if self.whole || self.ranges.last() == Some(range) || self.ranges.contains(range) {
            return;
        }
        if self.ranges.len() < READ {
            self.ranges.push(range.clone());
        } else {
            self.add_whole();
        }
    }

    #[inline]
    fn add_whole(&mut self) {
        self.whole = true;
        self.ranges.clear();
    }

    #[inline]
    fn clear(&mut self) {
        self.whole = false;
        self.ranges.clear();
    }
}

/// What was pushed on a buffer.
#[derive(Default)]
pub(crate) struct Ranges {
    split: bool,
    parts: Vec<Part>,
    gate: Option<Variable>,
    /// What stands for the buffer's variable while it is split, if that does not.
    base: Option<Variable>,
    readers: Readers,
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
    /// Of a buffer that belongs on this device.
    pub(crate) fn on(device: u16) -> Self {
        Self { device: Some(device), ..Self::default() }
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

    /// Notes an op that has the whole of it.
    #[inline]
    fn note_whole(&mut self, access: Access) {
        if access == Access::Read {
            self.readers.add_whole();
        } else {
            self.readers.clear(); // who comes next is behind it, and it is behind them
        }
    }

    /// What of a range no such part covers.
    fn gaps(&self, range: &Range<usize>, such: impl Fn(&Part) -> bool) -> SmallVec<[Range<usize>; 2]> {
        let parts = self.parts.iter().filter(|part| part.overlaps(range) && such(part));
        let mut ranges: SmallVec<[&Range<usize>; 8]> = parts.map(|part| &part.range).collect();
        ranges.sort_unstable_by_key(|part| part.start);
        let (mut from, mut gaps) = (range.start, SmallVec::new());
        for part in ranges {
            if part.start > from {
                gaps.push(from..part.start);
            }
            from = from.max(part.end);
        }
        if from < range.end {
            gaps.push(from..range.end);
        }
        gaps
    }

    /// Whether all of a range was written since the split.
    fn is_written(&self, range: &Range<usize>) -> bool {
        self.gaps(range, |part| part.written).is_empty()
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

impl Access {
    /// What it is to the variable of a buffer of which the array is all.
    #[inline]
    pub(crate) fn kind(self) -> AccessKind {
        match self {
            Self::Read => AccessKind::Read,
            Self::Mutate => AccessKind::Mutate,
            Self::Overwrite => AccessKind::Overwrite,
        }
    }
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
    if access == Access::Overwrite && !array.is_contiguous() && !array.layout().is_dense(array.dtype().size()) {
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
        ranges.note_whole(access);
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
        split(ranges, buffer)?;
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
        if let Some(base) = &ranges.base {
            parts.push((base.clone(), AccessKind::Read));
            return Ok(None);
        }
    } else {
        ranges.readers.add(&range);
    }
    Ok(Some(AccessKind::Read))
}

/// Notes what an op does with all of a buffer, and makes that whole.
#[inline]
pub(crate) fn enter_whole(pushing: &mut Pushing, buffer: &Buffer, access: Access) -> Result<(), EngineError> {
    let ranges = buffer.ranges.get(pushing);
    ranges.note(access);
    if ranges.split {
        join(ranges, buffer)?;
    }
    ranges.note_whole(access);
    Ok(())
}

/// Whether nothing was ever pushed on a buffer.
pub(crate) fn is_untouched(buffer: &Buffer) -> bool {
    !buffer.ranges.get(&mut Pushing::lock()).is_used()
}

/// The device on which an op on these arrays runs: that of what it writes, or else of what it reads. What it writes
/// belongs there from now on, unless that is the host's memory, and the device has one of its own.
#[inline]
pub(crate) fn place(pushing: &mut Pushing, arrays: &[(&Array, Access)]) -> u16 {
    let (mut written, mut read, mut all_known) = (None, None, true);
    for (array, access) in arrays {
        let buffer = array.buffer();
        let device = buffer.ranges.get(pushing).device;
        let found = if *access == Access::Read { &mut read } else { &mut written };
        *found = found.or(device.map(|device| (device, buffer.is_elsewhere())));
        all_known &= *access == Access::Read || device.is_some();
    }
    let Some((device, elsewhere)) = written.or(read) else { return 0 };
    if !all_known {
        for (array, _) in arrays.iter().filter(|(_, access)| *access != Access::Read) {
            if array.buffer().is_elsewhere() == elsewhere {
                array.buffer().ranges.get(pushing).device.get_or_insert(device);
            }
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

/// Whether the arrays are all of their buffers, row after row, and none of these is split: as most are.
#[inline]
fn are_flat(pushing: &mut Pushing, arrays: &[(&Array, Access)]) -> bool {
    arrays.iter().all(|(array, _)| array.is_flat() && !array.buffer().ranges.get(pushing).split)
}

/// Notes what an op does with its arrays, and collects their accesses, those of ranges in `parts`.
fn enter_each<'a>(
    pushing: &mut Pushing,
    arrays: &[(&'a Array, Access)],
    parts: &mut Parts,
    accesses: &mut Accesses<'a>,
) -> Result<(), EngineError> {
    let mut kinds = SmallVec::<[Option<AccessKind>; 4]>::new();
    for index in 0..arrays.len() {
        kinds.push(enter(pushing, arrays, index, parts)?);
    }
    for ((array, _), kind) in arrays.iter().zip(kinds) {
        if let Some(kind) = kind {
            accesses.add(array.buffer().variable(), kind)?;
        }
    }
    Ok(())
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
    let mut parts = Parts::new();
    let mut accesses = Accesses::new(engine);
    if let Err(error) = enter_all(pushing, arrays, variables, &mut parts, &mut accesses) {
        drop_later(payload); // not under the lock
        return Err(error);
    }
    engine.enqueue(payload, &mut accesses, options)
}

/// Notes what an op does with its arrays, and collects its accesses.
#[inline]
fn enter_all<'a>(
    pushing: &mut Pushing,
    arrays: &[(&'a Array, Access)],
    variables: &[(&'a Variable, AccessKind)],
    parts: &'a mut Parts,
    accesses: &mut Accesses<'a>,
) -> Result<(), EngineError> {
    if are_flat(pushing, arrays) {
        for (array, access) in arrays {
            let ranges = array.buffer().ranges.get(pushing);
            ranges.note(*access);
            ranges.note_whole(*access);
            accesses.add(array.buffer().variable(), access.kind())?;
        }
    } else {
        enter_each(pushing, arrays, parts, accesses)?;
        for (variable, kind) in &*parts {
            accesses.add(variable, *kind)?;
        }
    }
    for (variable, kind) in variables {
        accesses.add(variable, *kind)?;
    }
    Ok(())
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
    if access == Access::Read && !known {
        // Whoever writes to what is read here meets it at one of these, or at a part that was there.
        for gap in ranges.gaps(range, |_| true) {
            add_part(ranges, buffer, &gap, false, kind, parts);
        }
    } else if !known {
        add_part(ranges, buffer, range, true, kind, parts);
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

/// Splits a whole buffer, behind what was pushed on it.
#[cold]
fn split(ranges: &mut Ranges, buffer: &Buffer) -> Result<(), EngineError> {
    let engine = buffer.engine();
    let gate = ranges.gate(buffer);
    if ranges.readers.ranges.is_empty() {
        let mut accesses = Accesses::new(engine);
        accesses.add(buffer.variable(), AccessKind::Exclusive)?;
        accesses.add(&gate, AccessKind::Exclusive)?;
        engine.enqueue(nothing, &mut accesses, &named(buffer, "split"))?;
    } else {
        let base = engine.new_variable(None);
        let mut written = Accesses::new(engine);
        written.add(buffer.variable(), AccessKind::Read)?;
        written.add(&base, AccessKind::Mutate)?;
        written.add(&gate, AccessKind::Exclusive)?;
        let part = |range: &Range<usize>| {
            let variable = engine.new_variable_of(range.len() as u64);
            Part { range: range.clone(), variable, written: false, is_shared: false }
        };
        let parts: Vec<Part> = ranges.readers.ranges.iter().map(part).collect();
        let mut read = Accesses::new(engine);
        read.add(buffer.variable(), AccessKind::Exclusive)?;
        for part in &parts {
            read.add(&part.variable, AccessKind::Exclusive)?;
        }
        engine.enqueue(nothing, &mut written, &named(buffer, "split"))?;
        engine.enqueue(nothing, &mut read, &named(buffer, "split"))?;
        (ranges.parts, ranges.base) = (parts, Some(base));
    }
    ranges.readers.clear();
    ranges.split = true;
    Ok(())
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
    if let Some(base) = &ranges.base {
        accesses.add(base, AccessKind::Exclusive)?;
    }
    let joined = buffer.engine().enqueue(nothing, &mut accesses, &named(buffer, "join"));
    drop(accesses);
    match joined {
        Ok(()) => {
            ranges.split = false;
            ranges.base = None;
        }
        Err(_) => ranges.parts = parts,
    }
    joined
}

/// Whether the buffer's one variable tells of all of it.
#[inline]
pub(crate) fn is_whole(buffer: &Buffer) -> bool {
    !buffer.ranges.get(&mut Pushing::lock()).split
}

/// The variables that tell of an array's elements.
pub(crate) struct Telling {
    /// Of what was there before ranges were written. Ops on other ranges read it.
    pub(crate) base: Option<Variable>,
    pub(crate) ranges: SmallVec<[Variable; 2]>,
}

impl Telling {
    pub(crate) fn of(array: &Array) -> Self {
        let (buffer, range) = (array.buffer(), array.range());
        let mut pushing = Pushing::lock();
        let ranges = buffer.ranges.get(&mut pushing);
        let overlapping = ranges.parts.iter().filter(|part| part.overlaps(&range)).map(|part| part.variable.clone());
        let owes = !ranges.split || range.is_empty() || !ranges.is_written(&range);
        let base = ranges.base.as_ref().or(buffer.known_variable()).filter(|_| owes && ranges.is_used()).cloned();
        Self { base, ranges: overlapping.collect() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Variable> {
        self.base.iter().chain(&self.ranges)
    }
}

/// Mutations of the buffer that were pushed.
pub(crate) fn version(buffer: &Arc<Buffer>) -> u64 {
    buffer.ranges.get(&mut Pushing::lock()).version()
}
