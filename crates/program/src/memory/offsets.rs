//! Offsets for temporaries that live for a while.

/// Offsets for intervals of time, each with a size in bytes: first fit, the largest first. Answers them and their extent.
///
/// Interval `i` is in use from `lower[i]` until before `upper[i]`.
pub(crate) fn plan_offsets(lower: &[usize], upper: &[usize], size: &[usize], alignment: usize) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..size.len()).filter(|&at| size[at] > 0).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(size[at]), lower[at]));
    let mut offsets = vec![0; size.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(order.len());
    let mut extent = 0;
    for at in order {
        let mut taken: Vec<(usize, usize)> = placed
            .iter()
            .filter(|&&other| lower[other] < upper[at] && lower[at] < upper[other])
            .map(|&other| (offsets[other], offsets[other] + size[other]))
            .collect();
        taken.sort_unstable();
        let mut from = 0_usize;
        for (start, end) in taken {
            if start >= from + size[at] {
                break;
            }
            from = from.max(end.next_multiple_of(alignment));
        }
        offsets[at] = from;
        extent = extent.max(from + size[at]);
        placed.push(at);
    }
    (offsets, extent)
}
