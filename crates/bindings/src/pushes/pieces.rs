//! Joins, rolls and searches without Python.

use crate::array::moves::now;
use crate::array::{NDArray, raised};
use crate::payloads::trace;
use pyo3::prelude::*;
use smallvec::SmallVec;
use weft_array::{Array, ArrayError, Layout, Piece, Which, push_extreme, push_pieces};
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

/// The arrays' places in the result of a join; None if it casts, or if not all are in the host's memory.
fn joined(
    output: &Array,
    parts: &[Bound<'_, PyAny>],
    axis: usize,
    stacked: bool,
) -> Option<Result<Vec<Piece>, ArrayError>> {
    let whole = output.layout();
    let mut pieces = Vec::new();
    let mut start = 0;
    for part in parts {
        let part = now(part.cast::<NDArray>().ok()?);
        let from = &part.get().inner;
        if from.dtype() != output.dtype() || !from.buffer().is_host() {
            return None;
        }
        let (mut shape, mut strides) = (from.layout().shape.clone(), whole.strides.clone());
        let offset = whole.offset.wrapping_add_signed(whole.strides[axis].wrapping_mul(start));
        if stacked {
            strides.remove(axis);
            start += 1;
        } else {
            start = start.wrapping_add_unsigned(shape[axis]);
        }
        if from.layout().size() > 0 {
            shape.truncate(strides.len());
            let view = Array::on(output.buffer().clone(), Layout { shape, strides, offset }, output.dtype());
            match view {
                Ok(view) => pieces.push((view, from.clone())),
                Err(error) => return Some(Err(error)),
            }
        }
    }
    Some(Ok(pieces))
}

/// Pushes copies of `parts` into `output`, end to end along one of its axes, or each at an index of that axis. False:
/// some array has another dtype or is on a device, and nothing was pushed.
pub(crate) fn join(
    output: &Bound<'_, NDArray>,
    parts: &[Bound<'_, PyAny>],
    axis: usize,
    stacked: bool,
) -> PyResult<bool> {
    let to = &output.get().inner;
    if !to.buffer().is_host() || axis >= to.layout().shape.len() {
        return Ok(false);
    }
    match joined(to, parts, axis, stacked) {
        Some(pieces) => copy(output, pieces, if stacked { "stack" } else { "concat" }),
        None => Ok(false),
    }
}

/// Pushes a copy of `from` to `to` with its elements moved along axes: those that leave at one end come in at the
/// other. `to` has all elements of `output`, or is `output` itself. False: nothing was pushed.
pub(crate) fn roll(output: &Bound<'_, NDArray>, from: &Array, to: &Array, shifts: &[(usize, isize)]) -> PyResult<bool> {
    let (shape, axes) = (&from.layout().shape, from.layout().shape.len());
    let fits = to.layout().shape == *shape && to.dtype() == from.dtype() && from.layout().size() > 0;
    if !fits || !to.buffer().is_host() || !from.buffer().is_host() || shifts.iter().any(|(axis, _)| *axis >= axes) {
        return Ok(false);
    }
    let mut by: SmallVec<[usize; 4]> = SmallVec::from_elem(0, axes);
    for &(axis, shift) in shifts {
        let length = shape[axis];
        let shift = shift.rem_euclid(length.cast_signed()).unsigned_abs();
        by[axis] = (by[axis] + shift) % length;
    }
    if by.iter().filter(|shift| **shift > 0).count() > MOVED {
        return Ok(false);
    }
    let mut cut = vec![(to.layout().clone(), from.layout().clone())];
    for (axis, shift) in by.into_iter().enumerate().filter(|(_, shift)| *shift > 0) {
        let rest = shape[axis] - shift;
        let each = |(to, from): &(Layout, Layout)| {
            [
                (part(to, axis, shift, rest), part(from, axis, 0, rest)),
                (part(to, axis, 0, shift), part(from, axis, rest, shift)),
            ]
        };
        cut = cut.iter().flat_map(each).collect();
    }
    let on = |(target, source): (Layout, Layout)| {
        let target = Array::on(to.buffer().clone(), target, to.dtype())?;
        Ok((target, Array::on(from.buffer().clone(), source, from.dtype())?))
    };
    copy(output, cut.into_iter().map(on).collect(), "roll")
}

/// Axes along which elements move at most. Each axis doubles the number of pieces.
const MOVED: usize = 3;

/// The layout of some indices of an axis.
fn part(layout: &Layout, axis: usize, start: usize, length: usize) -> Layout {
    let mut part = layout.clone();
    part.shape[axis] = length;
    part.offset = part.offset.wrapping_add_signed(part.strides[axis].wrapping_mul(start.cast_signed()));
    part
}

fn copy(output: &Bound<'_, NDArray>, pieces: Result<Vec<Piece>, ArrayError>, name: &str) -> PyResult<bool> {
    let (py, to) = (output.py(), &output.get().inner);
    let pieces = pieces.map_err(|error| raised(py, error))?;
    output.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
    let note = trace::of_arrays(py, to.engine(), Kind::Copy, name);
    let options = PushOptions { note, ..PushOptions::default() };
    push_pieces(to, &pieces, options).map_err(|error| raised(py, error))?;
    Ok(true)
}

/// Pushes the search for the largest or the smallest elements, along an axis or in all of `x`; their places go into
/// `output`. False: there is no loop for this dtype and layout, and nothing was pushed.
pub(crate) fn search(output: &Bound<'_, NDArray>, x: &NDArray, axis: Option<usize>, largest: bool) -> PyResult<bool> {
    let (py, to, from) = (output.py(), &output.get().inner, &x.inner);
    if !to.buffer().is_host() || !from.buffer().is_host() {
        return Ok(false);
    }
    output.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
    let (which, name) = if largest { (Which::Largest, "argmax") } else { (Which::Smallest, "argmin") };
    let note = trace::of_arrays(py, to.engine(), Kind::Compute, name);
    push_extreme(which, to, from, axis, PushOptions { note, ..PushOptions::default() })
        .map_err(|error| raised(py, error))
}
