//! Facts about arrays at the moment of a push: where they belong, whether they are there.

use super::{Access, Array};
use crate::memory::{Buffer, Pushing};
use smallvec::SmallVec;
use std::sync::Arc;
use weft_engine::{Engine, Variable};

/// Ranges of a split buffer at most for a look at all of them: it must not take longer than a push.
const FEW: usize = 8;

/// Whether nothing was ever pushed on a buffer.
pub(crate) fn is_untouched(buffer: &Buffer) -> bool {
    !buffer.ranges.get(&mut Pushing::lock()).is_used()
}

/// The device on which an op on these arrays runs: that of its results, or else of its operands. Its results belong
/// there from now on, unless they are in the host's memory, and the device has a memory of its own.
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

/// Places the result of an op that has run on the host: where its first operand belongs, unless the place is known. It
/// is [`place`] for arrays that are all the host's.
#[inline]
pub(crate) fn place_result(pushing: &mut Pushing, inputs: &[(&Array, Access)], result: &Array) {
    if result.buffer().ranges.get(pushing).device.is_none() {
        let device = inputs.iter().find_map(|(array, _)| array.buffer().ranges.get(pushing).device);
        result.buffer().ranges.get(pushing).device = device;
    }
}

/// Whether an op on these arrays could run at this moment, before anything else is pushed: its operands are there,
/// and its results are untouched, or all ops pushed on them are done.
#[inline]
pub(crate) fn is_all_there(pushing: &mut Pushing, engine: &Engine, arrays: &[(&Array, Access)]) -> bool {
    !engine.is_closed()
        && !engine.keeps_ops_back()
        && arrays.iter().all(|(array, access)| {
            let buffer = array.buffer();
            let ranges = buffer.ranges.get(pushing);
            let is_there = |variable: &Variable| variable.is_ready() && !variable.has_failed();
            if *access == Access::Read {
                let parts = ranges.parts.iter().map(|part| &part.variable);
                let mut of_ranges = parts.chain(&ranges.base).chain(&ranges.gate);
                buffer.known_variable().is_none_or(is_there)
                    && (!ranges.split || (ranges.parts.len() <= FEW && of_ranges.all(is_there)))
            } else {
                !ranges.is_used()
                    || (!ranges.split && ranges.readers.is_empty() && buffer.known_variable().is_none_or(is_there))
            }
        })
}

/// Notes that an op has written to these arrays, without a push.
#[inline]
pub(crate) fn note_written(pushing: &mut Pushing, arrays: &[(&Array, Access)]) {
    for (array, _) in arrays {
        let ranges = array.buffer().ranges.get(pushing);
        ranges.version += 1;
        ranges.written_here = true;
        ranges.producer = None;
    }
}

/// Says on which device the buffer belongs.
pub(crate) fn set_device(buffer: &Buffer, device: u16) {
    buffer.ranges.get(&mut Pushing::lock()).device = Some(device);
}

/// The device on which the buffer belongs; by default the first one.
pub(crate) fn device(buffer: &Buffer) -> u16 {
    buffer.ranges.get(&mut Pushing::lock()).device.unwrap_or(0)
}

/// The devices on which buffers belong, as far as that is known.
#[must_use]
pub fn known_devices(buffers: &[Option<&Arc<Buffer>>]) -> SmallVec<[Option<u16>; 8]> {
    let mut pushing = Pushing::lock();
    buffers.iter().map(|buffer| buffer.and_then(|buffer| buffer.ranges.get(&mut pushing).device)).collect()
}

/// Says on which devices buffers belong of which that is not known.
pub fn set_known_devices(buffers: &[Option<&Arc<Buffer>>], devices: &[Option<u16>]) {
    let mut pushing = Pushing::lock();
    for (buffer, device) in buffers.iter().zip(devices) {
        if let (Some(buffer), Some(device)) = (buffer, device) {
            buffer.ranges.get(&mut pushing).device.get_or_insert(*device);
        }
    }
}

/// Whether the arrays are all of their buffers, row after row, and none of these is split: as most are.
#[inline]
pub(super) fn are_flat(pushing: &mut Pushing, arrays: &[(&Array, Access)]) -> bool {
    arrays.iter().all(|(array, _)| array.is_flat() && !array.buffer().ranges.get(pushing).split)
}

/// Whether nothing is pending on these arrays, nothing has failed, and none belongs on another device than the first:
/// the holder of the lock may use them like an op that has been granted all of them.
#[inline]
pub(crate) fn are_idle(pushing: &mut Pushing, arrays: &[(&Array, Access)]) -> bool {
    arrays.iter().all(|(array, access)| {
        let buffer = array.buffer();
        let ranges = buffer.ranges.get(pushing);
        !ranges.split
            && ranges.device.unwrap_or(0) == 0
            && (*access == Access::Read || ranges.readers.is_empty())
            && buffer.known_variable().is_none_or(|variable| variable.is_ready() && !variable.has_failed())
    })
}
