//! When ops run: one after the other, or as soon as they can.

use crate::network::Linked;

/// When each op begins and ends. Ops with overlapping spans may run at the same time.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) begin: Vec<u64>,
    pub(crate) end: Vec<u64>,
    /// The ops by their begins.
    pub(crate) order: Vec<usize>,
}

impl Schedule {
    /// One after the other: the place in the order is the time.
    pub(crate) fn serial(order: Vec<usize>) -> Self {
        let mut begin = vec![0; order.len()];
        for (time, &op) in (0..).zip(&order) {
            begin[op] = time;
        }
        let end = begin.iter().map(|begin| begin + 1).collect();
        Self { begin, end, order }
    }

    /// Each as soon as its predecessors are done.
    pub(crate) fn early(linked: &Linked<'_>) -> Self {
        let order = linked.by_rank(&vec![0; linked.before.len()]);
        let mut end = vec![0; order.len()];
        for &op in &order {
            let begin = linked.before[op].iter().map(|&other| end[other]).max().unwrap_or(0);
            end[op] = begin + linked.cost(op);
        }
        Self::of_ends(linked, end)
    }

    /// Each as late as its successors allow, so that the last is done at `last`.
    pub(crate) fn late(linked: &Linked<'_>, last: u64) -> Self {
        let order = linked.by_rank(&vec![0; linked.before.len()]);
        let mut end = vec![last; order.len()];
        for &op in order.iter().rev() {
            let begins = linked.behind[op].iter().map(|&other| end[other] - linked.cost(other));
            end[op] = begins.min().unwrap_or(last);
        }
        Self::of_ends(linked, end)
    }

    /// Each as soon as one of so many workers has time for it; the one with the longest way to go comes first.
    pub(crate) fn for_workers(linked: &Linked<'_>, workers: usize) -> Self {
        use std::cmp::Reverse;
        use std::collections::BinaryHeap;
        let way = ways(linked);
        let mut open: Vec<usize> = linked.before.iter().map(Vec::len).collect();
        let mut ready: BinaryHeap<(u64, Reverse<usize>)> =
            (0..open.len()).filter(|&op| open[op] == 0).map(|op| (way[op], Reverse(op))).collect();
        let mut running: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut end = vec![0; open.len()];
        let mut now = 0;
        loop {
            while running.len() < workers.max(1)
                && let Some((_, Reverse(op))) = ready.pop()
            {
                end[op] = now + linked.cost(op);
                running.push(Reverse((end[op], op)));
            }
            let Some(Reverse((time, op))) = running.pop() else { return Self::of_ends(linked, end) };
            now = time;
            for &next in &linked.behind[op] {
                open[next] -= 1;
                if open[next] == 0 {
                    ready.push((way[next], Reverse(next)));
                }
            }
        }
    }

    fn of_ends(linked: &Linked<'_>, end: Vec<u64>) -> Self {
        let begin: Vec<u64> = end.iter().enumerate().map(|(op, end)| end - linked.cost(op)).collect();
        let order = linked.by_rank(&begin);
        Self { begin, end, order }
    }

    /// When the last op is done.
    pub(crate) fn last(&self) -> u64 {
        self.end.iter().copied().max().unwrap_or(0)
    }
}

/// The longest way from the begin of each op to the end.
pub(crate) fn ways(linked: &Linked<'_>) -> Vec<u64> {
    let early = Schedule::early(linked);
    let mut way = vec![0; early.order.len()];
    for &op in early.order.iter().rev() {
        way[op] = linked.cost(op) + linked.behind[op].iter().map(|&next| way[next]).max().unwrap_or(0);
    }
    way
}
