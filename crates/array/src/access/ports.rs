//! The effect of a replay on the buffers behind its ports.
//!
//! A replay names the ranges of a buffer that it touches. No two overlap, and each has a port of its own. They are decided
//! together, as those of one op are, with one difference: ports must not have a variable in common that one of them
//! changes. Where the ranges that were named before are others, so that one would lie behind two ports or reach beyond one,
//! and the replay writes to the buffer, that becomes whole first, and is then split along the ports.

use super::Access;
use super::enter::{Parts, part, take_part};
use super::split::{is_well, join, split};
use crate::memory::{Buffer, Pushing, RANGES, Ranges};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use weft_engine::{AccessKind, EngineError, PortId, Variable};

/// The access of a replay, behind a port, to some bytes of a buffer.
#[derive(Debug, Clone)]
pub struct Touch {
    /// The port.
    pub port: PortId,
    /// The bytes.
    pub range: Range<usize>,
    /// The access to them, all users of the port taken together.
    pub access: Access,
}

/// One buffer of a replay: its place against that where its ranges were named, in bytes, and the access to it.
pub type Touched<'a> = (&'a Arc<Buffer>, isize, &'a [Touch]);

/// The variables to bind to ports: those of buffers, and others.
#[derive(Default)]
pub(crate) struct Bound<'a> {
    pub(crate) of_buffers: SmallVec<[(PortId, &'a Variable, AccessKind); 16]>,
    pub(crate) own: SmallVec<[(PortId, Variable, AccessKind); 4]>,
}

fn moved(range: &Range<usize>, by: isize) -> Range<usize> {
    range.start.wrapping_add_signed(by)..range.end.wrapping_add_signed(by)
}

/// Whether variables of the buffer's ranges do not go with the ports one by one.
fn straddles(ranges: &Ranges, touches: &[Touch], by: isize) -> bool {
    ranges.parts.iter().any(|part| {
        touches.iter().any(|touch| {
            let range = moved(&touch.range, by);
            let inside = range.start <= part.range.start && part.range.end <= range.end;
            part.overlaps(&range) && (part.is_shared || !inside)
        })
    })
}

/// Notes the access of a replay to a buffer, and collects the variables to bind to its ports.
#[inline]
pub(crate) fn enter_touched<'a>(
    pushing: &mut Pushing,
    (buffer, by, touches): Touched<'a>,
    bound: &mut Bound<'a>,
) -> Result<(), EngineError> {
    let ranges = buffer.ranges.get(pushing);
    let reads = |touch: &Touch| touch.access == Access::Read;
    ranges.note(touches.iter().all(reads));
    if let [touch] = touches
        && buffer.is_whole(&moved(&touch.range, by))
        && !(ranges.split && reads(touch) && !is_well(ranges, buffer))
    {
        if ranges.split {
            join(ranges, buffer)?;
        }
        ranges.note_whole(reads(touch));
        ranges.readers.long |= reads(touch);
        bound.of_buffers.push((touch.port, buffer.variable(), touch.access.kind()));
        return Ok(());
    }
    enter_ranges(ranges, (buffer, by, touches), bound)
}

fn enter_ranges<'a>(
    ranges: &mut Ranges,
    (buffer, by, touches): Touched<'a>,
    bound: &mut Bound<'a>,
) -> Result<(), EngineError> {
    let writes = touches.iter().any(|touch| touch.access != Access::Read);
    if ranges.split && (ranges.parts.len() + touches.len() > RANGES || (writes && straddles(ranges, touches, by))) {
        join(ranges, buffer)?;
    }
    if !ranges.split && writes {
        split(ranges, buffer)?;
        if straddles(ranges, touches, by) {
            // Earlier reads became ranges.
            join(ranges, buffer)?;
            split(ranges, buffer)?;
        }
    }
    for touch in touches {
        let range = moved(&touch.range, by);
        if !ranges.split {
            ranges.readers.add(&range);
            ranges.readers.long = true;
            bound.of_buffers.push((touch.port, buffer.variable(), AccessKind::Read));
            continue;
        }
        let mut parts = Parts::new();
        let sees = touch.access != Access::Overwrite;
        let owes = sees && !ranges.is_written(&range);
        if sees {
            part(ranges, buffer, &range, touch.access, &mut parts);
        } else {
            take_part(ranges, buffer, &range, &mut parts);
        }
        if !owes {
            parts.push((ranges.gate(buffer), AccessKind::Read));
        } else if let Some(base) = &ranges.base {
            parts.push((base.clone(), AccessKind::Read));
        } else {
            bound.of_buffers.push((touch.port, buffer.variable(), AccessKind::Read));
        }
        bound.own.extend(parts.into_iter().map(|(variable, kind)| (touch.port, variable, kind)));
    }
    Ok(())
}
