//! A whole plan: an order, storages, offsets in one arena, and the order that shared memory
//! implies.

use crate::error::PlanError;
use crate::network::{Linked, Network};
use crate::offsets::{plan_offsets, plan_offsets_apart};
use crate::op_orders::op_orders;
use crate::schedule::Schedule;
use crate::settings::{Memory, Settings};
use crate::sharing::{Successions, critical_path, edges, successions, too_long};
use crate::storage::Storages;
use std::collections::{BTreeSet, HashMap, HashSet};

/// An arena, and an order that it is enough for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The ops, one after the other.
    pub order: Vec<usize>,
    /// The storage of each value. Values of one storage lie in one place, one after the other, or are the same bytes.
    pub storages: Vec<usize>,
    /// The place of each value in the arena; None for values outside.
    pub offsets: Vec<Option<u64>>,
    /// Where each op's workspace lies; None where it needs none.
    pub workspaces: Vec<Option<u64>>,
    /// The input, by its place in the list of its op, that gives each value its memory.
    pub taken: Vec<Option<usize>>,
    /// The arena's size.
    pub nbytes: u64,
    /// The most bytes that are live at the same time in this plan, sizes not rounded.
    pub peak_live_nbytes: u64,
    /// The order by shared memory: ops that must be done before others begin, beside their dependencies.
    pub edges: Vec<(usize, usize)>,
    /// The cost of the longest way through the ops, without these edges and with them.
    pub critical_path: (u64, u64),
}

/// Plans a network: of several orders, the one with the smallest arena is kept.
///
/// # Examples
///
/// ```
/// use weft_plan::{Network, Op, Pair, Settings, Share, Value, plan_network};
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
/// # Ok::<_, weft_plan::PlanError>(())
/// ```
pub fn plan_network(network: &Network, settings: &Settings<'_>) -> Result<Plan, PlanError> {
    plan_network_also(network, None, settings)
}

/// The same, with one more order to try if the ops may run in it.
///
/// # Errors
///
/// As of [`plan_network`].
pub fn plan_network_also(
    network: &Network,
    order: Option<Vec<usize>>,
    settings: &Settings<'_>,
) -> Result<Plan, PlanError> {
    let linked = Linked::new(network)?;
    let mut serial = op_orders(&linked, settings.workers);
    serial.extend(order.filter(|order| linked.may_run(order)));
    plan_schedules(&linked, serial.into_iter().map(Schedule::serial).collect(), settings, TURNS)
}

/// How many schedules get offsets.
const PLACED: usize = 3;

/// The best plan of these serial schedules or, where sharing memory would cost too much in all, of parallel ones, and
/// of serial ones with memory shared only where that costs little: that takes so many turns.
pub(crate) fn plan_schedules(
    linked: &Linked<'_>,
    serial: Vec<Schedule>,
    settings: &Settings<'_>,
    turns: usize,
) -> Result<Plan, PlanError> {
    let shortest = Schedule::early(linked).last();
    let longest = match settings.memory {
        Memory::Min => u64::MAX,
        Memory::Balanced => shortest + shortest / 20,
        Memory::Speed => shortest,
    };
    let serial = measured(linked, serial);
    if let Some(plan) = best_of(linked, &serial, (longest, 1), None, settings)? {
        return Ok(plan);
    }
    // Values that overlap in one of these share nothing, so the longest way is no longer than the schedule.
    let mut parallel = vec![
        Schedule::early(linked),
        Schedule::late(linked, shortest),
        Schedule::late(linked, longest),
        Schedule::for_workers(linked, settings.workers),
    ];
    parallel.extend(few_workers(linked, longest));
    parallel.retain(|schedule| schedule.last() <= longest);
    let best = best_of(linked, &measured(linked, parallel), (longest, 1), None, settings)?;
    let best = if turns > 1 { best_of(linked, &serial, (longest, turns), best, settings)? } else { best };
    best.ok_or_else(none)
}

fn none() -> PlanError {
    PlanError::Graph { what: "no schedule keeps to the critical path".to_owned() }
}

/// The schedule of the fewest workers that is done in time.
fn few_workers(linked: &Linked<'_>, longest: u64) -> Option<Schedule> {
    let mut workers = 1;
    while workers < linked.before.len() {
        let schedule = Schedule::for_workers(linked, workers);
        if schedule.last() <= longest {
            return Some(schedule);
        }
        workers += workers.div_ceil(2);
    }
    None
}

/// A schedule, its storages, and the most bytes of them that are live at the same time.
type Measured = (u64, Schedule, Storages);

/// Schedules, that of the lowest peak first.
fn measured(linked: &Linked<'_>, schedules: Vec<Schedule>) -> Vec<Measured> {
    let measure = |schedule: Schedule| {
        let storages = Storages::new(linked, &schedule);
        (storages.peak(), schedule, storages)
    };
    let mut found: Vec<Measured> = schedules.into_iter().map(measure).collect();
    found.sort_by_key(|(peak, ..)| *peak);
    found
}

