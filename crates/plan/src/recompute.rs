//! Values that are made again instead of kept: more work, a smaller arena.
//!
//! An op of the forward part that runs again is *copied*, and the original's values must have no later reader: the backward part reads the copy,
//! which runs when its other predecessors are done. The inputs of a copy are copied, too, or are *checkpoints*, which stay. Checkpoints that cut the
//! forward part into segments (`segments`) give the arena of sqrt(n) for chains of n ops; others keep all that is dear.

use crate::arena::{Plan, TURNS, plan_schedules};
use crate::error::PlanError;
use crate::network::{Linked, Network, Op, Share};
use crate::op_orders::{as_needed, op_orders};
use crate::schedule::Schedule;
use crate::segments::{Tapered, checkpoints, crossing};
use crate::settings::Settings;
use crate::storage::Storages;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A network with some ops that run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recomputed {
    /// The network; copies are its last ops, their values its last values.
    pub network: Network,
    /// For each copy, in the order of the network's last ops, the op that it runs again.
    pub copies: Vec<usize>,
    /// Its plan.
    pub plan: Plan,
}

/// Plans a network, with ops that run again where that makes the *planned* arena smaller.
///
/// Only ops that are marked `again` do. Without a limit the smallest arena found is taken, without any copies if none is
/// smaller; with a limit, in bytes, the cheapest set of copies that was found to fit.
pub fn recompute(network: &Network, limit: Option<u64>, settings: &Settings<'_>) -> Result<Recomputed, PlanError> {
    let mut settings = *settings;
    settings.options.capacity = None;
    let linked = Linked::new(network)?;
    let serial = || op_orders(&linked, settings.workers).into_iter().map(Schedule::serial).collect();
    let plan = plan_schedules(&linked, serial(), &settings, TURNS)?;
    let fits = |plan: &Plan| limit.is_some_and(|limit| plan.nbytes <= limit);
    let mut best = Recomputed { network: network.clone(), copies: Vec::new(), plan };
    if fits(&best.plan) {
        return Ok(best);
    }
    let mut sets: Vec<Candidate> = Vec::new();
    for again in candidates(&linked) {
        let candidate = Candidate::new(&linked, &again)?;
        if !candidate.copies.is_empty() && !sets.iter().any(|other| other.again == candidate.again) {
            sets.push(candidate);
        }
    }
    // With a limit the cheapest that may fit come first; then, as without one, those that keep least.
    sets.sort_by_key(|set| (set.cost, set.peak));
    let (mut tried, mut rest): (Vec<_>, Vec<_>) =
        sets.into_iter().partition(|set| limit.is_some_and(|limit| set.peak <= limit));
    rest.extend(tried.drain(tried.len().min(PLANNED)..));
    rest.sort_by_key(|set| (set.peak, set.cost));
    rest.truncate(PLANNED);
    tried.extend(rest.into_iter().filter(|set| set.peak < best.plan.nbytes));
    for set in tried {
        let planned = set.plan(&settings)?;
        if fits(&planned.plan) {
            return cheaper(&linked, set, planned, limit.unwrap_or(u64::MAX), &settings);
        }
        if planned.plan.nbytes < best.plan.nbytes {
            best = planned;
        }
    }
    match limit {
        None => Ok(best),
        Some(limit) => {
            let (bound, op) = needed(network);
            Err(PlanError::Limit { limit, best: best.plan.nbytes, bound, op: network.ops[op].name.clone() })
        }
    }
}

/// How many sets get offsets.
const PLANNED: usize = 4;
/// How many ops are tried, one by one, not to run again after all.
const SPARED: usize = 16;

/// A set of ops that run again, and its result.
struct Candidate {
    again: Vec<bool>,
    network: Network,
    copies: Vec<usize>,
    order: Vec<usize>,
    peak: u64,
    cost: u64,
}

