//! Products of matrices; a vector is a matrix with one row or column.

use crate::array::{NDArray, raised};
use crate::pushes::Loop;
use pyo3::prelude::*;
use smallvec::SmallVec;
use weft_array::{Array, multiply_here, push_matmul};
use weft_engine::PushOptions;

/// Pushes a product. A product of small, ready matrices is computed now.
pub(super) fn multiply(
    py: Python<'_>,
    of: &Loop,
    result: &Bound<'_, NDArray>,
    operands: &[Bound<'_, PyAny>],
) -> PyResult<bool> {
    let to = &result.get().inner;
    let [left, right] = operands else { return Ok(false) };
    let (Ok(left), Ok(right)) = (left.cast::<NDArray>(), right.cast::<NDArray>()) else { return Ok(false) };
    let (left, right) = (&left.get().inner, &right.get().inner);
    result.get().owner().get().wait_for_room(py, to.bytes() as u64)?;
    let ranks = [left, right].map(|array| array.layout().shape.len());
    if ranks.iter().all(|rank| *rank <= 2)
        && multiply_here(of.kernel, to, left, right, Loop::options(py, to, &of.name))
            .map_err(|error| raised(py, error))?
    {
        return Ok(true);
    }
    let matrix = |array: &Array, at: &[usize]| {
        let (mut layout, item) = (array.layout().clone(), array.dtype().size().cast_signed());
        for at in at {
            layout.shape.insert(*at, 1);
            layout.strides.insert(*at, item);
        }
        Array::on(array.buffer().clone(), layout, array.dtype()).map_err(|error| raised(py, error))
    };
    // A vector on the left is a row, one on the right a column. Of the axes that the product lacks, the column is last.
    let (row, column): (&[usize], &[usize]) = (&[0][..usize::from(ranks[0] == 1)], &[1][..usize::from(ranks[1] == 1)]);
    let last = to.layout().shape.len();
    let mut missing: SmallVec<[usize; 2]> = SmallVec::new();
    if !column.is_empty() {
        missing.push(last);
    }
    if !row.is_empty() {
        missing.push((last + column.len()).saturating_sub(1));
    }
    let (left, right, target) = (matrix(left, row)?, matrix(right, column)?, matrix(to, &missing)?);
    let options = PushOptions { bytes: to.bytes() as u64, ..Loop::options(py, to, &of.name) };
    push_matmul(of.kernel, &target, &left, &right, options).map_err(|error| raised(py, error))?;
    Ok(true)
}