/// The plan with the smallest arena, this one and those that keep to the longest way, in so many turns each.
fn best_of(
    linked: &Linked<'_>,
    measured: &[Measured],
    (longest, turns): (u64, usize),
    mut best: Option<Plan>,
    settings: &Settings<'_>,
) -> Result<Option<Plan>, PlanError> {
    let mut failed = None;
    for (peak, schedule, storages) in measured.iter().take(PLACED) {
        let below = best.as_ref().map_or(u64::MAX, |best| best.nbytes);
        if below <= *peak {
            break;
        }
        match place_within(linked, (schedule, storages), (longest, turns), below, settings) {
            Ok(Some(plan)) => best = Some(plan),
            Ok(None) => {}
            Err(PlanError::Interrupted) => return Err(PlanError::Interrupted),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match (best, failed) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(best),
    }
}

/// How often values that would make the way too long are kept apart, and all is placed anew.
pub(crate) const TURNS: usize = 8;

/// Offsets for the storages of a schedule in an arena below this size: storages share memory where no way becomes
/// longer than this; None if none was found.
fn place_within(
    linked: &Linked<'_>,
    (schedule, storages): (&Schedule, &Storages),
    (longest, turns): (u64, usize),
    below: u64,
    settings: &Settings<'_>,
) -> Result<Option<Plan>, PlanError> {
    let mut refused = HashSet::new();
    let mut anew: Option<Storages> = None;
    // By the values that were in them first, as storages are numbered anew when something is not made in place.
    let mut apart: BTreeSet<(usize, usize)> = BTreeSet::new();
    for turn in 1..=turns {
        let storages = anew.as_ref().unwrap_or(storages);
        let Some((plan, successions)) = place(linked, schedule, storages, &apart, settings)? else { return Ok(None) };
        if plan.nbytes >= below {
            return Ok(None);
        }
        if plan.critical_path.1 <= longest {
            return Ok(Some(plan));
        }
        if turn == turns {
            break;
        }
        let (long, in_place) = too_long(linked, &schedule.order, storages, &successions, longest);
        apart.extend(long.into_iter().map(|(one, other)| (storages.names[one], storages.names[other])));
        if !in_place.is_empty() {
            refused.extend(in_place);
            anew = Some(Storages::without(linked, schedule, &refused));
        }
    }
    Ok(None)
}

/// Offsets for the storages of a schedule, and the successions of storages on the same bytes.
fn place(
    linked: &Linked<'_>,
    schedule: &Schedule,
    storages: &Storages,
    apart: &BTreeSet<(usize, usize)>,
    settings: &Settings<'_>,
) -> Result<Option<(Plan, Successions)>, PlanError> {
    let planned: Vec<_> = storages.planned().collect();
    let time = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let lower: Vec<i64> = planned.iter().map(|(_, storage)| time(storage.begin)).collect();
    let upper: Vec<i64> = planned.iter().map(|(_, storage)| time(storage.end)).collect();
    let size: Vec<u64> = planned.iter().map(|(_, storage)| storage.size).collect();
    let placement = if apart.is_empty() {
        plan_offsets(&lower, &upper, &size, &settings.options)?
    } else {
        let places: HashMap<usize, usize> =
            planned.iter().enumerate().map(|(place, &(at, _))| (storages.names[at], place)).collect();
        let pairs: Vec<(usize, usize)> =
            apart.iter().filter_map(|(one, other)| Some((*places.get(one)?, *places.get(other)?))).collect();
        let Some(placement) = plan_offsets_apart(&lower, &upper, &size, &pairs, &settings.options)? else {
            return Ok(None);
        };
        placement
    };
    let mut offsets = vec![None; storages.all.len()];
    for (&(at, _), &offset) in planned.iter().zip(&placement.offsets) {
        offsets[at] = Some(offset);
    }
    let successions = successions(storages, &offsets);
    let edges = edges(linked, storages, &successions);
    let paths = [&[][..], &edges].map(|edges| critical_path(linked, &schedule.order, edges));
    // A storage without bytes lies anywhere in it.
    let offset = |at: usize| if storages.all[at].external { None } else { Some(offsets[at].unwrap_or(0)) };
    let plan = Plan {
        order: schedule.order.clone(),
        storages: storages.of_value.clone(),
        offsets: storages.of_value.iter().map(|&at| offset(at)).collect(),
        workspaces: storages.of_workspace.iter().map(|at| at.and_then(offset)).collect(),
        taken: storages.taken.clone(),
        nbytes: placement.nbytes,
        peak_live_nbytes: storages.peak(),
        edges,
        critical_path: (paths[0], paths[1]),
    };
    Ok(Some((plan, successions)))
}
