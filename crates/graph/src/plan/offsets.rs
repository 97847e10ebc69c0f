//! The face of the planner of offsets.

use super::error::{Effort, PlanError};
use super::portfolio::portfolio;
use super::problem::Problem;

/// What a placement has to keep to, and how long it may be looked for.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Offsets are multiples of it: a power of two.
    pub alignment: u64,
    /// The size of the memory, where there is a limit.
    pub capacity: Option<u64>,
    /// How long an exact search may take.
    pub seconds: f64,
    /// Asked now and then during a search; true ends it.
    pub interrupted: Option<&'a dyn Fn() -> bool>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { alignment: 64, capacity: None, seconds: 0.0, interrupted: None }
    }
}

/// Where intervals lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// One offset for each interval, in bytes.
    pub offsets: Vec<u64>,
    /// The size of the memory: the end of the interval that ends last.
    pub nbytes: u64,
    /// What no placement is smaller than: the peak of live bytes, sizes rounded up to the alignment.
    pub bound: u64,
}

/// Finds offsets for intervals, so that no two of them that are live at the same time share a byte.
///
/// Interval `i` is live in `lower[i]..upper[i]` and takes `size[i]` bytes. What has no size or no lifetime conflicts
/// with nothing, and lies at 0. Without `seconds` or a `capacity` that is not met, the best of several placements by rule
/// is taken: some 50 ms for hundreds of intervals, one walk along time for hundreds of thousands.
///
/// # Examples
///
/// ```
/// use weft_graph::plan::{Options, plan_offsets};
///
/// // The third begins when the first ends, and takes its place.
/// let placement = plan_offsets(&[0, 0, 1], &[1, 2, 2], &[64, 128, 64], &Options::default())?;
/// assert_eq!((placement.offsets, placement.nbytes), (vec![128, 0, 128], 192));
/// # Ok::<_, weft_graph::plan::PlanError>(())
/// ```
pub fn plan_offsets(lower: &[i64], upper: &[i64], size: &[u64], options: &Options<'_>) -> Result<Placement, PlanError> {
    if options.seconds.is_nan() || options.seconds < 0.0 {
        return Err(PlanError::Seconds(options.seconds));
    }
    let problem = Problem::new(lower, upper, size, options.alignment)?;
    let bound = problem.bound;
    if let Some(capacity) = options.capacity.filter(|&capacity| capacity < bound) {
        return Err(PlanError::Capacity { capacity, bound, time: problem.bound_time });
    }
    let best = portfolio(&problem);
    if let Some(capacity) = options.capacity.filter(|&capacity| capacity < best.extent) {
        return Err(PlanError::NotFound { capacity, bound, best: best.extent, after: Effort::Steps(0) });
    }
    let mut offsets = vec![0; problem.given];
    for (item, place) in problem.items.iter().zip(&best.places) {
        offsets[item.index as usize] = place * problem.unit;
    }
    Ok(Placement { offsets, nbytes: best.extent, bound })
}
