//! The walk over the tree, with a stack of its own: trees are as deep as there are items.

use super::state::State;
use super::{Comparisons, Key, Limits, Outcome};
use std::cmp::Reverse;

/// Steps between two looks at the clock.
const LOOK: u64 = 512;

/// The stack, and the lists that its frames share.
#[derive(Default)]
pub(super) struct Tree {
    frames: Vec<Frame>,
    /// Items of parts, in their order: (item, rank). Those that are placed are left out when they are half.
    open: Vec<(u32, u32)>,
    /// The rest of the search after each frame's choice.
    parts: Vec<Part>,
    spans: Vec<(u32, u32)>,
}

/// A span of time that is searched by itself.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Its items, in `open`.
    open: (usize, usize),
    /// How many of them are open.
    left: usize,
    sections: (u32, u32),
    /// Places and ranks below are not tried.
    after: (u64, u32),
}

/// A choice among the items that may come next.
#[derive(Debug, Clone, Copy)]
struct Frame {
    part: Part,
    /// The next try has no lower place and rank than this.
    next: (u64, u32),
    /// And a lower place than this: where another item could end.
    below: u64,
    /// How to take the choice back.
    mark: usize,
    /// How long `open` was.
    open: usize,
    /// Nothing depends on the choice.
    alone: bool,
    /// The first of `parts` that is the choice's, and the next to be searched.
    parts: (usize, usize),
}

impl Tree {
    /// Searches with one order; returns how many steps were used, too.
    pub(super) fn search(
        &mut self,
        state: &mut State<'_>,
        order: Comparisons,
        steps: u64,
        limits: &mut Limits<'_>,
    ) -> (Outcome, u64) {
        self.frames.clear();
        self.open.clear();
        self.parts.clear();
        let items: Vec<u32> = (0..).take(state.problem.items.len()).collect();
        // The items of spans that nothing joins are parts from the beginning.
        self.spans.clear();
        let mut begin = 0;
        let sections = u32::try_from(state.total.len()).unwrap_or(u32::MAX);
        for section in 0..sections {
            if !state.is_joined(section) {
                self.spans.push((begin, section + 1));
                begin = section + 1;
            }
        }
        self.split(state, order, &items);
        let root = Part { open: (0, 0), left: 0, sections: (0, sections), after: (0, 0) };
        let parts = (0, 0);
        self.frames.push(Frame { part: root, next: (0, 0), below: 0, mark: 0, open: 0, alone: true, parts });
        let mut used = 0;
        // Whether the top frame's choice can still come to a good end.
        let mut good = true;
        loop {
            let Some(frame) = self.frames.last_mut() else {
                let outcome = if good { Outcome::Found(state.places.clone()) } else { Outcome::Impossible };
                return (outcome, used);
            };
            if good {
                if frame.parts.1 < self.parts.len() {
                    let part = self.parts[frame.parts.1];
                    frame.parts.1 += 1;
                    self.enter(state, part);
                } else {
                    // The choice is part of a placement: so is that of the frame below.
                    let parts = frame.parts.0;
                    self.frames.pop();
                    self.parts.truncate(parts);
                    continue;
                }
            } else {
                frame.parts.1 = frame.parts.0;
                let frame = *frame;
                state.undo(frame.mark);
                self.parts.truncate(frame.parts.0);
                self.open.truncate(frame.open);
                if frame.alone {
                    self.frames.pop();
                    continue;
                }
            }
            if used == steps {
                return (Outcome::Spent, used);
            }
            used += 1;
            if used % LOOK == 0
                && let Some(outcome) = limits.over()
            {
                return (outcome, used);
            }
            good = self.choose(state, order);
        }
    }

    /// Pushes a frame for a part.
    fn enter(&mut self, state: &State<'_>, part: Part) {
        let open = &self.open[part.open.0..part.open.1];
        let open = open.iter().filter(|&&(item, _)| !state.placed[item as usize]);
        let end = |item: u32| state.places[item as usize] + state.problem.items[item as usize].units;
        let below = open.map(|&(item, _)| end(item)).min().unwrap_or(0);
        let parts = self.parts.len();
        self.frames.push(Frame {
            part,
            next: part.after,
            below,
            mark: state.mark(),
            open: self.open.len(),
            alone: false,
            parts: (parts, parts),
        });
    }

    /// Makes the top frame's next choice; false if there is none, and the frame is gone.
    fn choose(&mut self, state: &mut State<'_>, order: Comparisons) -> bool {
        let Some(frame) = self.frames.last_mut() else { return false };
        loop {
            let open = &self.open[frame.part.open.0..frame.part.open.1];
            let mut found = (frame.below, 0, 0);
            for &(item, rank) in open {
                let place = state.places[item as usize];
                if place <= found.0
                    && (place, rank) < (found.0, found.1)
                    && (place, rank) >= frame.next
                    && !state.placed[item as usize]
                {
                    found = (place, rank, item);
                }
            }
            let (place, rank, item) = found;
            if place == frame.below {
                self.frames.pop();
                return false;
            }
            frame.next = (place, rank + 1);
            let part = frame.part;
            let step = state.place(item, part.sections);
            if !step.feasible {
                state.undo(frame.mark);
                if step.alone {
                    self.frames.pop();
                    return false;
                }
                continue;
            }
            frame.alone = step.alone;
            self.spans.clear();
            state.spans(item, part.sections, &mut self.spans);
            if self.spans.len() == 1 {
                let mut open = part.open;
                let left = part.left - 1;
                if 2 * left <= open.1 - open.0 {
                    let begin = self.open.len();
                    for at in open.0..open.1 {
                        let entry = self.open[at];
                        if !state.placed[entry.0 as usize] {
                            self.open.push(entry);
                        }
                    }
                    open = (begin, self.open.len());
                }
                if left > 0 {
                    self.parts.push(Part { open, left, after: (place, rank), ..part });
                }
            } else {
                let items: Vec<u32> = self.open[part.open.0..part.open.1]
                    .iter()
                    .map(|&(open, _)| open)
                    .filter(|&open| !state.placed[open as usize])
                    .collect();
                self.split(state, order, &items);
            }
            return true;
        }
    }

    /// Makes a part of each span, its items ranked anew.
    fn split(&mut self, state: &State<'_>, order: Comparisons, items: &[u32]) {
        for at in 0..self.spans.len() {
            let sections = self.spans[at];
            let begin = self.open.len();
            let of_span = |&&item: &&u32| {
                let item = &state.problem.items[item as usize];
                sections.0 <= item.first && item.last <= sections.1
            };
            self.open.extend(items.iter().filter(of_span).map(|&item| (item, 0)));
            let open = &mut self.open[begin..];
            open.sort_by_cached_key(|&(item, _)| Reverse(order.map(|key| value(state, key, item))));
            for (rank, open) in (0..).zip(&mut *open) {
                open.1 = rank;
            }
            if !open.is_empty() {
                let part =
                    Part { open: (begin, self.open.len()), left: self.open.len() - begin, sections, after: (0, 0) };
                self.parts.push(part);
            }
        }
    }
}

fn value(state: &State<'_>, key: Key, item: u32) -> u128 {
    let item = &state.problem.items[item as usize];
    match key {
        Key::Area => u128::from(item.units) * u128::from(item.length),
        Key::Length => item.length.into(),
        Key::Total => {
            let totals = &state.total[item.first as usize..item.last as usize];
            totals.iter().copied().max().unwrap_or(0).into()
        }
    }
}
