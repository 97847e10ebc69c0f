//! Intervals made ready to be placed: checked, in units of the alignment, time cut into sections.
//!
//! A *section* is a span of time in which nothing ends before the last interval has begun: a largest set of intervals
//! that all conflict. Two intervals conflict exactly if they share a section, so sections are all that is kept of time.

use crate::error::PlanError;
use std::collections::BinaryHeap;

/// An interval that takes part: it has a size and a lifetime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    /// The caller's index.
    pub(crate) index: u32,
    /// Its first section.
    pub(crate) first: u32,
    /// The section behind its last.
    pub(crate) last: u32,
    /// Size in units.
    pub(crate) units: u64,
    /// The units' excess over the size, in bytes.
    pub(crate) pad: u64,
    /// How long it lives.
    pub(crate) length: u64,
}

/// The items to place.
#[derive(Debug)]
pub(crate) struct Problem {
    /// How many intervals the caller has.
    pub(crate) given: usize,
    /// Bytes of a unit.
    pub(crate) unit: u64,
    pub(crate) items: Vec<Item>,
    /// Units that are live, by section.
    pub(crate) live: Vec<u64>,
    /// The least that any placement takes, in bytes.
    pub(crate) bound: u64,
    /// A time at which the bound is reached.
    pub(crate) bound_time: i64,
    /// Where the conflicts of each item begin, in `neighbours`; none where there are too many to list.
    pub(crate) starts: Vec<usize>,
    pub(crate) neighbours: Vec<u32>,
    /// Some conflict although they never live at the same time.
    pub(crate) apart: bool,
}

/// The most conflicts that are listed: 256 MiB. Past them, only walks along time place.
const MAX_NEIGHBOURS: usize = 1 << 26;

impl Problem {
    pub(crate) fn new(lower: &[i64], upper: &[i64], size: &[u64], alignment: u64) -> Result<Self, PlanError> {
        if lower.len() != upper.len() || lower.len() != size.len() {
            return Err(PlanError::Lengths { lower: lower.len(), upper: upper.len(), size: size.len() });
        }
        if !alignment.is_power_of_two() {
            return Err(PlanError::Alignment(alignment));
        }
        let too_large = |index| PlanError::TooLarge { index };
        let mut items = Vec::with_capacity(size.len());
        let mut sum = 0_u64;
        for (index, ((&lower, &upper), &size)) in lower.iter().zip(upper).zip(size).enumerate() {
            if lower > upper {
                return Err(PlanError::Reversed { index, lower, upper });
            }
            let rounded = size.checked_next_multiple_of(alignment).ok_or(too_large(index))?;
            sum = sum.checked_add(rounded).filter(|&sum| i64::try_from(sum).is_ok()).ok_or(too_large(index))?;
            if size > 0 && lower < upper {
                let index = u32::try_from(index).map_err(|_| too_large(index))?;
                let (units, pad, length) = (rounded / alignment, rounded - size, upper.abs_diff(lower));
                items.push(Item { index, first: 0, last: 0, units, pad, length });
            }
        }
        let begins = cut(&mut items, lower, upper);
        let (live, bound, bound_time) = peak(&items, &begins, alignment);
        let (starts, neighbours) = conflicts(&items, begins.len());
        let given = size.len();
        Ok(Self { given, unit: alignment, items, live, bound, bound_time, starts, neighbours, apart: false })
    }

    /// Lets these pairs of the caller's intervals conflict, too; false if there are too many conflicts to list.
    pub(crate) fn keep_apart(&mut self, pairs: &[(usize, usize)]) -> bool {
        if pairs.is_empty() {
            return true;
        }
        if !self.lists_conflicts() {
            return false;
        }
        let mut items = vec![None; self.given];
        for (place, item) in (0_u32..).zip(&self.items) {
            items[item.index as usize] = Some(place);
        }
        let mut more: Vec<Vec<u32>> = vec![Vec::new(); self.items.len()];
        for &(one, other) in pairs {
            if let (Some(one), Some(other)) = (items[one], items[other])
                && !self.conflicts(one as usize).contains(&other)
            {
                more[one as usize].push(other);
                more[other as usize].push(one);
            }
        }
        let mut neighbours = Vec::with_capacity(self.neighbours.len() + 2 * pairs.len());
        let mut starts = vec![0];
        for (item, more) in more.iter_mut().enumerate() {
            more.sort_unstable();
            more.dedup();
            neighbours.extend_from_slice(self.conflicts(item));
            neighbours.append(more);
            starts.push(neighbours.len());
        }
        (self.starts, self.neighbours, self.apart) = (starts, neighbours, true);
        true
    }

    /// Whether conflicts are listed.
    pub(crate) fn lists_conflicts(&self) -> bool {
        !self.starts.is_empty()
    }

