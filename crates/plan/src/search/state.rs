//! The placed intervals, their consequences for the rest, and the way to take them back.

use crate::problem::Problem;

/// The state of a branch.
pub(super) struct State<'a> {
    pub(super) problem: &'a Problem,
    /// The largest place that each item may have.
    limit: Vec<u64>,
    /// The units of the capacity, for whichever item they hold the most of.
    capacity: u64,
    /// Where each item lies or, until it is placed, the lowest place that it can have.
    pub(super) places: Vec<u64>,
    pub(super) placed: Vec<bool>,
    /// The lowest place that anything still to come can have, by section.
    floor: Vec<u64>,
    /// Units still to come, by section.
    pub(super) total: Vec<u64>,
    /// How many open items live on both sides of the end of each section.
    crossing: Vec<u32>,
    /// The items of each section, as rows of one list.
    starts: Vec<usize>,
    members: Vec<u32>,
    log: Vec<Change>,
    /// Sections with a floor to be looked at again.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
}

/// The state before a change.
#[derive(Clone, Copy)]
enum Change {
    Place { item: u32, was: u64 },
    Floor { section: u32, was: u64 },
    Placed { item: u32 },
}

/// The outcome of an item's placing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// Nothing shows yet that the rest does not fit.
    pub(super) feasible: bool,
    /// No open item conflicts with it.
    pub(super) alone: bool,
}

impl<'a> State<'a> {
    /// Nothing is placed. None if an item alone is too large.
    pub(super) fn new(problem: &'a Problem, capacity: u64) -> Option<Self> {
        let items = &problem.items;
        let units = |pad: u64| (capacity + pad) / problem.unit;
        let limit = items.iter().map(|item| units(item.pad).checked_sub(item.units)).collect::<Option<_>>()?;
        let sections = problem.live.len();
        let mut crossing = vec![0; sections];
        let mut starts = vec![0; sections + 2];
        for item in items {
            for section in item.first..item.last {
                starts[section as usize + 2] += 1;
                crossing[section as usize] += u32::from(section + 1 < item.last);
            }
        }
        for section in 1..starts.len() {
            starts[section] += starts[section - 1];
        }
        let mut members = vec![0; starts[sections + 1]];
        for (index, item) in (0_u32..).zip(items) {
            for section in item.first..item.last {
                let end = &mut starts[section as usize + 1];
                members[*end] = index;
                *end += 1;
            }
        }
        Some(Self {
            problem,
            limit,
            capacity: units(items.iter().map(|item| item.pad).max().unwrap_or(0)),
            places: vec![0; items.len()],
            placed: vec![false; items.len()],
            floor: vec![0; sections],
            total: problem.live.clone(),
            crossing,
            starts,
            members,
            log: Vec::new(),
            touched: Vec::new(),
            is_touched: vec![false; sections],
        })
    }

    /// Whether an open item lives on both sides of the end of a section.
    pub(super) fn is_joined(&self, section: u32) -> bool {
        self.crossing[section as usize] > 0
    }

    /// The mark of the current state.
    pub(super) fn mark(&self) -> usize {
        self.log.len()
    }

    /// Takes everything back.
    pub(super) fn clear(&mut self) {
        self.undo(0);
    }

    /// Takes back the changes after a mark.
    pub(super) fn undo(&mut self, mark: usize) {
        while self.log.len() > mark {
            match self.log.pop() {
                Some(Change::Place { item, was }) => self.places[item as usize] = was,
                Some(Change::Floor { section, was }) => self.floor[section as usize] = was,
                Some(Change::Placed { item }) => {
                    self.placed[item as usize] = false;
                    let item = self.problem.items[item as usize];
                    for section in item.first as usize..item.last as usize {
                        self.total[section] += item.units;
                    }
                    for section in item.first as usize..item.last as usize - 1 {
                        self.crossing[section] += 1;
                    }
                }
                None => return,
            }
        }
    }

    /// Places an item at its lowest place; `sections` are those that are searched together with it.
    pub(super) fn place(&mut self, index: u32, sections: (u32, u32)) -> Step {
        let item = self.problem.items[index as usize];
        let place = self.places[index as usize];
        let end = place + item.units;
        self.log.push(Change::Placed { item: index });
        self.placed[index as usize] = true;
        for section in item.first..item.last {
            let at = section as usize;
            self.log.push(Change::Floor { section, was: self.floor[at] });
            self.floor[at] = end;
            self.total[at] -= item.units;
        }
        for section in item.first as usize..item.last as usize - 1 {
            self.crossing[section] -= 1;
        }
        let (mut feasible, mut alone) = (place <= self.limit[index as usize], true);
        for &other in self.problem.conflicts(index as usize) {
            let at = other as usize;
            if self.placed[at] {
                continue;
            }
            alone = false;
            if self.places[at] < end {
                self.log.push(Change::Place { item: other, was: self.places[at] });
                self.places[at] = end;
                feasible &= end <= self.limit[at];
                let raised = &self.problem.items[at];
                for section in raised.first..raised.last {
                    if !self.is_touched[section as usize] {
                        self.is_touched[section as usize] = true;
                        self.touched.push(section);
                    }
                }
            }
        }
        while let Some(section) = self.touched.pop() {
            self.is_touched[section as usize] = false;
            if feasible {
                self.raise(section);
            }
        }
        let spans = sections.0 as usize..sections.1 as usize;
        let mut floors = self.floor[spans.clone()].iter().zip(&self.total[spans]);
        feasible = feasible && floors.all(|(&floor, &total)| floor.max(place) + total <= self.capacity);
        Step { feasible, alone }
    }

    /// The floor of a section is the lowest place that one of its open items can have.
    fn raise(&mut self, section: u32) {
        let at = section as usize;
        let members = &self.members[self.starts[at]..self.starts[at + 1]];
        let open = members.iter().filter(|&&item| !self.placed[item as usize]);
        if let Some(lowest) = open.map(|&item| self.places[item as usize]).min()
            && lowest > self.floor[at]
        {
            self.log.push(Change::Floor { section, was: self.floor[at] });
            self.floor[at] = lowest;
        }
    }

    /// The spans of `sections` that no open item joins, after `item` was placed.
    pub(super) fn spans(&self, item: u32, sections: (u32, u32), spans: &mut Vec<(u32, u32)>) {
        let item = &self.problem.items[item as usize];
        let mut begin = sections.0;
        for section in item.first..item.last - 1 {
            if self.crossing[section as usize] == 0 {
                spans.push((begin, section + 1));
                begin = section + 1;
            }
        }
        spans.push((begin, sections.1));
    }
}
