//! The ops by which a buffer becomes split, and whole again.

use crate::memory::{Buffer, Part, Ranges};
use std::ops::Range;
use weft_engine::{AccessKind, Accesses, EngineError, OpContext, PushOptions};

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

/// Makes a split buffer whole.
#[cold]
pub(super) fn join(ranges: &mut Ranges, buffer: &Buffer) -> Result<(), EngineError> {
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
