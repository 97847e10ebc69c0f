//! Several placements, and the choice of the best.
//!
//! The attempts depend on the intervals alone, never on the clock: a plan is the same everywhere.

use crate::place::{Fit, Placer, as_allocated};
use crate::problem::{Item, Problem};
use std::cmp::Reverse;

/// How many conflicts may be looked at: some 20 ms.
const WORK: usize = 2_500_000;

/// The best placement so far.
#[derive(Debug, Clone)]
pub(crate) struct Best {
    /// Where each item lies, in units.
    pub(crate) places: Vec<u64>,
    /// The size of the memory that it takes, in bytes.
    pub(crate) extent: u64,
}

impl Best {
    pub(crate) fn offer(&mut self, places: &[u64], extent: u64) -> bool {
        let better = extent < self.extent;
        if better {
            self.extent = extent;
            self.places.copy_from_slice(places);
        }
        better
    }
}

/// The best of all placements by rule, and of those by lifts of the top; where none can take less than `below`, some placement.
pub(crate) fn portfolio(problem: &Problem, below: u64) -> Best {
    let allocated = if problem.apart { one_behind_the_other(problem) } else { as_allocated(problem) };
    let extent = problem.extent(&allocated);
    let mut best = Best { places: allocated, extent };
    if !problem.lists_conflicts() || best.extent == problem.bound || problem.bound >= below {
        return best;
    }
    let orders = placing_orders(problem);
    let mut placer = Placer::new(problem);
    let mut starts: Vec<(u64, usize)> = Vec::new();
    for (number, order) in orders.iter().enumerate() {
        for fit in [Fit::First, Fit::Best] {
            let extent = placer.in_order(order, fit);
            best.offer(&placer.places, extent);
            if fit == Fit::First {
                starts.push((extent, number));
            }
        }
        let extent = placer.lowest_first(order);
        best.offer(&placer.places, extent);
        if best.extent == problem.bound || placer.work > WORK {
            return best;
        }
    }
    if problem.apart {
        return best; // the bound, which knows intervals alone, may be out of reach
    }
    starts.sort_unstable();
    let share = (WORK - placer.work) / 3;
    for &(_, number) in starts.iter().take(3) {
        let until = placer.work + share;
        lift(problem, &mut placer, orders[number].clone(), until, &mut best);
        if best.extent == problem.bound {
            break;
        }
    }
    best
}

/// Every item in a place of its own.
fn one_behind_the_other(problem: &Problem) -> Vec<u64> {
    let behind = problem.items.iter().scan(0, |next, item| {
        *next += item.units;
        Some(*next - item.units)
    });
    behind.collect()
}

/// Places again and again, each time with the topmost items moved forward in the order.
fn lift(problem: &Problem, placer: &mut Placer<'_>, mut order: Vec<u32>, until: usize, best: &mut Best) {
    let mut turn = 0_usize;
    while placer.work < until && best.extent > problem.bound {
        let extent = placer.in_order(&order, Fit::First);
        best.offer(&placer.places, extent);
        let top = |item: u32| problem.end(&problem.items[item as usize], placer.places[item as usize]) == extent;
        let Some(position) = order.iter().position(|&item| top(item)) else { return };
        // Mostly halfway, at times to the front, so that it does not run in a circle.
        turn += 1;
        let target = if turn.is_multiple_of(7) { 0 } else { position / 2 };
        if position == 0 {
            return;
        }
        order[target..=position].rotate_right(1);
        placer.work += order.len();
    }
}

/// The orders that are tried.
pub(crate) fn placing_orders(problem: &Problem) -> Vec<Vec<u32>> {
    let sections = |item: &Item| u64::from(item.last - item.first);
    let area = |item: &Item| u128::from(item.units) * u128::from(item.length);
    let fullest = fullest(problem);
    let by = |key: &dyn Fn(u32, &Item) -> (u128, u128, u128)| {
        let mut order: Vec<u32> = (0..).take(problem.items.len()).collect();
        order.sort_by_key(|&item| Reverse(key(item, &problem.items[item as usize])));
        order
    };
    let full = |item: u32| u128::from(fullest[item as usize]);
    vec![
        by(&|_, item| (item.units.into(), item.length.into(), 0)),
        by(&|_, item| (area(item), item.units.into(), 0)),
        by(&|_, item| (item.length.into(), area(item), 0)),
        by(&|index, item| (full(index), area(item), item.length.into())),
        by(&|index, item| (full(index), item.length.into(), area(item))),
        by(&|_, item| (sections(item).into(), item.units.into(), 0)),
        by(&|_, item| (u128::from(u32::MAX - item.first), item.units.into(), 0)),
    ]
}

/// The most units that are live in one of each item's sections.
pub(crate) fn fullest(problem: &Problem) -> Vec<u64> {
    let live = &problem.live;
    let most = |item: &Item| live[item.first as usize..item.last as usize].iter().copied().max().unwrap_or(0);
    problem.items.iter().map(most).collect()
}
