//! A whole plan: an order, storages, offsets in one arena, and what sharing memory orders.

use super::error::PlanError;
use super::network::{Linked, Network};
use super::offsets::{Options, plan_offsets};
use super::order::orders;
use super::schedule::Schedule;
use super::sharing::{critical_path, edges};
use super::storage::Storages;

/// How much longer the critical path may become, because values share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// As much as it likes: the smallest arena.
    Min,
    /// By a twentieth.
    #[default]
    Balanced,
    /// Not at all.
    Speed,
}

/// How to plan.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// What sharing memory may cost.
    pub memory: Memory,
    /// How many ops are expected to run at the same time.
    pub workers: usize,
    /// Offsets, and how long they are searched for.
    pub options: Options<'a>,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Self { memory: Memory::default(), workers: 2, options: Options::default() }
    }
}

/// An arena, and an order in which it is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The ops, one after the other.
    pub order: Vec<usize>,
    /// The storage of each value. Values of one storage lie in one place, one after the other, or are the same bytes.
    pub storages: Vec<usize>,
    /// Where each value lies in the arena; None for what is outside.
    pub offsets: Vec<Option<u64>>,
    /// Where each op's workspace lies; None where it needs none.
    pub workspaces: Vec<Option<u64>>,
    /// The input, by its place in the list of its op, in whose memory each value is made.
    pub taken: Vec<Option<usize>>,
    /// The arena's size.
    pub nbytes: u64,
    /// The most bytes that are live at the same time in this plan, sizes not rounded.
    pub peak_live_nbytes: u64,
    /// What sharing memory orders: ops that must be done before others begin, beside their dependencies.
    pub edges: Vec<(usize, usize)>,
    /// The cost of the longest way through the ops, without these edges and with them.
    pub critical_path: (u64, u64),
}

/// Plans a network: several orders, of which the one with the smallest arena is kept.
///
/// # Examples
///
/// ```
/// use weft_graph::plan::{Network, Op, Pair, Settings, Share, Value, plan_network};
///
/// // y = f(x) may take x's place; z = g(y) may not take y's.
/// let mut network = Network::default();
/// let [x, y] = [(); 2].map(|()| network.value(Value { size: 256, ..Value::default() }));
/// let z = network.value(Value { size: 64, kept: true, ..Value::default() });
/// network.op(Op { name: "draw".into(), outputs: vec![x], ..Op::default() });
/// let pairs = vec![Pair { input: 0, output: 0, share: Share::InPlace }];
/// network.op(Op { name: "f".into(), inputs: vec![x], outputs: vec![y], pairs, ..Op::default() });
/// network.op(Op { name: "g".into(), inputs: vec![y], outputs: vec![z], ..Op::default() });
/// let plan = plan_network(&network, &Settings::default())?;
/// assert_eq!(plan.nbytes, 256 + 64);
/// assert_eq!(plan.storages[x], plan.storages[y]);
/// # Ok::<_, weft_graph::plan::PlanError>(())
/// ```
pub fn plan_network(network: &Network, settings: &Settings<'_>) -> Result<Plan, PlanError> {
    let linked = Linked::new(network)?;
    let serial = orders(&linked, settings.workers).into_iter().map(Schedule::serial).collect();
    plan_schedules(&linked, serial, settings)
}

/// How many schedules get offsets.
const PLACED: usize = 3;

/// The best plan of these serial schedules or, where sharing memory would cost too much in all, of parallel ones.
pub(super) fn plan_schedules(
    linked: &Linked<'_>,
    serial: Vec<Schedule>,
    settings: &Settings<'_>,
) -> Result<Plan, PlanError> {
    let shortest = Schedule::early(linked).last();
    let longest = match settings.memory {
        Memory::Min => u64::MAX,
        Memory::Balanced => shortest + shortest / 20,
        Memory::Speed => shortest,
    };
    let best = best_of(linked, serial, longest, settings)?;
    if let Some(plan) = best.filter(|plan| plan.critical_path.1 <= longest) {
        return Ok(plan);
    }
    // Whatever overlaps in one of these shares nothing, so the longest way is no longer than the schedule.
    let parallel = [
        Schedule::early(linked),
        Schedule::late(linked, shortest),
        Schedule::late(linked, longest),
        Schedule::for_workers(linked, settings.workers),
    ];
    let parallel = parallel.into_iter().filter(|schedule| schedule.last() <= longest).collect();
    let plan = best_of(linked, parallel, longest, settings)?;
    plan.ok_or_else(|| PlanError::Graph { what: "no schedule keeps to the critical path".to_owned() })
}

/// The plan with the smallest arena among those that keep to the longest way.
fn best_of(
    linked: &Linked<'_>,
    schedules: Vec<Schedule>,
    longest: u64,
    settings: &Settings<'_>,
) -> Result<Option<Plan>, PlanError> {
    let mut measured: Vec<(u64, Schedule, Storages)> = Vec::new();
    for schedule in schedules {
        let storages = Storages::new(linked, &schedule);
        measured.push((storages.peak(), schedule, storages));
    }
    measured.sort_by_key(|(peak, ..)| *peak);
    let mut best: Option<Plan> = None;
    let mut failed = None;
    for (peak, schedule, storages) in measured.into_iter().take(PLACED) {
        if best.as_ref().is_some_and(|best| best.nbytes <= peak) {
            break;
        }
        match place(linked, &schedule, &storages, settings) {
            Ok(plan) if plan.critical_path.1 > longest => {}
            Ok(plan) if best.as_ref().is_none_or(|best| plan.nbytes < best.nbytes) => best = Some(plan),
            Ok(_) => {}
            Err(PlanError::Interrupted) => return Err(PlanError::Interrupted),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match (best, failed) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(best),
    }
}

/// Offsets for the storages of a schedule.
fn place(
    linked: &Linked<'_>,
    schedule: &Schedule,
    storages: &Storages,
    settings: &Settings<'_>,
) -> Result<Plan, PlanError> {
    let planned: Vec<_> = storages.planned().collect();
    let time = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let lower: Vec<i64> = planned.iter().map(|(_, storage)| time(storage.begin)).collect();
    let upper: Vec<i64> = planned.iter().map(|(_, storage)| time(storage.end)).collect();
    let size: Vec<u64> = planned.iter().map(|(_, storage)| storage.size).collect();
    let placement = plan_offsets(&lower, &upper, &size, &settings.options)?;
    let mut offsets = vec![None; storages.all.len()];
    for (&(at, _), &offset) in planned.iter().zip(&placement.offsets) {
        offsets[at] = Some(offset);
    }
    let edges = edges(linked, storages, &offsets);
    let paths = [&[][..], &edges].map(|edges| critical_path(linked, &schedule.order, edges));
    // What takes no memory lies anywhere in it.
    let offset = |at: usize| if storages.all[at].external { None } else { Some(offsets[at].unwrap_or(0)) };
    Ok(Plan {
        order: schedule.order.clone(),
        storages: storages.of_value.clone(),
        offsets: storages.of_value.iter().map(|&at| offset(at)).collect(),
        workspaces: storages.of_workspace.iter().map(|at| at.and_then(offset)).collect(),
        taken: storages.taken.clone(),
        nbytes: placement.nbytes,
        peak_live_nbytes: storages.peak(),
        edges,
        critical_path: (paths[0], paths[1]),
    })
}
