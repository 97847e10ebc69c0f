//! Rows of an array, picked by positions or by a mask, on the calling thread: their number depends on the mask.

use super::at_once;
use super::here::{Copied, versions};
use crate::access::is_all_there;
use crate::door::Call;
use crate::memory::Pushing;
use crate::memory::recorded::is_plain;
use crate::step::signed;
use crate::{Access, Array, ArrayError, DType, Layout};
use weft_engine::{Engine, PushOptions};

/// Elements of a key, and bytes of the picked rows, at most.
const FEW: usize = 1 << 14;
const SMALL: usize = 1 << 17;

/// The rows of `x` that a key selects. The key is int64 positions along the first axis, or a mask of the first axis or
/// of all of a contiguous array. `made` makes the result from the number of rows. None if the key or the array is not
/// ready, if a position is outside, or if the call is long.
pub fn pick_rows(
    x: &Array,
    key: &Array,
    options: PushOptions<'_>,
    made: impl FnOnce(&[usize]) -> Result<Array, ArrayError>,
) -> Result<Option<Array>, ArrayError> {
    let (engine, layout) = (x.engine(), x.layout());
    let item = x.dtype().size();
    let Some(&length) = layout.shape.first() else { return Ok(None) };
    if !is_plain() || !x.buffer().is_host() || !key.buffer().is_host() || !engine.is_same(key.engine()) {
        return Ok(None);
    }
    let masked = key.dtype() == DType::Bool;
    let row = Layout::contiguous(&layout.shape[1..], item)?;
    let whole = masked && x.is_contiguous() && key.layout().shape == layout.shape;
    let along = key.layout().shape.len() == 1 && row.strides[..] == layout.strides[1..];
    let fits = along && (!masked || key.layout().shape[0] == length);
    if !(whole || fits) || !(masked || key.dtype() == DType::Int64) || !key.is_contiguous() || key.layout().size() > FEW
    {
        return Ok(None);
    }
    let (length, step, bytes) =
        if whole { (layout.size(), signed(item), item) } else { (length, layout.strides[0], row.size() * item) };
    let Some((places, read)) = places_of(engine, key, length) else { return Ok(None) };
    if places.len().saturating_mul(bytes) > SMALL {
        return Ok(None);
    }
    let mut shape = row.shape.clone();
    if whole {
        shape.clear();
    }
    shape.insert(0, places.len());
    let output = made(&shape)?;
    let layout = output.layout();
    if !output.is_contiguous()
        || layout.shape != shape
        || output.dtype() != x.dtype()
        || output.buffer().is_same(x.buffer())
    {
        return Err(ArrayError::Invalid("picked rows are written to a new array of their shape and dtype".to_owned()));
    }
    let arrays = [(x, Access::Read), (&output, Access::Overwrite)];
    let done = at_once::attempt(&Call::on(engine, &arrays, options), 1, |pushing, pointers| {
        // Rows and key are of one moment: a change of the key meanwhile was pushed before.
        if versions(pushing, &[(key, Access::Read)]) != read {
            return false;
        }
        for (at, place) in places.iter().enumerate() {
            let (from, to) = (pointers[0].wrapping_offset(step * signed(*place)), pointers[1].wrapping_add(at * bytes));
            // SAFETY: the place is inside the axis, and the output, which has no other user yet, has a row for each.
            unsafe {
                match bytes {
                    8 => to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
                    4 => to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()),
                    _ => to.copy_from_nonoverlapping(from, bytes),
                }
            }
        }
        true
    })?;
    Ok(done.then_some(output))
}

/// The positions that a key selects along an axis of this length, and the key's version. None if the key is not ready
/// or a position is outside.
fn places_of(engine: &Engine, key: &Array, length: usize) -> Option<(Vec<usize>, Copied)> {
    let count = key.layout().size();
    let mut pushing = Pushing::lock();
    if !is_all_there(&mut pushing, engine, &[(key, Access::Read)]) {
        return None;
    }
    let read = versions(&mut pushing, &[(key, Access::Read)]);
    if count == 0 {
        return Some((Vec::new(), read));
    }
    let start = key.buffer().start().ok()?.wrapping_add(key.layout().offset);
    let mut places = Vec::with_capacity(count);
    // SAFETY: the key is contiguous and ready, and cannot change while the lock is held.
    unsafe {
        if key.dtype() == DType::Bool {
            places.extend((0..count).filter(|&at| start.wrapping_add(at).read() != 0));
        } else {
            for at in 0..count {
                let bytes = start.wrapping_add(at * size_of::<i64>()).cast::<[u8; 8]>().read();
                let place = isize::try_from(i64::from_ne_bytes(bytes)).ok()?;
                let place = if place < 0 { place + signed(length) } else { place };
                let place = usize::try_from(place);
                places.push(place.ok().filter(|place| *place < length)?);
            }
        }
    }
    Some((places, read))
}