impl Candidate {
    fn new(linked: &Linked<'_>, again: &[bool]) -> Result<Self, PlanError> {
        let given: Vec<u64> = (0..linked.network.ops.len() as u64).collect();
        let mut best: Option<Self> = None;
        for rank in [given, early(linked)] {
            let (network, copies, order) = Copier::new(linked, again, rank).run();
            let peak = {
                let relinked = Linked::new(&network)?;
                Storages::new(&relinked, &Schedule::serial(order.clone())).peak()
            };
            if best.as_ref().is_none_or(|best| peak < best.peak) {
                let cost = copies.iter().map(|&op| linked.cost(op)).sum();
                best = Some(Self { again: again.to_owned(), network, copies, order, peak, cost });
            }
        }
        best.ok_or_else(|| PlanError::Graph { what: "no order was tried".to_owned() })
    }

    fn plan(&self, settings: &Settings<'_>) -> Result<Recomputed, PlanError> {
        let relinked = Linked::new(&self.network)?;
        let mut serial = op_orders(&relinked, settings.workers);
        serial.push(self.order.clone());
        let plan = plan_schedules(&relinked, serial.into_iter().map(Schedule::serial).collect(), settings, 1)?;
        Ok(Recomputed { network: self.network.clone(), copies: self.copies.clone(), plan })
    }
}

/// The order with the forward part as given, and the backward part as needed.
fn early(linked: &Linked<'_>) -> Vec<u64> {
    let late = late(linked);
    let needed = as_needed(linked, &late);
    let ops = late.len() as u64;
    (0..ops).zip(late).zip(needed).map(|((given, late), needed)| if late { ops + needed } else { given }).collect()
}

/// The ops that read copies: those of the backward part that do not reach an op that may run again.
fn late(linked: &Linked<'_>) -> Vec<bool> {
    let ops = &linked.network.ops;
    let mut late = vec![true; ops.len()];
    for op in linked.by_rank(&vec![0; ops.len()]).into_iter().rev() {
        late[op] = !ops[op].again && linked.behind[op].iter().all(|&next| late[next]);
    }
    late
}

/// Takes ops out of a set that fits, the dearest first, as long as it fits.
fn cheaper(
    linked: &Linked<'_>,
    mut set: Candidate,
    mut planned: Recomputed,
    limit: u64,
    settings: &Settings<'_>,
) -> Result<Recomputed, PlanError> {
    let mut dear = set.copies.clone();
    dear.sort_by_key(|&op| Reverse(linked.cost(op)));
    for op in dear.into_iter().take(SPARED) {
        let mut again = set.again.clone();
        again[op] = false;
        let without = Candidate::new(linked, &again)?;
        if without.peak > limit || without.cost >= set.cost {
            continue;
        }
        let plan = without.plan(settings)?;
        if plan.plan.nbytes <= limit {
            (set, planned) = (without, plan);
        }
    }
    Ok(planned)
}

/// The most bytes that an op needs by itself, and that op.
fn needed(network: &Network) -> (u64, usize) {
    let size = |value: usize| if network.values[value].external { 0 } else { network.values[value].size };
    let of = |op: &Op| {
        let inputs: BTreeSet<usize> = op.inputs.iter().copied().collect();
        let made =
            op.outputs.iter().enumerate().filter(|&(place, _)| !op.pairs.iter().any(|pair| pair.output == place));
        inputs.into_iter().chain(made.map(|(_, &value)| value)).map(size).sum::<u64>() + op.workspace
    };
    (0..network.ops.len())
        .map(|op| (of(&network.ops[op]), op))
        .max_by_key(|&(bytes, op)| (bytes, Reverse(op)))
        .unwrap_or((0, 0))
}

