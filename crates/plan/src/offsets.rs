//! The face of the planner of offsets.

use crate::error::{Effort, PlanError};
use crate::portfolio::{Best, portfolio};
use crate::problem::Problem;
use crate::search::{Limits, Outcome, search};
use std::time::{Duration, Instant};

/// The steps of a search for a capacity when no time is given: some minutes.
const STEPS: u64 = 100_000_000;

/// The limits of a placement, and the time for its search.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Offsets are multiples of it: a power of two.
    pub alignment: u64,
    /// The size of the memory, where there is a limit.
    pub capacity: Option<u64>,
    /// The size that another plan takes: where no placement can take less, any will do.
    pub below: Option<u64>,
    /// How long an exact search may take. With a capacity and 0: a fixed number of steps.
    pub seconds: f64,
    /// Asked now and then during a search; true ends it.
    pub interrupted: Option<&'a dyn Fn() -> bool>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { alignment: 64, capacity: None, below: None, seconds: 0.0, interrupted: None }
    }
}

/// Where intervals lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// One offset for each interval, in bytes.
    pub offsets: Vec<u64>,
    /// The size of the memory: the end of the interval that ends last.
    pub nbytes: u64,
    /// The lower bound of placements: the peak of live bytes, sizes rounded up to the alignment.
    pub bound: u64,
}

/// Finds offsets for intervals, so that no two of them that are live at the same time share a byte.
///
/// Interval `i` is live in `lower[i]..upper[i]` and takes `size[i]` bytes. An interval without size or lifetime
/// conflicts with nothing, and lies at 0. Without `seconds` or a `capacity` that is not met, the best of several
/// placements by rule is taken: some 50 ms for hundreds of intervals, one walk along time for hundreds of thousands.
///
/// # Examples
///
/// ```
/// use weft_plan::{Options, plan_offsets};
///
/// // The third begins when the first ends, and takes its place.
/// let placement = plan_offsets(&[0, 0, 1], &[1, 2, 2], &[64, 128, 64], &Options::default())?;
/// assert_eq!((placement.offsets, placement.nbytes), (vec![128, 0, 128], 192));
/// # Ok::<_, weft_plan::PlanError>(())
/// ```
pub fn plan_offsets(lower: &[i64], upper: &[i64], size: &[u64], options: &Options<'_>) -> Result<Placement, PlanError> {
    if options.seconds.is_nan() || options.seconds < 0.0 {
        return Err(PlanError::Seconds(options.seconds));
    }
    placed(&Problem::new(lower, upper, size, options.alignment)?, options)
}

/// The same by rule alone, where these pairs of intervals share no byte either; None if there are too many to compare.
///
/// # Examples
///
/// ```
/// use weft_plan::{Options, plan_offsets_apart};
///
/// let placement = plan_offsets_apart(&[0, 1], &[1, 2], &[64, 64], &[(0, 1)], &Options::default())?;
/// assert_eq!(placement.map(|placement| placement.nbytes), Some(128));
/// # Ok::<_, weft_plan::PlanError>(())
/// ```
pub fn plan_offsets_apart(
    lower: &[i64],
    upper: &[i64],
    size: &[u64],
    apart: &[(usize, usize)],
    options: &Options<'_>,
) -> Result<Option<Placement>, PlanError> {
    let mut problem = Problem::new(lower, upper, size, options.alignment)?;
    if !problem.keep_apart(apart) {
        return Ok(None);
    }
    placed(&problem, &Options { capacity: None, seconds: 0.0, ..*options }).map(Some)
}

fn placed(problem: &Problem, options: &Options<'_>) -> Result<Placement, PlanError> {
    let bound = problem.bound;
    if let Some(capacity) = options.capacity.filter(|&capacity| capacity < bound) {
        return Err(PlanError::Capacity { capacity, bound, time: problem.bound_time });
    }
    let mut best = portfolio(problem, options.below.unwrap_or(u64::MAX));
    improve(problem, options, &mut best)?;
    let mut offsets = vec![0; problem.given];
    for (item, place) in problem.items.iter().zip(&best.places) {
        offsets[item.index as usize] = place * problem.unit;
    }
    Ok(Placement { offsets, nbytes: best.extent, bound })
}

/// Searches for the rest of the request.
fn improve(problem: &Problem, options: &Options<'_>, best: &mut Best) -> Result<(), PlanError> {
    let Options { capacity, seconds, interrupted, .. } = *options;
    if best.extent <= capacity.unwrap_or(problem.bound) {
        return Ok(());
    }
    match capacity {
        Some(capacity) => fit(problem, capacity, seconds, interrupted, best),
        None if seconds > 0.0 => shrink(problem, seconds, interrupted, best),
        None => Ok(()),
    }
}

/// Searches for a placement within the capacity.
fn fit(
    problem: &Problem,
    capacity: u64,
    seconds: f64,
    interrupted: Option<&dyn Fn() -> bool>,
    best: &mut Best,
) -> Result<(), PlanError> {
    let bound = problem.bound;
    let (steps, after) =
        if seconds > 0.0 { (u64::MAX, Effort::Seconds(seconds)) } else { (STEPS, Effort::Steps(STEPS)) };
    let mut limits = Limits::new(steps, deadline(seconds), interrupted);
    match search(problem, capacity, &mut limits) {
        Outcome::Found(places) => {
            best.extent = problem.extent(&places);
            best.places = places;
            Ok(())
        }
        Outcome::Interrupted => Err(PlanError::Interrupted),
        Outcome::Impossible => Err(PlanError::Impossible { capacity, bound, best: best.extent }),
        Outcome::Spent => Err(PlanError::NotFound { capacity, bound, best: best.extent, after }),
    }
}

/// Searches for the smallest placement: at the bound first, then between it and the best.
fn shrink(
    problem: &Problem,
    seconds: f64,
    interrupted: Option<&dyn Fn() -> bool>,
    best: &mut Best,
) -> Result<(), PlanError> {
    let until = deadline(seconds);
    // Below `low` there is nothing, or nothing that was found in its share of the time.
    let (mut low, mut target) = (problem.bound, problem.bound);
    while low < best.extent {
        let now = Instant::now();
        let share = until.map(|until| now + until.saturating_duration_since(now) / 4);
        if until.is_some_and(|until| until.saturating_duration_since(now) < Duration::from_millis(1)) {
            break;
        }
        match search(problem, target, &mut Limits::new(u64::MAX, share, interrupted)) {
            Outcome::Found(places) => {
                let extent = problem.extent(&places);
                best.offer(&places, extent);
            }
            Outcome::Interrupted => return Err(PlanError::Interrupted),
            Outcome::Impossible | Outcome::Spent => low = target + 1,
        }
        target = low + best.extent.saturating_sub(low) / 2;
    }
    Ok(())
}

/// When so many seconds are over; None for never.
fn deadline(seconds: f64) -> Option<Instant> {
    let seconds = Duration::try_from_secs_f64(seconds).ok().filter(|seconds| !seconds.is_zero())?;
    Instant::now().checked_add(seconds)
}
