//! The time that a look at the clock adds to what is timed.

use std::time::Instant;

/// Looks of which the shortest counts, as it does of steps.
const LOOKS: u32 = 16;
/// More than clocks take: who lost the processor at each look must not take all of a step's time for the clock's.
const MOST: u32 = 200;

/// Nanoseconds between two looks with nothing in between.
pub(super) fn look() -> u32 {
    let look = |_| Instant::now().elapsed().as_nanos();
    (0..LOOKS).map(look).min().and_then(|least| u32::try_from(least).ok()).map_or(MOST, |least| least.min(MOST))
}
