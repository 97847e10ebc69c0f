//! Orders of ops, one after the other, that keep few bytes live.

use crate::error::PlanError;
use crate::network::{Linked, Network, Share};
use crate::schedule::{Schedule, ways};
use crate::settings::Settings;

/// How many ops that may come next are compared.
const COMPARED: usize = 256;

/// Orders of a network's ops, among them some that keep few bytes live.
///
/// # Errors
///
/// If it is no network: ops that wait for each other, or read a value without a maker.
pub fn orders_of(network: &Network) -> Result<Vec<Vec<usize>>, PlanError> {
    Ok(op_orders(&Linked::new(network)?, Settings::default().workers))
}

/// The orders that are tried.
pub(crate) fn op_orders(linked: &Linked<'_>, workers: usize) -> Vec<Vec<usize>> {
    let ops = linked.before.len();
    let given: Vec<u64> = (0..ops as u64).collect();
    let depth = Schedule::early(linked).begin;
    let mut orders = vec![
        linked.by_rank(&given),
        memory_first(linked, &given),
        linked.by_rank(&depth_first(linked)),
        memory_first(linked, &depth_first(linked)),
        linked.by_rank(&depth),
        linked.by_rank(&as_needed(linked, &vec![true; ops])),
        Schedule::for_workers(linked, workers).order,
    ];
    orders.dedup();
    orders
}

/// Ranks for these ops: results as soon as their inputs are there, and inputs just before: so nothing waits to be read
/// once more at the end.
pub(crate) fn as_needed(linked: &Linked<'_>, of: &[bool]) -> Vec<u64> {
    let order = linked.by_rank(&(0..of.len() as u64).collect::<Vec<_>>());
    let mut level = vec![0_u64; of.len()];
    for &op in &order {
        let before = linked.before[op].iter().filter(|&&before| of[before]).map(|&before| level[before] + 1);
        level[op] = before.max().unwrap_or(0);
    }
    let mut rank = vec![0; of.len()];
    for &op in order.iter().rev() {
        let next = linked.behind[op].iter().filter(|&&next| of[next]).map(|&next| rank[next] - 1).min();
        rank[op] = next.unwrap_or(of.len() as u64 + level[op]);
    }
    rank
}

/// Of the ops that may come next, the one that frees most, or takes least; of equals that of the lowest rank.
fn memory_first(linked: &Linked<'_>, rank: &[u64]) -> Vec<usize> {
    let ops = &linked.network.ops;
    let mut open: Vec<usize> = linked.before.iter().map(Vec::len).collect();
    let mut unread: Vec<usize> = linked.readers.iter().map(Vec::len).collect();
    let mut ready: std::collections::BTreeSet<(u64, usize)> =
        (0..ops.len()).filter(|&op| open[op] == 0).map(|op| (rank[op], op)).collect();
    let mut order = Vec::with_capacity(ops.len());
    // A free may need other ops first: the last one begun ends first, which the rank cannot know.
    let mut recent = vec![0_usize; ops.len()];
    loop {
        let next = ready
            .iter()
            .take(COMPARED)
            .min_by_key(|&&(rank, op)| (change(linked, &unread, op), std::cmp::Reverse(recent[op]), rank, op));
        let Some(&next) = next else { return order };
        ready.remove(&next);
        let op = next.1;
        order.push(op);
        let mut inputs = ops[op].inputs.clone();
        inputs.sort_unstable();
        inputs.dedup();
        inputs.iter().for_each(|&value| unread[value] -= 1);
        for &next in &linked.behind[op] {
            open[next] -= 1;
            recent[next] = order.len();
            if open[next] == 0 {
                ready.insert((rank[next], next));
            }
        }
    }
}

/// By how many bytes more an op leaves live.
fn change(linked: &Linked<'_>, reads: &[usize], op: usize) -> i128 {
    let values = &linked.network.values;
    let op = &linked.network.ops[op];
    let stays = |&&value: &&usize| !values[value].external;
    let in_memory = |output: usize| op.pairs.iter().any(|pair| pair.output == output && pair.share != Share::InPlace);
    let made = op.outputs.iter().enumerate().filter(|&(place, value)| {
        let unread = linked.readers[*value].is_empty() && !values[*value].kept;
        stays(&value) && !in_memory(place) && !unread
    });
    let made: i128 = made.map(|(_, &value)| i128::from(values[value].size)).sum();
    let mut freed = 0;
    for (place, &value) in op.inputs.iter().enumerate() {
        let dies = reads[value] == 1 && !values[value].kept && !linked.mutated[value];
        let again = op.inputs[..place].contains(&value);
        let passed = op.pairs.iter().any(|pair| pair.input == place && pair.share != Share::InPlace);
        if dies && !again && !passed && stays(&&value) {
            freed += i128::from(values[value].size);
        }
    }
    made - freed
}

/// Ranks by a walk from the last ops back to the needs of each, the longest way first.
fn depth_first(linked: &Linked<'_>) -> Vec<u64> {
    let way = ways(linked);
    let mut depth = vec![0; way.len()];
    for op in Schedule::early(linked).order {
        depth[op] = linked.cost(op) + linked.before[op].iter().map(|&other| depth[other]).max().unwrap_or(0);
    }
    let mut rank = vec![u64::MAX; way.len()];
    let mut next = 0;
    let ends = (0..way.len()).filter(|&op| linked.behind[op].is_empty());
    let mut stack: Vec<(usize, bool)> = ends.rev().map(|op| (op, false)).collect();
    let mut seen = vec![false; way.len()];
    while let Some((op, left)) = stack.pop() {
        if left {
            rank[op] = next;
            next += 1;
        } else if !std::mem::replace(&mut seen[op], true) {
            stack.push((op, true));
            let mut before: Vec<usize> = linked.before[op].iter().copied().filter(|&other| !seen[other]).collect();
            before.sort_by_key(|&other| (depth[other], std::cmp::Reverse(other)));
            stack.extend(before.into_iter().map(|other| (other, false)));
        }
    }
    rank
}
