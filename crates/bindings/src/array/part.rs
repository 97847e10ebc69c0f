//! Parts of arrays that keys name, and arrays in another shape.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice, PyTuple};
use weft_array::{Array, Layout, Shape};

/// The part that a key of integers, slices and None names; nothing for any other key, and for one that does not fit.
pub(crate) fn named(layout: &Layout, key: &Bound<'_, PyAny>) -> PyResult<Option<Layout>> {
    let several = key.cast_exact::<PyTuple>().ok();
    let count = several.map_or(1, PyTupleMethods::len);
    let mut axis = 0;
    let mut part = Layout { shape: Shape::new(), strides: layout.strides[..0].into(), offset: layout.offset };
    for at in 0..count {
        let key = match several {
            Some(keys) => keys.get_item(at)?,
            None => key.clone(),
        };
        if key.is_none() {
            part.shape.push(1);
            part.strides.push(0);
            continue;
        }
        if axis == layout.shape.len() {
            return Ok(None);
        }
        let (length, stride) = (layout.shape[axis], layout.strides[axis]);
        axis += 1;
        let start = if let Ok(index) = key.cast_exact::<PyInt>() {
            let Ok(index) = index.extract::<isize>() else { return Ok(None) };
            let from_front = if index < 0 { index.wrapping_add_unsigned(length) } else { index };
            if usize::try_from(from_front).map_or(true, |index| index >= length) {
                return Ok(None);
            }
            from_front
        } else if let Ok(slice) = key.cast_exact::<PySlice>() {
            // The long way tells the error.
            let Ok(found) = slice.indices(length.cast_signed()) else { return Ok(None) };
            part.shape.push(found.slicelength);
            part.strides.push(found.step.wrapping_mul(stride));
            found.start
        } else {
            return Ok(None);
        };
        part.offset = part.offset.wrapping_add_signed(start.wrapping_mul(stride));
    }
    part.shape.extend_from_slice(&layout.shape[axis..]);
    part.strides.extend_from_slice(&layout.strides[axis..]);
    if part.shape.contains(&0) {
        part.offset = layout.offset; // nothing lies anywhere
    }
    Ok(Some(part))
}

/// The layout of elements that lie row after row, in another shape: one integer for each axis, -1 for what is left. Nothing
/// for anything else.
pub(crate) fn reshaped(array: &Array, shape: &Bound<'_, PyTuple>) -> Option<Layout> {
    let size = array.layout().size();
    let (mut lengths, mut known, mut open) = (Shape::new(), 1_usize, None);
    for (axis, length) in shape.iter().enumerate() {
        let Ok(length) = length.cast_exact::<PyInt>() else { return None };
        let length: isize = match length.extract() {
            Ok(-1) if open.is_none() => {
                open = Some(axis);
                0
            }
            Ok(length @ 0..) => {
                known = known.saturating_mul(isize::unsigned_abs(length));
                length
            }
            _ => return None,
        };
        lengths.push(length.unsigned_abs());
    }
    if let Some(axis) = open {
        if known == 0 || !size.is_multiple_of(known) {
            return None;
        }
        lengths[axis] = size / known;
    } else if known != size {
        return None;
    }
    let mut layout = Layout::contiguous(&lengths, array.dtype().size()).ok()?;
    layout.offset = array.layout().offset;
    Some(layout)
}
