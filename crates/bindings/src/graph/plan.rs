//! The planner of offsets.

use crate::interpreter::errors;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use std::cell::RefCell;
use weft_plan::{Options, PlanError, plan_offsets as plan};

/// Writes an offset for each interval into `out`; returns the size of the memory and its lower bound.
///
/// All are contiguous int64; sizes are not negative.
#[pyfunction]
#[pyo3(signature = (lower, upper, size, out, alignment, capacity, seconds))]
#[allow(clippy::too_many_arguments)] // columns and options, as Python has checked them
pub(crate) fn plan_offsets(
    py: Python<'_>,
    lower: PyBuffer<i64>,
    upper: PyBuffer<i64>,
    size: PyBuffer<i64>,
    out: PyBuffer<i64>,
    alignment: u64,
    capacity: Option<u64>,
    seconds: f64,
) -> PyResult<(u64, u64)> {
    let (lower, upper) = (lower.to_vec(py)?, upper.to_vec(py)?);
    let size: Vec<u64> = size.to_vec(py)?.into_iter().map(i64::cast_unsigned).collect();
    let (placement, raised) = py.detach(|| {
        let raised = RefCell::new(None);
        #[allow(clippy::redundant_closure_for_method_calls)] // the method itself is for one lifetime
        let interrupted = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(error) => {
                raised.replace(Some(error));
                true
            }
        };
        let options = Options { alignment, capacity, below: None, seconds, interrupted: Some(&interrupted) };
        (plan(&lower, &upper, &size, &options), raised.into_inner())
    });
    let placement = match (placement, raised) {
        (Err(PlanError::Interrupted), Some(error)) => return Err(error),
        (placement, _) => placement.map_err(|error| errors::plan(py, &error))?,
    };
    // Sums of sizes fit into 63 bits.
    let offsets: Vec<i64> = placement.offsets.into_iter().map(u64::cast_signed).collect();
    out.copy_from_slice(py, &offsets)?;
    Ok((placement.nbytes, placement.bound))
}
