//! Start times of instructions on unlimited workers, subject to a bound on the critical path.

use std::ops::Range;

/// The begin of an instruction with its inputs there, as far as the ways behind it leave time to wait.
#[derive(Debug, Clone, Copy)]
pub(super) enum Begin {
    /// Immediately.
    Ready,
    /// Not before the one that goes before it in recorded order.
    InOrder,
    /// When that one is done.
    OneByOne,
}

/// The longest way from the begin of each instruction to the end of all.
pub(super) fn ways(costs: &[usize], dependencies: &[Vec<usize>]) -> Vec<usize> {
    let mut ways = costs.to_vec();
    for at in (0..costs.len()).rev() {
        for &before in &dependencies[at] {
            ways[before] = ways[before].max(costs[before] + ways[at]);
        }
    }
    ways
}

/// From when to when each runs, such that all are done by `allowed`, which is no less than the longest way.
pub(super) fn times(costs: &[usize], dependencies: &[Vec<usize>], allowed: usize, begin: Begin) -> Vec<Range<usize>> {
    let ways = ways(costs, dependencies);
    let mut times: Vec<Range<usize>> = Vec::with_capacity(costs.len());
    let mut latest = 0;
    for (at, cost) in costs.iter().enumerate() {
        let ready = dependencies[at].iter().map(|before| times[*before].end).max().unwrap_or(0);
        let wanted = match begin {
            Begin::Ready => 0,
            Begin::InOrder => latest,
            Begin::OneByOne => times.last().map_or(0, |time| time.end),
        };
        // Earlier instructions are done in time for the ways behind them, this one's among them.
        let start = ready.max(wanted.min(allowed.saturating_sub(ways[at])));
        latest = latest.max(start);
        times.push(start..start + cost);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::{Begin, times};

    /// Two ways, one after the other in recorded order: 0 and 1, and 2.
    const COSTS: [usize; 3] = [10, 10, 10];

    fn dependencies() -> Vec<Vec<usize>> {
        vec![vec![], vec![0], vec![]]
    }

    #[test]
    fn nothing_waits_longer_than_the_ways_behind_it_leave_time() {
        let at = |allowed, begin| times(&COSTS, &dependencies(), allowed, begin)[2].start;
        assert_eq!(at(20, Begin::Ready), 0);
        assert_eq!(at(20, Begin::InOrder), 10);
        assert_eq!(at(20, Begin::OneByOne), 10);
        assert_eq!(at(25, Begin::OneByOne), 15);
        assert_eq!(at(100, Begin::OneByOne), 20);
    }

    #[test]
    fn all_are_done_in_time() {
        // A diamond with sides of different length, and a way beside it.
        let costs = [5, 40, 3, 7, 2, 30];
        let dependencies = vec![vec![], vec![0], vec![0], vec![1, 2], vec![], vec![4]];
        for begin in [Begin::Ready, Begin::InOrder, Begin::OneByOne] {
            for allowed in 52..90 {
                let times = times(&costs, &dependencies, allowed, begin);
                assert!(times.iter().all(|time| time.end <= allowed), "{begin:?} {allowed} {times:?}");
                for (time, before) in times.iter().zip(&dependencies) {
                    assert!(before.iter().all(|at| times[*at].end <= time.start));
                }
            }
        }
    }
}