    /// The items that conflict with this one.
    pub(crate) fn conflicts(&self, item: usize) -> &[u32] {
        &self.neighbours[self.starts[item]..self.starts[item + 1]]
    }

    /// The byte behind the last one of an item at this place.
    pub(crate) fn end(&self, item: &Item, place: u64) -> u64 {
        (place + item.units) * self.unit - item.pad
    }

    /// The size of the memory that a placement takes.
    pub(crate) fn extent(&self, places: &[u64]) -> u64 {
        self.items.iter().zip(places).map(|(item, &place)| self.end(item, place)).max().unwrap_or(0)
    }
}

/// Gives the items their sections; returns when each begins.
fn cut(items: &mut [Item], lower: &[i64], upper: &[i64]) -> Vec<i64> {
    // Ends come before begins at the same time: intervals are half open.
    let mut events: Vec<(i64, bool, u32)> = Vec::with_capacity(2 * items.len());
    for (place, item) in (0_u32..).zip(items.iter()) {
        events.push((lower[item.index as usize], true, place));
        events.push((upper[item.index as usize], false, place));
    }
    events.sort_unstable();
    let mut begins = Vec::new();
    let mut ended = true;
    let mut section = 0;
    for (time, starts, place) in events {
        let item = &mut items[place as usize];
        if starts {
            if ended {
                begins.push(time);
                section += 1;
            } else if let Some(begin) = begins.last_mut() {
                *begin = time; // all of the section's intervals are live from its last begin on
            }
            item.first = section - 1;
        } else {
            item.last = section;
        }
        ended = !starts;
    }
    begins
}

/// Live units by section, the least that must be taken in bytes, and when.
fn peak(items: &[Item], begins: &[i64], unit: u64) -> (Vec<u64>, u64, i64) {
    let mut change = vec![(0_u64, 0_u64); begins.len() + 1];
    for item in items {
        change[item.first as usize].0 += item.units;
        change[item.last as usize].1 += item.units;
    }
    let mut sum = 0;
    let live: Vec<u64> = change[..begins.len()]
        .iter()
        .map(|&(more, less)| {
            sum = sum + more - less;
            sum
        })
        .collect();
    // The topmost item need not be rounded up: at best the one that is rounded most.
    let mut begun: Vec<&Item> = items.iter().collect();
    begun.sort_unstable_by_key(|item| item.first);
    let mut begun = begun.into_iter().peekable();
    let mut pads = BinaryHeap::new();
    let (mut bound, mut time) = (0, 0);
    for (section, (&live, &begin)) in (0..).zip(live.iter().zip(begins)) {
        while let Some(item) = begun.next_if(|item| item.first <= section) {
            pads.push((item.pad, item.last));
        }
        while pads.peek().is_some_and(|&(_, last)| last <= section) {
            pads.pop();
        }
        let bytes = live * unit - pads.peek().map_or(0, |&(pad, _)| pad);
        if bytes > bound {
            (bound, time) = (bytes, begin);
        }
    }
    (live, bound, time)
}

/// All conflicts, as rows of one list.
fn conflicts(items: &[Item], sections: usize) -> (Vec<usize>, Vec<u32>) {
    // An item that begins in a section conflicts with earlier ones that still live, and with those that begin with it.
    let mut by_first: Vec<u32> = (0..).take(items.len()).collect();
    by_first.sort_unstable_by_key(|&item| items[item as usize].first);
    let mut begun = vec![0; sections + 1];
    for item in items {
        begun[item.first as usize + 1] += 1_usize;
    }
    for section in 0..sections {
        begun[section + 1] += begun[section];
    }
    // Later ones in the order of begins that begin before this one ends.
    let later = |position: usize| {
        let item = &items[by_first[position] as usize];
        position + 1..begun[item.last as usize]
    };
    if (0..items.len()).map(|position| later(position).len()).sum::<usize>() > MAX_NEIGHBOURS / 2 {
        return (Vec::new(), Vec::new());
    }
    let mut starts = vec![0; items.len() + 2];
    for position in 0..items.len() {
        starts[by_first[position] as usize + 2] += later(position).len();
        for other in later(position) {
            starts[by_first[other] as usize + 2] += 1;
        }
    }
    for item in 1..starts.len() {
        starts[item] += starts[item - 1];
    }
    let mut neighbours = vec![0; starts[items.len() + 1]];
    for position in 0..items.len() {
        let one = by_first[position];
        for &other in &by_first[later(position)] {
            for (from, to) in [(one, other), (other, one)] {
                let end = &mut starts[from as usize + 1];
                neighbours[*end] = to;
                *end += 1;
            }
        }
    }
    starts.truncate(items.len() + 1);
    (starts, neighbours)
}
