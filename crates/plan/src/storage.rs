//! Which values share a storage, and from when to when each storage is taken.

use crate::network::{Linked, Share};
use crate::schedule::Schedule;
use std::collections::HashSet;

/// Memory that one value after the other lies in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Storage {
    pub(crate) size: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// It is not in the arena.
    pub(crate) external: bool,
    kept: bool,
    /// The op that writes to it first.
    pub(crate) first: Option<usize>,
    /// All ops that use it.
    pub(crate) users: Vec<usize>,
    /// Values in it that may still be read.
    live: Vec<usize>,
}

/// The storages of a schedule.
#[derive(Debug)]
pub(crate) struct Storages {
    /// Those of values, and behind them those of workspaces.
    pub(crate) all: Vec<Storage>,
    /// The name of each, the same for all that share it: the value that is in it first, and behind all values the op of
    /// a workspace.
    pub(crate) names: Vec<usize>,
    /// The storage of each value.
    pub(crate) of_value: Vec<usize>,
    /// The storage of each op's workspace.
    pub(crate) of_workspace: Vec<Option<usize>>,
    /// The input, by its place, that gave each value its storage.
    pub(crate) taken: Vec<Option<usize>>,
    /// The order by a shared storage: the first op comes before the second.
    pub(crate) edges: Vec<(usize, usize)>,
}

impl Storages {
    pub(crate) fn new(linked: &Linked<'_>, schedule: &Schedule) -> Self {
        Self::without(linked, schedule, &HashSet::new())
    }

    /// The same, where these ops make nothing in place.
    pub(crate) fn without(linked: &Linked<'_>, schedule: &Schedule, refused: &HashSet<usize>) -> Self {
        let values = linked.network.values.len();
        let mut made = Self {
            all: Vec::new(),
            names: Vec::new(),
            of_value: vec![usize::MAX; values],
            of_workspace: vec![None; linked.network.ops.len()],
            taken: vec![None; values],
            edges: Vec::new(),
        };
        for value in (0..values).filter(|&value| linked.maker[value].is_none()) {
            made.add(linked, schedule, value);
        }
        for &op in &schedule.order {
            made.outputs(linked, schedule, op, !refused.contains(&op));
        }
        for (op, called) in linked.network.ops.iter().enumerate().filter(|(_, called)| called.workspace > 0) {
            made.of_workspace[op] = Some(made.all.len());
            made.names.push(values + op);
            let (size, begin, end) = (called.workspace, schedule.begin[op], schedule.end[op]);
            made.all.push(Storage { size, begin, end, first: Some(op), users: vec![op], ..Storage::default() });
        }
        made
    }

    fn outputs(&mut self, linked: &Linked<'_>, schedule: &Schedule, op: usize, in_place: bool) {
        let called = &linked.network.ops[op];
        for (place, &output) in called.outputs.iter().enumerate() {
            let pairs = called.pairs.iter().filter(|pair| pair.output == place);
            // Necessary shares come before possible ones.
            let mut pairs: Vec<_> = pairs.collect();
            pairs.sort_by_key(|pair| (pair.share != Share::Mutation, pair.share != Share::Identity));
            let pair = pairs.into_iter().find(|pair| {
                let input = called.inputs[pair.input];
                match pair.share {
                    Share::Mutation => true,
                    Share::Identity => self.may_stay(linked, op, input, output),
                    Share::InPlace => in_place && self.dies(linked, schedule, op, input, output),
                }
            });
            let Some(pair) = pair else {
                self.add(linked, schedule, output);
                continue;
            };
            self.taken[output] = Some(pair.input);
            let storage = self.of_value[called.inputs[pair.input]];
            if pair.share == Share::InPlace {
                let live = std::mem::take(&mut self.all[storage].live);
                let readers = live.iter().flat_map(|&value| &linked.readers[value]);
                let others = readers.filter(|&&other| other != op && linked.before[op].binary_search(&other).is_err());
                self.edges.extend(others.map(|&other| (other, op)));
            } else {
                let over =
                    |value: usize| linked.readers[value].iter().all(|&other| schedule.end[other] <= schedule.begin[op]);
                self.all[storage].live.retain(|&value| !over(value));
            }
            self.join(linked, schedule, output, storage);
        }
    }

