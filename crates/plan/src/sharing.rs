//! The order that follows from two storages that share bytes: the ops of the one come before those of
//! the other.

use crate::network::Linked;
use crate::schedule::ways;
use crate::storage::Storages;
use std::collections::BTreeMap;

/// Storages that have bytes of others, which were done with them before: (before, behind).
pub(crate) type Successions = Vec<(usize, usize)>;

/// The successions of storages on the same bytes, by their places.
pub(crate) fn successions(storages: &Storages, offsets: &[Option<u64>]) -> Successions {
    let mut found = Vec::new();
    let mut taken: Vec<(usize, u64)> =
        storages.planned().filter_map(|(at, _)| offsets[at].map(|offset| (at, offset))).collect();
    taken.sort_by_key(|&(at, _)| (storages.all[at].begin, at));
    // The last owner of each range: its end and its storage, by its begin.
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
            found.push((owner, at));
        }
        last.insert(offset, (end, at));
    }
    found
}

/// The order by shared memory, beside the known one: the first op of each pair comes before the second.
pub(crate) fn edges(linked: &Linked<'_>, storages: &Storages, successions: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut edges = storages.edges.clone();
    for &(owner, at) in successions {
        if let Some(first) = storages.all[at].first {
            edges.extend(storages.all[owner].users.iter().map(|&user| (user, first)));
        }
    }
    edges.retain(|&(one, other)| one != other && linked.before[other].binary_search(&one).is_err());
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// The successions, and the values made in place, that make the way through the ops longer than this, taken one by one
/// in the order of the ops.
pub(crate) fn too_long(
    linked: &Linked<'_>,
    order: &[usize],
    storages: &Storages,
    successions: &[(usize, usize)],
    longest: u64,
) -> (Vec<(usize, usize)>, Vec<usize>) {
    let way = ways(linked);
    let mut behind: Vec<Vec<(usize, usize)>> = vec![Vec::new(); order.len()];
    for &(owner, at) in successions {
        if let Some(first) = storages.all[at].first {
            behind[first].push((owner, at));
        }
    }
    let mut in_place: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
    storages.edges.iter().for_each(|&(one, other)| in_place[other].push(one));
    let (mut apart, mut refused) = (Vec::new(), Vec::new());
    let mut end = vec![0_u64; order.len()];
    for &op in order {
        // An op that begins by then is done in time: no way through it is too long, if none behind it adds to it.
        let latest = longest - way[op];
        let mut begin = linked.before[op].iter().map(|&other| end[other]).max().unwrap_or(0);
        let readers = in_place[op].iter().map(|&other| end[other]).max().unwrap_or(0);
        if readers > latest {
            refused.push(op);
        } else {
            begin = begin.max(readers);
        }
        for &(owner, at) in &behind[op] {
            let users = storages.all[owner].users.iter().filter(|&&user| user != op);
            let done = users.map(|&user| end[user]).max().unwrap_or(0);
            if done > latest {
                apart.push((owner, at));
            } else {
                begin = begin.max(done);
            }
        }
        end[op] = begin + linked.cost(op);
    }
    (apart, refused)
}

/// The longest way through the ops, these edges included.
pub(crate) fn critical_path(linked: &Linked<'_>, order: &[usize], edges: &[(usize, usize)]) -> u64 {
    let mut more = vec![Vec::new(); order.len()];
    edges.iter().for_each(|&(one, other)| more[other].push(one));
    let mut end = vec![0_u64; order.len()];
    for &op in order {
        let before = linked.before[op].iter().chain(&more[op]);
        end[op] = linked.cost(op) + before.map(|&other| end[other]).max().unwrap_or(0);
    }
    end.into_iter().max().unwrap_or(0)
}
