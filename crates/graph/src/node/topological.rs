//! A topological order.

/// Orders items, given for each those that come before it: as they are where that will do.
///
/// # Errors
///
/// One of those that come before themselves.
pub fn topological_order(before: &[Vec<usize>]) -> Result<Vec<usize>, usize> {
    if before.iter().enumerate().all(|(at, before)| before.iter().all(|&each| each < at)) {
        return Ok((0..before.len()).collect());
    }
    let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
    for (at, before) in before.iter().enumerate() {
        before.iter().for_each(|&each| after[each].push(at));
    }
    let mut order: Vec<usize> = (0..before.len()).filter(|&at| waiting[at] == 0).collect();
    let mut next = 0;
    while let Some(&done) = order.get(next) {
        next += 1;
        for &at in &after[done] {
            waiting[at] -= 1;
            if waiting[at] == 0 {
                order.push(at);
            }
        }
    }
    match waiting.iter().position(|&count| count > 0) {
        None => Ok(order),
        Some(at) => Err(at),
    }
}
