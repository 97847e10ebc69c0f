//! The accesses of an op that is being pushed.

use super::presence::are_flat;
use super::split::{is_well, join, set_apart, split};
use super::{Access, Array};
use crate::memory::{Buffer, Part, Pushing, RANGES, Ranges};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use weft_engine::{AccessKind, Accesses, Engine, EngineError, Payload, PushOptions, Variable, drop_later};

/// Variables of ranges, with what is done to them.
pub(super) type Parts = SmallVec<[(Variable, AccessKind); 4]>;

/// What an op does with one buffer, all its arrays on it taken together.
struct Use {
    /// It looks at, or writes to, all of it.
    whole: bool,
    /// It writes to a part of it.
    writes_part: bool,
    /// One of its arrays that are still to be entered, which it looks at, has bytes in common with the one in question.
    is_seen: bool,
    /// How many of its arrays come before the one in question, how many there are, and to how many it writes.
    before: usize,
    count: usize,
    written: usize,
}

impl Use {
    #[inline]
    fn of(arrays: &[(&Array, Access)], index: usize) -> Self {
        let (buffer, own) = (arrays[index].0.buffer(), arrays[index].0.range());
        let mut all = Self { whole: false, writes_part: false, is_seen: false, before: 0, count: 0, written: 0 };
        for (other, (array, access)) in arrays.iter().enumerate() {
            if Arc::ptr_eq(array.buffer(), buffer) {
                let range = array.range();
                let whole = buffer.is_whole(&range);
                all.whole |= whole;
                all.written += usize::from(*access != Access::Read);
                let overlaps = range.start < own.end && own.start < range.end;
                all.is_seen |= other > index && *access != Access::Overwrite && overlaps;
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
    ranges.note(access == Access::Read);
    if of_op.whole && !(ranges.split && of_op.written == 0 && !is_well(ranges, buffer)) {
        if ranges.split {
            join(ranges, buffer)?;
        }
        ranges.note_whole(access == Access::Read);
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
        let sees = access != Access::Overwrite || of_op.is_seen;
        let owes = sees && !ranges.is_written(&range);
        if access == Access::Overwrite && of_op.count == 1 {
            take_part(ranges, buffer, &range, parts);
        } else {
            if access != Access::Read {
                set_apart(ranges, buffer, &range)?;
            }
            part(ranges, buffer, &range, access, parts);
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

/// What an op touches: arrays, variables besides, and arrays behind whose ops it comes.
pub(crate) type Touched<'l, 'a> = (&'l [(&'a Array, Access)], &'l [(&'a Variable, AccessKind)], &'l [&'a Array]);

/// Enters the arrays' queues as one op, which [`Engine::follow_up`] then is owed.
#[inline]
pub(crate) fn enqueue<P: Payload>(
    pushing: &mut Pushing,
    engine: &Engine,
    (arrays, variables, after): Touched<'_, '_>,
    options: &PushOptions<'_>,
    payload: P,
) -> Result<(), EngineError> {
    let mut parts = Parts::new();
    let mut accesses = Accesses::new(engine);
    if let Err(error) = enter_all(pushing, (arrays, variables, after), &mut parts, &mut accesses) {
        drop_later(payload); // not under the lock
        return Err(error);
    }
    engine.enqueue(payload, &mut accesses, options)
}

/// Notes what an op does with its arrays, and collects its accesses.
#[inline]
fn enter_all<'a>(
    pushing: &mut Pushing,
    (arrays, variables, after): Touched<'_, 'a>,
    parts: &'a mut Parts,
    accesses: &mut Accesses<'a>,
) -> Result<(), EngineError> {
    if are_flat(pushing, arrays) {
        for (array, access) in arrays {
            let ranges = array.buffer().ranges.get(pushing);
            ranges.note(*access == Access::Read);
            ranges.note_whole(*access == Access::Read);
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
    for array in after {
        let ranges = array.buffer().ranges.get(pushing);
        if ranges.split {
            join(ranges, array.buffer())?;
        }
        accesses.add(array.buffer().variable(), AccessKind::Exclusive)?;
    }
    Ok(())
}

/// The variables of a range of a split buffer.
pub(super) fn part(ranges: &mut Ranges, buffer: &Buffer, range: &Range<usize>, access: Access, parts: &mut Parts) {
    let kind = if access == Access::Read { AccessKind::Read } else { AccessKind::Mutate };
    let mut known = false;
    for part in ranges.parts.iter_mut().filter(|part| part.overlaps(range)) {
        if part.range == *range {
            known = true;
            part.written |= access != Access::Read;
        }
        // Only who writes all of it makes a version that owes nothing to the one before.
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
pub(super) fn take_part(ranges: &mut Ranges, buffer: &Buffer, range: &Range<usize>, parts: &mut Parts) {
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
        parts.push((part.variable.clone(), AccessKind::Exclusive));
        ranges.parts.extend(part.without(range));
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
