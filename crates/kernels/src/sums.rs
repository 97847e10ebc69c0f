//! Sums of float64.

/// Sums that go on side by side.
const LANES: usize = 8;

/// The sum of a function of elements, in an order that depends on their number alone.
pub(crate) fn sum(count: usize, of: impl Fn(usize) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let whole = count - count % LANES;
    for at in (0..whole).step_by(LANES) {
        for (lane, total) in lanes.iter_mut().enumerate() {
            *total += of(at + lane);
        }
    }
    let rest: f64 = (whole..count).map(of).sum();
    lanes.iter().sum::<f64>() + rest
}

/// The reciprocal of a number of elements.
pub(crate) fn share(count: usize) -> f64 {
    1.0 / u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