    /// Whether an unchanged value may lie where its input goes on to lie.
    fn may_stay(&self, linked: &Linked<'_>, op: usize, input: usize, output: usize) -> bool {
        let storage = &self.all[self.of_value[input]];
        let value = &linked.network.values[output];
        let fits = value.size <= storage.size && !value.external;
        let two_results = value.kept && (storage.kept || storage.external);
        let mutated =
            linked.mutated[output] || linked.mutated[input] || storage.live.iter().any(|&value| linked.mutated[value]);
        let taken = storage.live.iter().any(|&value| linked.maker[value] == Some(op));
        fits && !two_results && !mutated && !taken
    }

    /// Whether an op is the last to use the storage of an input, which it reads once.
    fn dies(&self, linked: &Linked<'_>, schedule: &Schedule, op: usize, input: usize, output: usize) -> bool {
        let called = &linked.network.ops[op];
        let at = self.of_value[input];
        let storage = &self.all[at];
        let value = &linked.network.values[output];
        if storage.external || storage.kept || value.external || value.size > storage.size {
            return false;
        }
        let over = |&other: &usize| other == op || schedule.end[other] <= schedule.begin[op];
        let dead = |&value: &usize| {
            let made = linked.maker[value].is_none_or(|maker| schedule.end[maker] <= schedule.begin[op]);
            made && !linked.mutated[value] && linked.readers[value].iter().all(over)
        };
        let once = called.inputs.iter().filter(|&&other| self.of_value[other] == at).count() == 1;
        once && storage.live.iter().all(dead)
    }

    /// Gives a value a storage of its own.
    fn add(&mut self, linked: &Linked<'_>, schedule: &Schedule, value: usize) {
        let of = &linked.network.values[value];
        let begin = linked.maker[value].map_or(0, |maker| schedule.begin[maker]);
        let storage = self.all.len();
        self.names.push(value);
        self.all.push(Storage {
            size: of.size,
            begin,
            end: begin + u64::from(linked.maker[value].is_none()), // it is there before anything runs
            external: of.external,
            first: linked.maker[value],
            ..Storage::default()
        });
        self.join(linked, schedule, value, storage);
    }

    /// Puts a value into a storage.
    fn join(&mut self, linked: &Linked<'_>, schedule: &Schedule, value: usize, at: usize) {
        self.of_value[value] = at;
        let storage = &mut self.all[at];
        let users = linked.readers[value].iter().chain(&linked.maker[value]);
        storage.users.extend(users.clone());
        storage.kept |= linked.network.values[value].kept;
        let last = if storage.kept { schedule.last() } else { 0 };
        storage.end = users.map(|&op| schedule.end[op]).chain([last, storage.end]).max().unwrap_or(0);
        storage.live.push(value);
    }

    /// The storages that the arena holds.
    pub(crate) fn planned(&self) -> impl Iterator<Item = (usize, &Storage)> {
        self.all.iter().enumerate().filter(|(_, storage)| !storage.external && storage.size > 0)
    }

    /// The most bytes that are live at the same time, as they are.
    pub(crate) fn peak(&self) -> u64 {
        let mut events: Vec<(u64, bool, u64)> = Vec::new();
        for (_, storage) in self.planned().filter(|(_, storage)| storage.begin < storage.end) {
            events.extend([(storage.begin, true, storage.size), (storage.end, false, storage.size)]);
        }
        events.sort_unstable();
        let (mut live, mut most) = (0, 0);
        for (_, begins, size) in events {
            live = if begins { live + size } else { live - size };
            most = live.max(most);
        }
        most
    }
}
