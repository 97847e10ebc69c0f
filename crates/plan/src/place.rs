//! Placements: each item in turn goes to the lowest place that is free, or to the tightest.

use crate::problem::Problem;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Which gap an item takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The lowest that is large enough.
    First,
    /// The smallest that is large enough.
    Best,
}

/// Places item after item, and counts the cost.
pub(crate) struct Placer<'a> {
    problem: &'a Problem,
    pub(crate) places: Vec<u64>,
    placed: Vec<bool>,
    taken: Vec<(u64, u64)>,
    /// Conflicts looked at so far.
    pub(crate) work: usize,
}

impl<'a> Placer<'a> {
    pub(crate) fn new(problem: &'a Problem) -> Self {
        let items = problem.items.len();
        Self { problem, places: vec![0; items], placed: vec![false; items], taken: Vec::new(), work: 0 }
    }

    /// Places all items in this order; returns the size of the memory that they take.
    pub(crate) fn in_order(&mut self, order: &[u32], fit: Fit) -> u64 {
        self.placed.fill(false);
        for &item in order {
            let item = item as usize;
            self.places[item] = self.place(item, fit);
            self.placed[item] = true;
        }
        self.problem.extent(&self.places)
    }

    fn place(&mut self, item: usize, fit: Fit) -> u64 {
        let Self { problem, places, placed, taken, work } = self;
        let conflicts = problem.conflicts(item);
        *work += conflicts.len();
        taken.clear();
        taken.extend(conflicts.iter().map(|&other| other as usize).filter(|&other| placed[other]).map(|other| {
            let place = places[other];
            (place, place + problem.items[other].units)
        }));
        taken.sort_unstable();
        let units = problem.items[item].units;
        let mut free = 0;
        let mut best: Option<(u64, u64)> = None;
        for &(begin, end) in taken.iter() {
            if begin >= free + units {
                let gap = begin - free;
                if fit == Fit::First || gap == units {
                    return free;
                }
                if best.is_none_or(|(smallest, _)| gap < smallest) {
                    best = Some((gap, free));
                }
            }
            free = end.max(free);
        }
        best.map_or(free, |(_, place)| place)
    }

    /// Places next whichever item can lie lowest, the first in the order where several can.
    pub(crate) fn lowest_first(&mut self, order: &[u32]) -> u64 {
        let Self { problem, places, placed, work, .. } = self;
        places.fill(0);
        placed.fill(false);
        let mut rank = vec![0_u32; order.len()];
        for (place, &item) in (0..).zip(order) {
            rank[item as usize] = place;
        }
        // Entries with a place that was raised since are stale.
        let mut waiting: BinaryHeap<_> = order.iter().map(|&item| Reverse((0, rank[item as usize]))).collect();
        while let Some(Reverse((place, rank_of))) = waiting.pop() {
            let item = order[rank_of as usize] as usize;
            if placed[item] || places[item] != place {
                continue;
            }
            placed[item] = true;
            let end = place + problem.items[item].units;
            let conflicts = problem.conflicts(item);
            *work += conflicts.len();
            for &other in conflicts {
                let other = other as usize;
                if !placed[other] && places[other] < end {
                    places[other] = end;
                    waiting.push(Reverse((end, rank[other])));
                }
            }
        }
        problem.extent(places)
    }
}

/// Places items as they begin, as an allocator would while the program runs: in the smallest gap that is large enough.
/// Needs no list of conflicts.
pub(crate) fn as_allocated(problem: &Problem) -> Vec<u64> {
    let items = &problem.items;
    let mut begins: Vec<u32> = (0..).take(items.len()).collect();
    let mut ends = begins.clone();
    begins.sort_unstable_by_key(|&item| (items[item as usize].first, Reverse(items[item as usize].units)));
    ends.sort_unstable_by_key(|&item| items[item as usize].last);
    let mut ends = ends.into_iter().peekable();
    let mut places = vec![0; items.len()];
    let mut free = Free::default();
    for item in begins {
        let item = item as usize;
        while let Some(ended) = ends.next_if(|&other| items[other as usize].last <= items[item].first) {
            let ended = ended as usize;
            free.give(places[ended], items[ended].units);
        }
        places[item] = free.take(items[item].units);
    }
    places
}

/// Gaps below the top.
#[derive(Default)]
struct Free {
    top: u64,
    /// Size by begin.
    gaps: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
}

impl Free {
    fn take(&mut self, units: u64) -> u64 {
        if let Some(&(size, begin)) = self.by_size.range((units, 0)..).next() {
            self.remove(begin, size);
            if size > units {
                self.insert(begin + units, size - units);
            }
            return begin;
        }
        // The gap below the top grows, if there is one.
        let begin = match self.gaps.last_key_value() {
            Some((&begin, &size)) if begin + size == self.top => {
                self.remove(begin, size);
                begin
            }
            _ => self.top,
        };
        self.top = begin + units;
        begin
    }

    fn give(&mut self, begin: u64, units: u64) {
        let (mut begin, mut units) = (begin, units);
        if let Some((&before, &size)) = self.gaps.range(..begin).next_back()
            && before + size == begin
        {
            self.remove(before, size);
            (begin, units) = (before, units + size);
        }
        if let Some(&size) = self.gaps.get(&(begin + units)) {
            self.remove(begin + units, size);
            units += size;
        }
        self.insert(begin, units);
    }

    fn insert(&mut self, begin: u64, size: u64) {
        self.gaps.insert(begin, size);
        self.by_size.insert((size, begin));
    }

    fn remove(&mut self, begin: u64, size: u64) {
        self.gaps.remove(&begin);
        self.by_size.remove(&(size, begin));
    }
}
