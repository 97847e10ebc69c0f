//! Parts of arrays that keys name.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice, PyTuple};
use weft_array::{Layout, Shape};

/// The part that a key of integers and slices names; nothing for any other key, and for one that does not fit.
pub(super) fn named(layout: &Layout, key: &Bound<'_, PyAny>) -> PyResult<Option<Layout>> {
    let several = key.cast_exact::<PyTuple>().ok();
    let count = several.map_or(1, PyTupleMethods::len);
    if count > layout.shape.len() {
        return Ok(None);
    }
    let mut part = Layout { shape: Shape::new(), strides: layout.strides[..0].into(), offset: layout.offset };
    for at in 0..count {
        let (length, stride) = (layout.shape[at], layout.strides[at]);
        let key = match several {
            Some(keys) => keys.get_item(at)?,
            None => key.clone(),
        };
        let start = if let Ok(index) = key.cast_exact::<PyInt>() {
            let Ok(index) = index.extract::<isize>() else { return Ok(None) };
            let from_front = if index < 0 { index.wrapping_add_unsigned(length) } else { index };
            if usize::try_from(from_front).map_or(true, |index| index >= length) {
                return Ok(None);
            }
            from_front
        } else if let Ok(slice) = key.cast_exact::<PySlice>() {
            let found = slice.indices(length.cast_signed())?;
            part.shape.push(found.slicelength);
            part.strides.push(found.step.wrapping_mul(stride));
            found.start
        } else {
            return Ok(None);
        };
        part.offset = part.offset.wrapping_add_signed(start.wrapping_mul(stride));
    }
    part.shape.extend_from_slice(&layout.shape[count..]);
    part.strides.extend_from_slice(&layout.strides[count..]);
    if part.shape.contains(&0) {
        part.offset = layout.offset; // nothing lies anywhere
    }
    Ok(Some(part))
}
