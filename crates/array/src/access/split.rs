//! The ops that split a buffer, and make it whole again.

use crate::memory::{Buffer, Part, Ranges};
use std::ops::Range;
use weft_engine::{AccessKind, Accesses, EngineError, OpContext, PushOptions, Variable};

#[allow(clippy::unnecessary_wraps)] // a payload
fn nothing(_: &mut OpContext<'_>) -> Result<(), weft_engine::Cause> {
    Ok(())
}

/// The note in a trace of an op that computes nothing, and hands on the facts of its memory.
fn named(buffer: &Buffer, name: &'static str) -> PushOptions<'static> {
    PushOptions { name: buffer.engine().is_traced().then_some(name), hands_on: true, ..PushOptions::default() }
}

/// Splits a whole buffer, behind the ops pushed on it.
#[cold]
pub(super) fn split(ranges: &mut Ranges, buffer: &Buffer) -> Result<(), EngineError> {
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

/// Whether all ops that change a split buffer are done and none has failed: then it may become whole for a mere look.
/// Otherwise all of it would show the failure of some ranges.
pub(super) fn is_well(ranges: &Ranges, buffer: &Buffer) -> bool {
    let is_well = |variable: &Variable| variable.is_ready() && !variable.has_failed();
    let base = ranges.base.as_ref().or(buffer.known_variable());
    base.is_none_or(is_well) && ranges.parts.iter().all(|part| is_well(&part.variable))
}

/// Gives a range that is to be written a variable of its own, if others that share in it reach beyond it: so the
/// outcome of the op counts for the range alone. One barrier is behind the writers, so the range fails as the others
/// have; one is behind the readers.
pub(super) fn set_apart(ranges: &mut Ranges, buffer: &Buffer, range: &Range<usize>) -> Result<(), EngineError> {
    let inside = |part: &Part| range.start <= part.range.start && part.range.end <= range.end;
    let reaches_out = |part: &Part| part.overlaps(range) && (part.is_shared || !inside(part));
    if !ranges.parts.iter().any(reaches_out) {
        return Ok(());
    }
    let engine = buffer.engine();
    let variable = engine.new_variable_of(range.len() as u64);
    let mut written = Accesses::new(engine);
    let mut read = Accesses::new(engine);
    for part in ranges.parts.iter().filter(|part| reaches_out(part)) {
        written.add(&part.variable, AccessKind::Read)?;
        read.add(&part.variable, AccessKind::Exclusive)?;
    }
    written.add(&variable, AccessKind::Mutate)?;
    read.add(&variable, AccessKind::Exclusive)?;
    engine.enqueue(nothing, &mut written, &named(buffer, "split"))?;
    engine.enqueue(nothing, &mut read, &named(buffer, "split"))?;
    drop((written, read));
    for part in std::mem::take(&mut ranges.parts) {
        if reaches_out(&part) {
            ranges.parts.extend(part.without(range));
        } else {
            ranges.parts.push(part);
        }
    }
    ranges.parts.push(Part { range: range.clone(), variable, written: false, is_shared: false });
    Ok(())
}

/// Makes a split buffer whole.
#[cold]
pub(super) fn join(ranges: &mut Ranges, buffer: &Buffer) -> Result<(), EngineError> {
    // If no byte is left of the value before, its failure goes with it.
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
            (ranges.split, ranges.cut) = (false, false);
            ranges.base = None;
        }
        Err(_) => ranges.parts = parts,
    }
    joined
}
