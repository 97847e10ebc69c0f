//! The successors of each step, as numbers in a row.

use super::NONE;
use super::ahead::fetch;
use super::instance::Count;
use std::cmp::Reverse;

/// Bands of priority among ready steps.
const BANDS: u32 = 64;
/// Most nodes have at most so many behind them.
pub(super) const FEW: usize = 8;
/// From so many steps on, their facts do not stay in a core's own cache.
const LARGE: u32 = 1 << 14;

/// Lists, one for each row, in one array.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    starts: Box<[u32]>,
    items: Box<[u32]>,
}

impl Rows {
    /// Rows of these pairs of row and item, which keep their order within a row.
    pub(super) fn new(rows: usize, pairs: &[(u32, u32)]) -> Self {
        let mut starts = vec![0_u32; rows + 1];
        for &(row, _) in pairs {
            starts[row as usize + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut items = vec![0; pairs.len()];
        let mut at = starts.clone();
        for &(row, item) in pairs {
            items[at[row as usize] as usize] = item;
            at[row as usize] += 1;
        }
        Self { starts: starts.into(), items: items.into() }
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> u32 {
        #[allow(clippy::cast_possible_truncation)] // the builder counts in u32
        let rows = self.starts.len().saturating_sub(1) as u32;
        rows
    }

    /// A row of at most [`FEW`] items: so many from its first on, and how many are its own. None if there are more, or too few
    /// behind it.
    #[inline]
    pub(super) fn few(&self, row: u32) -> Option<(&[u32; FEW], usize)> {
        let row = row as usize;
        let (first, end) = (self.starts[row] as usize, self.starts[row + 1] as usize);
        let items = self.items.get(first..)?.first_chunk()?;
        (end - first <= FEW).then_some((items, end - first))
    }

    #[inline]
    pub(super) fn of(&self, row: u32) -> &[u32] {
        let row = row as usize;
        &self.items[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}

/// A graph of nodes: steps, ports (their ends have the same numbers), the start.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(super) successors: Rows,
    /// The countdown of each node.
    counts: Box<[u32]>,
    /// The steps in the order of their taking: by priority, then by the longest way from them to an end, together in
    /// [`BANDS`] parts, then as they were recorded. It is close to their order in memory.
    order: Box<[u32]>,
    /// The place of each step there.
    ranks: Box<[u32]>,
    /// The step that goes right after this one on the same thread, with nothing to be noted between if this one ended well; or
    /// [`NONE`].
    continues: Box<[u32]>,
    /// Whether two workers have something to do most of the time: all steps take half as long again as the longest way, or more.
    pub(super) is_wide: bool,
}

impl Shape {
    /// `edges` lead from a step to a later one; `users` are pairs of step and port. `goes_on` says of a step that is
    /// the only one behind another whether it may run right after that one, with no look at failures.
    pub(super) fn new(
        steps: u32,
        ports: u32,
        edges: &[(u32, u32)],
        users: &[(u32, u32)],
        (costs, priorities): (&[u32], &[i32]),
        goes_on: impl Fn(u32, u32) -> bool,
    ) -> Self {
        let (start, nodes) = (steps + ports, (steps + ports + 1) as usize);
        let mut counts = vec![0_u32; nodes];
        let mut pairs = Vec::with_capacity(edges.len() + 2 * users.len() + steps as usize);
        pairs.extend_from_slice(edges);
        for &(step, port) in users {
            pairs.push((steps + port, step));
            pairs.push((step, steps + port));
        }
        // Its own end: a port is not left before it is granted.
        pairs.extend((0..ports).map(|port| (steps + port, steps + port)));
        for &(_, to) in &pairs {
            counts[to as usize] += 1;
        }
        for step in 0..steps {
            if counts[step as usize] == 0 {
                pairs.push((start, step));
                counts[step as usize] = 1;
            }
        }
        let successors = Rows::new(nodes, &pairs);
        let lengths = lengths(steps, &successors, costs);
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let all: u64 = costs.iter().map(|cost| u64::from((*cost).max(1))).sum();
        let bands = classed(bands(lengths, longest), priorities);
        let continues = (0..steps)
            .map(|step| match *successors.of(step) {
                [next] if next < steps && counts[next as usize] == 1 && goes_on(step, next) => next,
                _ => NONE,
            })
            .collect();
        let order = ordered(&bands);
        let mut ranks = vec![0; order.len()].into_boxed_slice();
        for (rank, step) in (0..).zip(&order) {
            ranks[*step as usize] = rank;
        }
        Self { successors, counts: counts.into(), order, ranks, continues, is_wide: all / 3 >= longest / 2 }
    }
}

impl Shape {
    /// The nodes of a call that has not begun.
    pub(super) fn counts(&self) -> impl Iterator<Item = Count> {
        let ranks = self.ranks.iter().copied().chain(std::iter::repeat(0));
        self.counts.iter().zip(ranks).map(|(&all, rank)| Count { left: all, all, rank })
    }

    /// The step of this rank.
    #[inline]
    pub(super) fn step_of(&self, rank: u32) -> u32 {
        self.order[rank as usize]
    }

    /// Whether it pays to ask for a step's facts before it is looked at.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.continues.len() >= LARGE as usize
    }

    /// Asks for the facts of a ready step.
    #[inline]
    pub(super) fn fetch(&self, step: u32) {
        fetch(&self.successors.starts[step as usize]);
        fetch(&self.continues[step as usize]);
    }

    /// Asks for the successors of a step that runs next.
    #[inline]
    pub(super) fn fetch_successors(&self, step: u32) {
        let Rows { starts, items } = &self.successors;
        if let Some(first) = items.get(starts[step as usize] as usize) {
            fetch(first);
        }
    }

    /// The step that goes right after this one, on the same thread.
    #[inline]
    pub(crate) fn next(&self, step: u32) -> Option<u32> {
        let next = self.continues[step as usize];
        (next != NONE).then_some(next)
    }
}

/// The length of the longest way from each step on.
fn lengths(steps: u32, successors: &Rows, costs: &[u32]) -> Vec<u64> {
    let mut lengths = vec![0_u64; steps as usize];
    for step in (0..steps).rev() {
        let next = successors.of(step).iter().filter(|&&next| next < steps);
        let longest = next.map(|&next| lengths[next as usize]).max().unwrap_or(0);
        lengths[step as usize] = longest + u64::from(costs[step as usize].max(1));
    }
    lengths
}

/// The same in as many parts as there are bands.
fn bands(lengths: Vec<u64>, longest: u64) -> Box<[u8]> {
    let most = longest.max(u64::from(BANDS - 1));
    #[allow(clippy::cast_possible_truncation)] // below the number of bands
    lengths.into_iter().map(|length| (u128::from(length) * u128::from(BANDS - 1) / u128::from(most)) as u8).collect()
}

/// The bands, those of each priority above those of a lower one.
#[allow(clippy::cast_possible_truncation)] // below the number of bands
fn classed(mut bands: Box<[u8]>, priorities: &[i32]) -> Box<[u8]> {
    let mut classes = priorities.to_vec();
    classes.sort_unstable();
    classes.dedup();
    if classes.len() > 1 {
        let count = classes.len().min(BANDS as usize);
        let width = BANDS as usize / count;
        for (band, priority) in bands.iter_mut().zip(priorities) {
            let class = classes.partition_point(|class| class < priority) * count / classes.len();
            *band = (class * width + usize::from(*band) * width / BANDS as usize) as u8;
        }
    }
    bands
}

/// The steps of higher bands before those of lower ones.
fn ordered(bands: &[u8]) -> Box<[u32]> {
    #[allow(clippy::cast_possible_truncation)] // the builder counts in u32
    let mut order: Vec<u32> = (0..bands.len() as u32).collect();
    order.sort_by_key(|step| Reverse(bands[*step as usize]));
    order.into()
}
