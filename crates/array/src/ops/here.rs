//! What is computed by the thread that pushes, on copies of small arrays that are there: by functions that must not run under
//! the lock under which pushes happen.
//!
//! To everybody else it is as if the op had been pushed and had finished at that moment: what it reads may change
//! after, and what it writes nobody else knows.

use crate::access::{is_all_there, note_written, place_result};
use crate::layout::Element;
use crate::memory::Pushing;
use crate::memory::recorded::is_plain;
use crate::{Access, Array};
use smallvec::SmallVec;
use std::ops::Range;
use weft_engine::Engine;

/// Where copies begin, as allocations do.
const ALIGN: usize = size_of::<Element>();

/// For each input, in one block of bytes: where the copy of the bytes that it reaches lies. And how long the block is.
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

/// Copies small arrays to these places of `block`, if all of them are there, and the outputs whole buffers of the host that
/// nobody has used. Answers whether it has.
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
    if !is_plain() || engine.is_closed() || !inputs.iter().chain(outputs).all(usable) {
        return false;
    }
    let mut pushing = Pushing::lock();
    let fresh =
        |pushing: &mut Pushing, array: &&Array| array.is_flat() && !array.buffer().ranges.get(pushing).is_used();
    if !is_all_there(&mut pushing, engine, &listed) || !outputs.iter().all(|array| fresh(&mut pushing, array)) {
        return false;
    }
    for (array, place) in inputs.iter().zip(places) {
        let (Ok(start), Some(target)) = (array.buffer().start(), block.get_mut(place.clone())) else { return false };
        // SAFETY: the bytes are inside the buffer, are there, and cannot change while the lock is held.
        unsafe { start.wrapping_add(array.range().start).copy_to_nonoverlapping(target.as_mut_ptr(), target.len()) };
    }
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
