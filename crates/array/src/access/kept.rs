//! The elements of arrays as bytes, and back: around a second run of what has overwritten them.

use super::Array;
use super::watched::each_row;

/// The elements of some arrays, one behind the other. None if they are more than so many bytes, if the host does not reach
/// them, or may not write them, and if their last version has failed.
///
/// # Safety
///
/// Ops that write to the arrays have ended, and none begins meanwhile.
#[must_use]
pub unsafe fn keep_elements(arrays: &[&Array], most: usize) -> Option<Vec<u8>> {
    let bytes = bytes_of(arrays)?;
    let is_usable =
        |array: &&Array| array.buffer().is_host() && !array.buffer().is_readonly() && array.failure().is_none();
    if bytes > most || !arrays.iter().all(is_usable) {
        return None;
    }
    let mut kept = Vec::with_capacity(bytes);
    for array in arrays {
        let item = array.dtype().size();
        each_row(array, |row, step, length| {
            if step == item.cast_signed() {
                // SAFETY: the elements of a row lie there, side by side.
                kept.extend_from_slice(unsafe { std::slice::from_raw_parts(row, item * length) });
            } else {
                for at in 0..length {
                    let element = row.wrapping_offset(step * at.cast_signed());
                    // SAFETY: an element lies there.
                    kept.extend_from_slice(unsafe { std::slice::from_raw_parts(element, item) });
                }
            }
        });
    }
    (kept.len() == bytes).then_some(kept)
}

/// Writes bytes of [`keep_elements`] to the elements of the same arrays. False, and nothing is written, if they are of others, or
/// these have no memory.
///
/// # Safety
///
/// Ops on the arrays have ended, and none begins meanwhile.
#[must_use]
pub unsafe fn restore_elements(arrays: &[&Array], kept: &[u8]) -> bool {
    let is_usable = |array: &&Array| array.buffer().is_host() && !array.buffer().is_readonly();
    if bytes_of(arrays) != Some(kept.len()) || !arrays.iter().all(is_usable) {
        return false;
    }
    let mut rest = kept;
    for array in arrays {
        let item = array.dtype().size();
        each_row(array, |row, step, length| {
            for at in 0_usize..length {
                let Some((bytes, behind)) = rest.split_at_checked(item) else { return };
                let element = row.cast_mut().wrapping_offset(step * at.cast_signed());
                // SAFETY: an element lies there, in memory that may be written to.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), element, item) };
                rest = behind;
            }
        });
    }
    rest.is_empty()
}

fn bytes_of(arrays: &[&Array]) -> Option<usize> {
    let bytes = |array: &&Array| array.layout().size().checked_mul(array.dtype().size());
    arrays.iter().try_fold(0_usize, |sum, array| sum.checked_add(bytes(array)?))
}
