//! The accesses of an op that is being pushed.

use super::presence::are_flat;
use super::split::{is_well, join, set_apart, split};
use super::uses::Use;
use super::watched::Watched;
use super::{Access, Array};
use crate::memory::{Buffer, Part, Pushing, RANGES, Ranges};
use smallvec::SmallVec;
use std::ops::Range;
use weft_engine::{AccessKind, Accesses, Engine, EngineError, Payload, PushOptions, Variable, drop_later};

/// Variables of ranges, with the accesses to them.
pub(super) type Parts = SmallVec<[(Variable, AccessKind); 4]>;

/// Notes the op's access to one of its arrays, changes the buffer's state if need be, and collects the variables
/// of ranges. Answers the access to the buffer's own variable, if there is one.
///
/// The states that the op's arrays on one buffer ask for must not come one after the other: an access in one state
/// would be unknown to later ones in the next. So an op that also has the whole takes all of it.
#[inline]
fn enter(
    pushing: &mut Pushing,
    arrays: &[(&Array, Access)],
    index: usize,
    of_op: Use,
    parts: &mut Parts,
) -> Result<Option<AccessKind>, EngineError> {
    let (array, mut access) = arrays[index];
    let (buffer, range) = (array.buffer(), array.range());
    if access == Access::Overwrite && !array.is_contiguous() && !array.layout().is_dense(array.dtype().size()) {
        access = Access::Mutate; // the bytes between its elements stay
    }
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

/// Notes the accesses of an op to its arrays, and collects them, those of ranges in `parts`.
fn enter_each<'a>(
    pushing: &mut Pushing,
    arrays: &[(&'a Array, Access)],
    parts: &mut Parts,
    accesses: &mut Accesses<'a>,
) -> Result<(), EngineError> {
    let mut kinds = SmallVec::<[Option<AccessKind>; 4]>::new();
    for (index, of_op) in Use::of_all(arrays).into_iter().enumerate() {
        kinds.push(enter(pushing, arrays, index, of_op, parts)?);
    }
    for ((array, _), kind) in arrays.iter().zip(kinds) {
        if let Some(kind) = kind {
            accesses.add(array.buffer().variable(), kind)?;
        }
    }
    Ok(())
}

/// The accesses of an op: arrays, variables besides, and arrays behind whose ops it comes.
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
    if let Err(error) = enter_all(pushing, engine, (arrays, variables, after), &mut parts, &mut accesses) {
        drop_later(payload); // not under the lock
        return Err(error);
    }
    let entered = if engine.is_watched() {
        engine.enqueue(Watched::new(payload, arrays), &mut accesses, options)
    } else {
        engine.enqueue(payload, &mut accesses, options)
    };
    drop(accesses);
    if entered.is_err() && !parts.is_empty() {
        for (array, _) in arrays {
            unwrite(pushing, array.buffer(), parts.iter().map(|(variable, kind)| (variable, *kind)));
        }
    }
    entered
}

/// The engine was closed while an op with these variables was noted: the value that it was to overwrite stays, and the
/// next access to any range of the buffer comes behind all that the op was to come behind.
#[cold]
pub(crate) fn unwrite<'a>(
    pushing: &mut Pushing,
    buffer: &Buffer,
    variables: impl Iterator<Item = (&'a Variable, AccessKind)>,
) {
    let ranges = buffer.ranges.get(pushing);
    if !ranges.split {
        return;
    }
    ranges.parts.iter_mut().for_each(|part| part.written = false);
    for (variable, _) in variables.filter(|(_, kind)| *kind != AccessKind::Read) {
        let range = 0..buffer.bytes();
        ranges.parts.push(Part { range, variable: variable.clone(), written: false, is_shared: true });
    }
}

/// Refuses an op on ranges before anything is noted, if the engine would.
pub(crate) fn check_open<'a>(
    engine: &Engine,
    mut variables: impl Iterator<Item = (&'a Variable, AccessKind)>,
) -> Result<(), EngineError> {
    if engine.is_closed() && !engine.is_inside_op() {
        return Err(EngineError::Closed { engine: engine.name().to_owned() });
    }
    variables.try_for_each(|(variable, kind)| Accesses::new(engine).add(variable, kind))
}

/// Notes the accesses of an op to its arrays, and collects them. Refusals come before the first note.
#[inline]
fn enter_all<'a>(
    pushing: &mut Pushing,
    engine: &Engine,
    (arrays, variables, after): Touched<'_, 'a>,
    parts: &'a mut Parts,
    accesses: &mut Accesses<'a>,
) -> Result<(), EngineError> {
    let is_flat = are_flat(pushing, arrays);
    if !is_flat || !variables.is_empty() {
        check_open(engine, variables.iter().map(|(variable, kind)| (*variable, *kind)))?;
    }
    if is_flat {
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
        // Only a write of all of it makes a version that owes nothing to the one before.
        let covered = !part.is_shared && range.start <= part.range.start && part.range.end <= range.end;
        let kind = if covered && access == Access::Overwrite { AccessKind::Overwrite } else { kind };
        parts.push((part.variable.clone(), kind));
    }
    if access == Access::Read && !known {
        // A write to these bytes meets this read at one of these, or at an older part.
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
    ranges.cut = true;
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
