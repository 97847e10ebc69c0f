//! What follows from two storages that share bytes: the ops of the one come before those of the other.

use super::network::Linked;
use super::storage::Storages;
use std::collections::BTreeMap;

/// All that sharing memory orders, beside what is ordered already: the first op of each pair comes before the second.
pub(super) fn edges(linked: &Linked<'_>, storages: &Storages, offsets: &[Option<u64>]) -> Vec<(usize, usize)> {
    let mut edges = storages.edges.clone();
    let mut taken: Vec<(usize, u64)> =
        storages.planned().filter_map(|(at, _)| offsets[at].map(|offset| (at, offset))).collect();
    taken.sort_by_key(|&(at, _)| (storages.all[at].begin, at));
    // Who had each range last: its end and its storage, by its begin.
    let mut last: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (at, offset) in taken {
        let storage = &storages.all[at];
        let end = offset + storage.size;
        let from = last.range(..=offset).next_back().map_or(offset, |(&begin, _)| begin);
        let touched: Vec<(u64, u64, usize)> =
            last.range(from..end).map(|(&begin, &(end, owner))| (begin, end, owner)).collect();
        for (begin, until, owner) in touched {
            if until <= offset {
                continue;
            }
            last.remove(&begin);
            if begin < offset {
                last.insert(begin, (offset, owner));
            }
            if until > end {
                last.insert(end, (until, owner));
            }
            if let Some(first) = storage.first {
                edges.extend(storages.all[owner].users.iter().map(|&user| (user, first)));
            }
        }
        last.insert(offset, (end, at));
    }
    edges.retain(|&(one, other)| one != other && linked.before[other].binary_search(&one).is_err());
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// The longest way through the ops, these edges included.
pub(super) fn critical_path(linked: &Linked<'_>, order: &[usize], edges: &[(usize, usize)]) -> u64 {
    let mut more = vec![Vec::new(); order.len()];
    edges.iter().for_each(|&(one, other)| more[other].push(one));
    let mut end = vec![0_u64; order.len()];
    for &op in order {
        let before = linked.before[op].iter().chain(&more[op]);
        end[op] = linked.cost(op) + before.map(|&other| end[other]).max().unwrap_or(0);
    }
    end.into_iter().max().unwrap_or(0)
}