/// The sets that are tried.
fn candidates(linked: &Linked<'_>) -> Vec<Vec<bool>> {
    let ops = &linked.network.ops;
    let values = &linked.network.values;
    let may = |op: usize| {
        let called = &ops[op];
        let fixed = called.inputs.iter().chain(&called.outputs).any(|&value| linked.mutated[value]);
        let outside = called.outputs.iter().any(|&value| values[value].external || values[value].kept);
        let mutates = called.pairs.iter().any(|pair| pair.share == Share::Mutation);
        called.again && !fixed && !outside && !mutates
    };
    let given: Vec<u64> = (0..ops.len() as u64).collect();
    let forward: Vec<usize> = linked.by_rank(&given).into_iter().filter(|&op| may(op)).collect();
    let mut sets = vec![set(ops.len(), &forward)];
    // By segments.
    let crossing = crossing(linked, &forward, |value| values[value].size);
    let mut segments = 2;
    while segments <= forward.len() {
        let checkpoints = checkpoints(linked, &forward, &crossing, segments);
        let again: Vec<usize> = forward.iter().copied().filter(|op| !checkpoints.contains(op)).collect();
        sets.push(set(ops.len(), &again));
        segments = (segments + 1).max(segments * 5 / 4);
    }
    let tapered = Tapered::new(linked, &forward, &late(linked));
    sets.extend(tapered.sets().iter().map(|again| set(ops.len(), again)));
    // The cheapest one for its bytes.
    let made = |op: usize| ops[op].outputs.iter().map(|&value| values[value].size).sum::<u64>();
    let mut cheap = forward.clone();
    cheap.sort_by(|&one, &other| {
        let product = |op: usize, by: usize| u128::from(linked.cost(op)) * u128::from(made(by));
        product(one, other).cmp(&product(other, one))
    });
    for quarter in 1..4 {
        sets.push(set(ops.len(), &cheap[..cheap.len() * quarter / 4]));
    }
    sets
}

fn set(ops: usize, of: &[usize]) -> Vec<bool> {
    let mut set = vec![false; ops];
    of.iter().for_each(|&op| set[op] = true);
    set
}

/// Builds the network with copies, and an order with each copy just before its use.
struct Copier<'a> {
    linked: &'a Linked<'a>,
    again: &'a [bool],
    network: Network,
    copies: Vec<usize>,
    /// The copy of each value.
    copied: Vec<Option<usize>>,
    /// Of ops that may come next, that of the lowest does.
    rank: Vec<u64>,
    order: Vec<usize>,
}

impl<'a> Copier<'a> {
    fn new(linked: &'a Linked<'a>, again: &'a [bool], rank: Vec<u64>) -> Self {
        let network = linked.network.clone();
        let copied = vec![None; network.values.len()];
        Self { linked, again, network, copies: Vec::new(), copied, rank, order: Vec::new() }
    }

    fn run(mut self) -> (Network, Vec<usize>, Vec<usize>) {
        let ops = &self.linked.network.ops;
        let late = late(self.linked);
        for op in self.linked.by_rank(&self.rank) {
            if late[op] {
                // Copies wait for the op's other inputs, too, so that they do not run right after the originals.
                let makers = ops[op].inputs.iter().filter_map(|&value| self.linked.maker[value]);
                let after: Vec<usize> = makers.filter(|&maker| !ops[maker].again).collect();
                for place in 0..ops[op].inputs.len() {
                    let value = ops[op].inputs[place];
                    if self.is_copied(value) {
                        self.copy(value, &after);
                        self.network.ops[op].inputs[place] = self.copied[value].unwrap_or(value);
                    }
                }
            }
            self.order.push(op);
        }
        (self.network, self.copies, self.order)
    }

    fn is_copied(&self, value: usize) -> bool {
        self.linked.maker[value].is_some_and(|maker| self.again[maker])
    }

    /// Copies the op that makes a value, and before it those that it needs as copies.
    fn copy(&mut self, value: usize, after: &[usize]) {
        let mut stack = vec![(value, false)];
        while let Some((value, ready)) = stack.pop() {
            let Some(op) = self.linked.maker[value].filter(|_| self.copied[value].is_none()) else { continue };
            let original = &self.linked.network.ops[op];
            if !ready {
                stack.push((value, true));
                let needed = original.inputs.iter().copied().filter(|&input| self.is_copied(input));
                stack.extend(needed.map(|input| (input, false)));
                continue;
            }
            let inputs = original.inputs.iter().map(|&input| self.copied[input].unwrap_or(input)).collect();
            for &output in &original.outputs {
                self.copied[output] = Some(self.network.value(self.linked.network.values[output].clone()));
            }
            let outputs = original.outputs.iter().filter_map(|&output| self.copied[output]).collect();
            let after = original.after.iter().chain(after).copied().collect();
            let name = format!("{} again", original.name);
            self.order.push(self.network.op(Op { name, inputs, outputs, after, again: false, ..original.clone() }));
            self.copies.push(op);
        }
    }
}
