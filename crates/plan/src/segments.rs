//! Segments of the forward part: the values that stay so that the rest of a segment can be made again from them.
//!
//! | segments | lengths |
//! |---|---|
//! | `checkpoints` | all alike, by bytes |
//! | `Tapered` | the first is the longest, each next one is shorter by the checkpoint before it, and the last one is not made again |
//!
//! While a segment is made again the checkpoints behind it are gone already. So the memory for them is there for the segments
//! before: for a chain of n ops it comes to sqrt(2 n) instead of 2 sqrt(n).

use crate::network::Linked;
use std::collections::BTreeSet;

/// Segments within one number of bytes: checkpoints so far, and the segment's values that are kept for the backward
/// part.
pub(crate) struct Tapered<'a> {
    linked: &'a Linked<'a>,
    forward: &'a [usize],
    /// The cost of a cut behind each: twice the bytes that the backward part does not read besides.
    crossing: Vec<u64>,
    /// Of each forward op, the bytes that the backward part reads.
    saved: Vec<u64>,
    place: Vec<usize>,
}

impl<'a> Tapered<'a> {
    pub(crate) fn new(linked: &'a Linked<'a>, forward: &'a [usize], late: &[bool]) -> Self {
        let network = linked.network;
        let size = |value: usize| network.values[value].size;
        let is_read = |value: usize| linked.readers[value].iter().any(|&reader| late[reader]);
        let read = |op: usize| {
            let outputs = network.ops[op].outputs.iter().copied();
            outputs.filter(|&value| is_read(value)).map(size).sum::<u64>()
        };
        let saved = forward.iter().map(|&op| read(op)).collect();
        let crossing =
            crossing(linked, forward, |value| if is_read(value) { size(value) } else { size(value).saturating_mul(2) });
        Self { linked, forward, crossing, saved, place: places(linked, forward) }
    }

    /// The ops that run again, for the fewest possible bytes, and for more, which takes fewer checkpoints.
    pub(crate) fn sets(&self) -> Vec<Vec<usize>> {
        let whole = self.saved.iter().sum::<u64>();
        let (mut low, mut high) = (self.saved.iter().copied().max().unwrap_or(0), whole);
        while high - low > high / 64 {
            let middle = low + (high - low) / 2;
            if self.within(middle).is_some() { high = middle } else { low = middle + 1 }
        }
        [8, 9, 10, 12, 16].iter().filter_map(|eighths| self.within(high.saturating_mul(*eighths) / 8)).collect()
    }

    /// The ops that run again so that nothing takes more than this; None if that cannot be, or nothing would run again.
    fn within(&self, bytes: u64) -> Option<Vec<usize>> {
        let mut stay: BTreeSet<usize> = BTreeSet::new();
        let (mut kept, mut start) = (0, 0);
        loop {
            let left = bytes.checked_sub(kept)?;
            let (mut end, mut sum) = (start, 0);
            while end < self.forward.len() && sum + self.saved[end] <= left {
                sum += self.saved[end];
                end += 1;
            }
            if end == self.forward.len() {
                break;
            }
            // The last of the places, in the last quarter, where the fewest bytes cross.
            let cuts = start + (end - start) * 3 / 4..end;
            let cut = cuts.rev().min_by_key(|&at| self.crossing[at])?;
            for &op in &self.forward[start..=cut] {
                if self.is_read_behind(op, cut) && stay.insert(op) {
                    kept += made(self.linked, op);
                }
            }
            start = cut + 1;
        }
        let again = self.forward[..start].iter().copied().filter(|op| !stay.contains(op));
        Some(again.collect::<Vec<_>>()).filter(|again| !again.is_empty())
    }

    /// Whether forward ops behind a place read from this one.
    fn is_read_behind(&self, op: usize, cut: usize) -> bool {
        is_read_behind(self.linked, &self.place, op, cut)
    }
}

/// Where each op is in the forward part.
fn places(linked: &Linked<'_>, forward: &[usize]) -> Vec<usize> {
    let mut place = vec![usize::MAX; linked.network.ops.len()];
    forward.iter().enumerate().for_each(|(at, &op)| place[op] = at);
    place
}

fn is_read_behind(linked: &Linked<'_>, place: &[usize], op: usize, cut: usize) -> bool {
    let mut readers = linked.network.ops[op].outputs.iter().flat_map(|&value| &linked.readers[value]);
    readers.any(|&reader| place[reader] != usize::MAX && place[reader] > cut)
}

/// The bytes of the values of an op.
fn made(linked: &Linked<'_>, op: usize) -> u64 {
    linked.network.ops[op].outputs.iter().map(|&value| linked.network.values[value].size).sum()
}

/// The sum of these bytes of values that forward ops behind each place read from before it.
pub(crate) fn crossing(linked: &Linked<'_>, forward: &[usize], bytes: impl Fn(usize) -> u64) -> Vec<u64> {
    let place = places(linked, forward);
    let mut change = vec![0_i128; forward.len() + 1];
    for (at, &op) in forward.iter().enumerate() {
        for &value in &linked.network.ops[op].outputs {
            let readers =
                linked.readers[value].iter().map(|&reader| place[reader]).filter(|&reader| reader != usize::MAX);
            if let Some(last) = readers.max() {
                change[at] += i128::from(bytes(value));
                change[last] -= i128::from(bytes(value));
            }
        }
    }
    let mut live = 0;
    let sums = change[..forward.len()].iter().map(|change| {
        live += change;
        u64::try_from(live).unwrap_or(0)
    });
    sums.collect()
}

/// The ops with values that stay, so that so many segments are cut where few bytes cross.
pub(crate) fn checkpoints(
    linked: &Linked<'_>,
    forward: &[usize],
    crossing: &[u64],
    segments: usize,
) -> BTreeSet<usize> {
    let mut sums: Vec<u64> = Vec::with_capacity(forward.len());
    for &op in forward {
        sums.push(sums.last().copied().unwrap_or(0) + made(linked, op));
    }
    let whole = u128::from(sums.last().copied().unwrap_or(0));
    let at = |part: u128, of: u128| sums.partition_point(|&sum| u128::from(sum) * of < whole * part);
    let mut stay = BTreeSet::new();
    let place = places(linked, forward);
    for segment in 1..segments as u128 {
        // Within a quarter of a segment to either side.
        let (low, middle, high) = (
            at(4 * segment - 1, 4 * segments as u128),
            at(segment, segments as u128),
            at(4 * segment + 1, 4 * segments as u128),
        );
        let spans = low..=high.min(forward.len() - 1);
        let Some(cut) = spans.min_by_key(|&at| (crossing[at], at.abs_diff(middle))) else { continue };
        for &op in &forward[..=cut] {
            if is_read_behind(linked, &place, op, cut) {
                stay.insert(op);
            }
        }
    }
    stay
}
