//! Computations of the pushing thread on copies of small, ready arrays, by functions that must not run under the lock
//! of pushes.
//!
//! All other threads see the op as pushed and finished at that moment. Its inputs may change afterwards; its outputs
//! have no other user yet.

use crate::access::{are_idle, is_all_there, note_written, place_result};
use crate::layout::Element;
use crate::memory::Pushing;
use crate::memory::recorded::is_plain;
use crate::{Access, Array};
use smallvec::SmallVec;
use std::ops::Range;
use weft_engine::{Engine, Variable};

/// Alignment of copies, that of allocations.
const ALIGN: usize = size_of::<Element>();

/// For each input, the place of its bytes' copy in one block; and the length of the block.
#[must_use]
pub fn places_of_copies(inputs: &[&Array]) -> (SmallVec<[Range<usize>; 4]>, usize) {
    let mut end = 0_usize;
    let places = inputs
        .iter()
        .map(|array| {
            let start = end.next_multiple_of(ALIGN);
            end = start + array.range().len();
            start..end
        })
        .collect();
    (places, end)
}

/// Copies small arrays to these places of `block`. All must be ready, and the outputs must be whole, unused buffers of
/// the host. Returns whether it copied.
#[must_use]
pub fn copy_if_there(
    engine: &Engine,
    outputs: &[&Array],
    inputs: &[&Array],
    places: &[Range<usize>],
    block: &mut [u8],
) -> bool {
    let listed: SmallVec<[(&Array, Access); 4]> = inputs.iter().map(|array| (*array, Access::Read)).collect();
    let usable = |array: &&Array| array.buffer().is_host() && engine.is_same(array.buffer().engine());
    if !is_plain() || engine.is_closed() || engine.is_watched() || !inputs.iter().chain(outputs).all(usable) {
        return false;
    }
    let mut pushing = Pushing::lock();
    let fresh =
        |pushing: &mut Pushing, array: &&Array| array.is_flat() && !array.buffer().ranges.get(pushing).is_used();
    if !is_all_there(&mut pushing, engine, &listed) || !outputs.iter().all(|array| fresh(&mut pushing, array)) {
        return false;
    }
    copy_all(&pushing, inputs, places, block).is_some()
}

/// Copies ready arrays to their places; None if a place is not as long as its array.
fn copy_all(_: &Pushing, arrays: &[&Array], places: &[Range<usize>], block: &mut [u8]) -> Option<()> {
    if arrays.len() != places.len() {
        return None;
    }
    for (array, place) in arrays.iter().zip(places) {
        let (start, range) = (array.buffer().start().ok()?, array.range());
        let target = block.get_mut(place.clone()).filter(|target| target.len() == range.len())?;
        // SAFETY: the bytes are inside the buffer, are ready, and cannot change while the lock is held.
        unsafe { start.wrapping_add(range.start).copy_to_nonoverlapping(target.as_mut_ptr(), target.len()) };
    }
    Some(())
}

/// The versions of copied arrays, in order.
#[derive(PartialEq, Eq)]
pub struct Copied(SmallVec<[(u64, u64); 4]>);

pub(super) fn versions(pushing: &mut Pushing, arrays: &[(&Array, Access)]) -> Copied {
    let of_one = |(array, _): &(&Array, Access)| {
        let pushed = array.buffer().known_variable().map_or(0, Variable::version);
        (array.buffer().ranges.get(pushing).version, pushed)
    };
    Copied(arrays.iter().map(of_one).collect())
}

/// The accesses of an op that reads all arrays and changes the last one.
fn changing<'a>(arrays: &[&'a Array]) -> SmallVec<[(&'a Array, Access); 4]> {
    let last = arrays.len().saturating_sub(1);
    let access = |at: usize| if at == last { Access::Mutate } else { Access::Read };
    arrays.iter().enumerate().map(|(at, array)| (*array, access(at))).collect()
}

/// Whether all are on the host, and the last one may be changed by way of a copy of all bytes that it reaches.
fn may_change(engine: &Engine, arrays: &[&Array]) -> bool {
    let usable = |array: &&Array| array.buffer().is_host() && engine.is_same(array.buffer().engine());
    // In foreign memory the gaps between elements may belong to another array, unknown here. To write all bytes back
    // would undo that array's writes meanwhile.
    let is_apart = |last: &&Array| last.buffer().is_own() || last.range().len() <= last.bytes();
    !engine.is_closed()
        && arrays.iter().all(usable)
        && arrays.last().is_some_and(|last| is_apart(last) && !last.buffer().is_readonly())
}

/// Copies small arrays of the host to these places of `block`. All must be ready, and the last one must have no pending
/// ops. The caller changes the last copy and then [puts it back](put_back).
#[must_use]
pub fn copy_to_change(engine: &Engine, arrays: &[&Array], places: &[Range<usize>], block: &mut [u8]) -> Option<Copied> {
    if !is_plain() || engine.is_watched() || !may_change(engine, arrays) {
        return None;
    }
    let listed = changing(arrays);
    let mut pushing = Pushing::lock();
    if !are_idle(&mut pushing, &listed) {
        return None;
    }
    copy_all(&pushing, arrays, places, block)?;
    Some(versions(&mut pushing, &listed))
}

/// Writes the copy of the last array back, if no array was written since the copies and the last one has no pending
/// ops. Returns whether it did. The whole op then counts as done at this moment.
#[must_use]
pub fn put_back(engine: &Engine, arrays: &[&Array], copied: &Copied, changed: &[u8]) -> bool {
    let listed = changing(arrays);
    let Some(last) = arrays.last() else { return false };
    let mut pushing = Pushing::lock();
    let same = may_change(engine, arrays) && versions(&mut pushing, &listed) == *copied;
    if !same || !are_idle(&mut pushing, &listed) || changed.len() != last.range().len() {
        return false;
    }
    let Ok(start) = last.buffer().start() else { return false };
    // SAFETY: the bytes are inside the buffer and have no reader while the lock is held; the gaps between the elements
    // are unchanged, because the buffer is weft's own.
    unsafe { start.wrapping_add(last.range().start).copy_from_nonoverlapping(changed.as_ptr(), changed.len()) };
    note_written(&mut pushing, &listed[listed.len() - 1..]);
    true
}

/// Notes that the outputs were computed from copies of the inputs.
pub fn note_computed(outputs: &[&Array], inputs: &[&Array]) {
    let read: SmallVec<[(&Array, Access); 4]> = inputs.iter().map(|array| (*array, Access::Read)).collect();
    let written: SmallVec<[(&Array, Access); 4]> = outputs.iter().map(|array| (*array, Access::Overwrite)).collect();
    let mut pushing = Pushing::lock();
    for output in outputs {
        place_result(&mut pushing, &read, output);
    }
    note_written(&mut pushing, &written);
}
