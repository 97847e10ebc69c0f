//! The shared part of all pushes of a replay.

use super::ahead::fetch;
use super::calls::Spare;
use super::clock;
use super::once::Once;
use super::shape::{Rows, Shape};
use super::slots::Slots;
use super::step::ErasedStep;
use super::trial::{Trial, Way};
use super::{Failures, Outcome};
use crate::failure::Place;
use crate::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};
use crate::trace::Kind;
use crate::var::AccessKind;
use std::sync::Arc;
use std::time::Duration;

/// The assumed cost of an untimed step: long enough to be shared with other workers.
const UNKNOWN: u32 = 10_000;
/// Runs with timed steps: the first ones, and then one of so many.
pub(super) const TIMED_FIRST: u32 = 2;
const TIMED_OF: u32 = 64;

/// A step that is so long goes alone.
pub(super) const LONG: u64 = 2_000;
/// The ready steps are worth a second worker that waits for some if they take so long, and each of them so long.
pub(super) const HANDED: u64 = 500;
pub(super) const HANDED_EACH: u64 = 45;
/// Steps that take longer are shared, and calls that take longer: trying them one by one would hold up whoever waits.
const TRIED_EACH: u64 = 4_000;
const TRIED: u64 = 10_000_000;

/// Nanoseconds that it saves to run a step right behind another one: it need not be counted.
const COUNTED: u64 = 8;

/// See [`Plan::judge`].
const SHARED: u32 = 0;
const ONE_BY_ONE: u32 = 1;
const UNCLEAR: u32 = 2;

/// Where a step with a cell runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Celled {
    pub(crate) step: u32,
    pub(crate) lane: u16,
    pub(crate) hosted: bool,
}

/// A port, and the fate of its users.
pub(crate) struct PortPlan {
    pub(crate) kind: AccessKind,
    pub(super) writers: Writers,
}

/// The steps that decide the fate of a port.
pub(crate) struct Writers {
    /// Steps with the last changes, in their recorded order.
    pub(super) last: Box<[u32]>,
    /// Whether they leave nothing of the old value.
    pub(super) leaves_nothing: bool,
    /// All steps that change anything there.
    pub(super) all: Box<[u32]>,
}

impl Writers {
    /// For steps that each change all that is behind the port.
    pub(super) fn of(writers: &[(u32, AccessKind)]) -> Self {
        let overwrites = writers.iter().rposition(|(_, kind)| *kind == AccessKind::Overwrite);
        let last = writers[overwrites.unwrap_or(0)..].iter().map(|(step, _)| *step).collect();
        let all = writers.iter().map(|(step, _)| *step).collect();
        Self { last, leaves_nothing: overwrites.is_some(), all }
    }

    /// The fate of the port, by the failures.
    pub(super) fn outcome(&self, failures: &Failures) -> Outcome {
        match self.last.iter().rev().find_map(|step| failures.of(*step)) {
            Some(failure) => {
                let begun = self.all.iter().any(|step| !failures.was_skipped(*step));
                Outcome::Failed { failure: Arc::clone(failure), begun }
            }
            None if self.leaves_nothing => Outcome::Overwritten,
            None => Outcome::Kept,
        }
    }
}

/// Of pairs of step and port, in the order of steps: the first and the last one of each port.
fn outermost(users: &[(u32, u32)], ports: u32) -> Vec<(u32, u32)> {
    let mut found = vec![None; ports as usize];
    for &(step, port) in users {
        let (first, last) = found[port as usize].get_or_insert((step, step));
        (*first, *last) = (step.min(*first), step.max(*last));
    }
    let ends = |(port, found): (u32, Option<(u32, u32)>)| found.map(|(first, last)| [(first, port), (last, port)]);
    let mut users: Vec<_> = (0..).zip(found).filter_map(ends).flatten().collect();
    users.dedup();
    users
}

/// Rows of steps that have as many before them, on the longest way. Edges lead to later steps.
fn levels(steps: u32, successors: &Rows) -> Rows {
    let mut levels = vec![0; steps as usize];
    for step in 0..steps {
        let level = levels[step as usize] + 1;
        for &next in successors.of(step).iter().filter(|next| **next < steps) {
            levels[next as usize] = level.max(levels[next as usize]);
        }
    }
    let count = levels.iter().max().map_or(0, |last| *last as usize + 1);
    let pairs: Vec<_> = levels.into_iter().zip(0..).collect();
    Rows::new(count, &pairs)
}

/// See the module.
pub(crate) struct Plan {
    pub(crate) name: Option<Box<str>>,
    pub(super) steps: Box<[Box<dyn ErasedStep>]>,
    pub(super) names: Box<[Option<Box<str>>]>,
    /// Where each was recorded.
    places: Box<[u64]>,
    pub(super) always_run: Box<[bool]>,
    pub(crate) ports: Box<[PortPlan]>,
    /// The values that a step sees: of earlier steps, and of ports by the numbers behind those of the steps. Behind the
    /// rows of steps are those of members, which as nodes come behind the start, and are not counted: they are done
    /// when their step is.
    pub(super) needs: Rows,
    /// Of each step its members, by their numbers, if any step has some; and of each member its step, and its name.
    members: Rows,
    of_members: Box<[(u32, Option<Box<str>>)]>,
    pub(super) parallel: Shape,
    sequential: Once<Shape>,
    pub(super) users: Box<[(u32, u32)]>,
    /// Nanoseconds that each step is expected to take; 0 if that is not known.
    costs: Box<[u32]>,
    /// Empty if no step has one.
    pub(super) priorities: Box<[i32]>,
    estimates: Box<[AtomicU32]>,
    /// Nanoseconds that the clock adds to a step's time.
    look: u32,
    runs: AtomicU32,
    /// Steps by the number of steps on the longest way to them: those of a row may be ready together.
    levels: Rows,
    /// What their times say: [`SHARED`], [`ONE_BY_ONE`], or nothing, and a trial decides.
    verdict: AtomicU32,
    trial: Trial,
    pub(crate) celled: Box<[Celled]>,
    /// By step; empty if no step has a cell.
    pub(super) cell_of: Box<[u32]>,
    /// The lane of the token.
    pub(crate) lane: u16,
    /// Instances that may be in flight.
    pub(super) limit: u32,
    /// Instances made, the usual ones, below the fork generation of their engine.
    pub(super) made: AtomicU64,
    /// Free instances beyond these, likewise; and how many were made.
    pub(super) spare_extras: AtomicU64,
    pub(super) extras: AtomicU32,
    pub(super) spare: Spare,
    /// The registrar's.
    pub(super) slots: UnsafeCell<Slots>,
}

// SAFETY: `slots` is touched with the engine's seat alone; everything else is Sync.
unsafe impl Sync for Plan {}
// SAFETY: it owns its target.
unsafe impl Send for Plan {}

/// The builder's facts.
pub(super) struct Parts {
    pub(super) name: Option<Box<str>>,
    pub(super) steps: Vec<Box<dyn ErasedStep>>,
    pub(super) names: Vec<Option<Box<str>>>,
    pub(super) places: Vec<u64>,
    pub(super) always_run: Vec<bool>,
    pub(super) costs: Vec<u32>,
    pub(super) priorities: Vec<i32>,
    pub(super) ports: Vec<PortPlan>,
    /// Step and name.
    pub(super) members: Vec<(u32, Option<Box<str>>)>,
    pub(super) needs: Vec<(u32, u32)>,
    pub(super) edges: Vec<(u32, u32)>,
    pub(super) users: Vec<(u32, u32)>,
    pub(super) celled: Vec<Celled>,
    pub(super) lane: u16,
    pub(super) limit: u32,
}

#[allow(clippy::cast_possible_truncation)] // the builder counts in u32
impl Plan {
    pub(super) fn new(parts: Parts) -> Arc<Self> {
        let Parts {
            name,
            steps,
            names,
            places,
            always_run,
            costs,
            mut priorities,
            ports,
            members,
            needs,
            edges,
            users,
            celled,
            lane,
            limit,
        } = parts;
        if priorities.iter().all(|priority| *priority == 0) {
            priorities.clear();
        }
        let (count, port_count) = (steps.len() as u32, ports.len() as u32);
        let mut cell_of = Vec::new();
        if !celled.is_empty() {
            cell_of.resize(steps.len(), super::NONE);
            for (at, cell) in (0..).zip(&celled) {
                cell_of[cell.step as usize] = at;
            }
        }
        let is_plain = |step: u32| cell_of.get(step as usize).is_none_or(|&cell| cell == super::NONE);
        let mut has_members = vec![false; if members.is_empty() { 0 } else { steps.len() }];
        members.iter().for_each(|(step, _)| has_members[*step as usize] = true);
        let may_fail_in_part = |step: u32| has_members.get(step as usize).is_some_and(|has| *has);
        // A step needs those alone that it comes after.
        let goes_on = |step, next| is_plain(step) && is_plain(next) && !may_fail_in_part(step);
        let parallel = Shape::new(count, port_count, &edges, &users, (&costs, &priorities), goes_on);
        let levels = levels(count, &parallel.successors);
        let of_steps: Vec<_> = (0..).zip(&members).map(|(member, (step, _))| (*step, member)).collect();
        Arc::new(Self {
            name,
            names: names.into(),
            places: places.into(),
            always_run: always_run.into(),
            ports: ports.into(),
            needs: Rows::new(steps.len() + members.len(), &needs),
            members: if members.is_empty() { Rows::default() } else { Rows::new(steps.len(), &of_steps) },
            of_members: members.into(),
            steps: steps.into(),
            parallel,
            sequential: Once::new(),
            users: users.into(),
            estimates: costs.iter().map(|&cost| AtomicU32::new(if cost == 0 { UNKNOWN } else { cost })).collect(),
            look: clock::look(),
            costs: costs.into(),
            priorities: priorities.into(),
            runs: AtomicU32::new(0),
            levels,
            verdict: AtomicU32::new(SHARED),
            trial: Trial::new(),
            celled: celled.into(),
            cell_of: cell_of.into(),
            lane,
            limit,
            made: AtomicU64::new(0),
            spare_extras: AtomicU64::new(0),
            extras: AtomicU32::new(0),
            spare: Spare::new(),
            slots: UnsafeCell::new(Slots::new(0)),
        })
    }

    pub(crate) fn step_count(&self) -> u32 {
        self.steps.len() as u32
    }

    pub(super) fn port_count(&self) -> u32 {
        self.ports.len() as u32
    }

    /// The first node of a call.
    pub(super) fn start(&self) -> u32 {
        self.step_count() + self.port_count()
    }

    /// The step's own priority.
    pub(super) fn priority_of(&self, step: u32) -> i32 {
        self.priorities.get(step as usize).copied().unwrap_or(0)
    }

    /// Whether steps have priorities of their own.
    pub(crate) fn has_priorities(&self) -> bool {
        !self.priorities.is_empty()
    }

    #[inline]
    pub(super) fn is_plain(&self, step: u32) -> bool {
        self.cell_of.is_empty() || self.cell_of[step as usize] == super::NONE
    }

    /// The graph in which steps follow each other one by one, made when it is first asked for.
    pub(crate) fn sequential(&self) -> &Shape {
        self.sequential.get_or_make(|| {
            let steps = self.step_count();
            let edges: Vec<_> = (1..steps).map(|step| (step - 1, step)).collect();
            // Whoever goes on has seen that nothing has failed.
            let goes_on = |step, next| self.is_plain(step) && self.is_plain(next);
            let (ports, users) = (self.port_count(), outermost(&self.users, self.port_count()));
            Shape::new(steps, ports, &edges, &users, (&self.costs, &self.priorities), goes_on)
        })
    }

    /// The work of a step.
    #[inline]
    pub(crate) fn step(&self, step: u32) -> &dyn ErasedStep {
        &*self.steps[step as usize]
    }

    /// Asks for the memory that a run of a step looks at.
    #[inline]
    pub(super) fn fetch(&self, step: u32) {
        fetch(&self.steps[step as usize]);
    }

    #[inline]
    pub(crate) fn runs_always(&self, step: u32) -> bool {
        self.always_run[step as usize]
    }

    /// The way of the run of this number. One by one takes no counting, and is possible once the graph for it is there.
    #[inline]
    pub(super) fn way(&self, run: u32) -> Way {
        // ORDERING: a guess.
        let way = match self.verdict.load(Ordering::Relaxed) {
            SHARED => Way::SHARED,
            ONE_BY_ONE => Way::ONE_BY_ONE,
            _ => self.trial.way(run),
        };
        let is_possible = !way.one_by_one || self.sequential.get().is_some();
        if is_possible { way } else { Way::SHARED }
    }

    /// Notes how long a run took that was tried.
    pub(super) fn note_run(&self, one_by_one: bool, took: Duration) {
        self.trial.note(one_by_one, took);
    }

    /// Makes that graph, if calls may go by it. No role is to be held, as it takes as long as the plan has steps.
    pub(crate) fn prepare(&self) {
        // ORDERING: as above.
        if self.verdict.load(Ordering::Relaxed) != SHARED {
            let _ = self.sequential();
        }
    }

    /// Looks at the times of its steps. If no steps that may be ready together are worth a second worker, they go one by one; a little
    /// that such a worker could take over is less than all save by that.
    pub(super) fn judge(&self) {
        let count = u64::from(self.step_count());
        let verdict = if !self.celled.is_empty() || !self.priorities.is_empty() {
            SHARED
        } else {
            let shared: u64 = (0..self.levels.count()).map(|level| self.shared_time(self.levels.of(level))).sum();
            let all: u64 = (0..self.step_count()).map(|step| u64::from(self.estimate(step))).sum();
            if shared < HANDED.max(COUNTED * count) {
                ONE_BY_ONE
            } else if all < TRIED && all < TRIED_EACH * count {
                UNCLEAR
            } else {
                SHARED
            }
        };
        // ORDERING: as above.
        self.verdict.store(verdict, Ordering::Relaxed);
    }

    /// How long those of these steps take that are worth a second worker, if all are ready together.
    fn shared_time(&self, steps: &[u32]) -> u64 {
        if steps.len() < 2 {
            return 0;
        }
        let times = || steps.iter().map(|step| u64::from(self.estimate(*step)));
        let all: u64 = times().sum();
        let are_handed = all >= HANDED && all >= HANDED_EACH * steps.len() as u64;
        if are_handed { all } else { times().filter(|time| *time >= LONG).sum() }
    }

    /// The graph that a call goes by.
    #[inline]
    pub(crate) fn shape(&self, sequential: bool) -> &Shape {
        if sequential { self.sequential() } else { &self.parallel }
    }

    /// Nanoseconds that the step is expected to take.
    #[inline]
    pub(crate) fn estimate(&self, step: u32) -> u32 {
        // ORDERING: a guess.
        self.estimates[step as usize].load(Ordering::Relaxed)
    }

    /// Notes how long a step took, the looks at the clock included. The time of others on the processor meanwhile counts little.
    pub(crate) fn note_time(&self, step: u32, took: Duration) {
        let nanoseconds = u32::try_from(took.as_nanos()).unwrap_or(u32::MAX).saturating_sub(self.look);
        let before = self.estimate(step);
        let now = match before {
            UNKNOWN => nanoseconds,
            _ if nanoseconds < before => nanoseconds,
            _ => before + (nanoseconds.min(before.saturating_mul(8).saturating_add(1000)) - before) / 4,
        };
        // ORDERING: a guess.
        self.estimates[step as usize].store(now, Ordering::Relaxed);
    }

    /// Counts a run that begins. Answers its number, and whether its steps are to be timed.
    pub(super) fn begin_run(&self) -> (u32, bool) {
        // ORDERING: a count alone.
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        (run, run < TIMED_FIRST || run.is_multiple_of(TIMED_OF))
    }

    /// A step's record in a trace.
    pub(crate) fn kind_of(&self, step: u32) -> Kind {
        match self.cell_of.get(step as usize) {
            Some(&cell) if cell != super::NONE && self.celled[cell as usize].hosted => Kind::Callable,
            _ => Kind::Native,
        }
    }

    /// The members of a step, by their numbers.
    #[inline]
    pub(crate) fn members_of(&self, step: u32) -> &[u32] {
        if self.of_members.is_empty() { &[] } else { self.members.of(step) }
    }

    /// Whether steps have members.
    #[inline]
    pub(crate) fn has_members(&self) -> bool {
        !self.of_members.is_empty()
    }

    /// The number of a node, if it is a member.
    fn member(&self, node: u32) -> Option<u32> {
        node.checked_sub(self.start() + 1)
    }

    /// A member, as a node.
    pub(crate) fn node_of(&self, member: u32) -> u32 {
        self.start() + 1 + member
    }

    /// The values that a member sees.
    pub(super) fn needs_of_member(&self, member: u32) -> &[u32] {
        self.needs.of(self.step_count() + member)
    }

    /// The members that fail with a node, each behind those that it needs: all of a step, or of the members of a step those that need
    /// this one.
    pub(crate) fn members_behind(&self, node: u32) -> Vec<u32> {
        let Some(first) = self.member(node) else {
            return if node < self.step_count() { self.members_of(node).to_vec() } else { Vec::new() };
        };
        let mut behind = vec![first];
        let needs = |member: u32, behind: &[u32]| {
            self.needs_of_member(member)
                .iter()
                .any(|needed| self.member(*needed).is_some_and(|needed| behind.contains(&needed)))
        };
        for member in self.members_of(self.of_members[first as usize].0) {
            if *member > first && needs(*member, &behind) {
                behind.push(*member);
            }
        }
        behind.split_off(1)
    }

    /// Those of them that are members of this step, by their places.
    pub(crate) fn places_behind(&self, step: u32, node: u32) -> Vec<usize> {
        let members = self.members_of(step);
        let place = |behind: u32| members.iter().position(|member| *member == behind);
        self.members_behind(node).into_iter().filter_map(place).collect()
    }

    /// The step's name, or its number.
    pub(crate) fn name_of(&self, step: u32) -> String {
        let name = match self.member(step) {
            Some(member) => &self.of_members[member as usize].1,
            None => &self.names[step as usize],
        };
        match name {
            Some(name) => name.to_string(),
            None => format!("{}[{step}]", self.name.as_deref().unwrap_or("replay")),
        }
    }

    /// The step, as messages name an op.
    pub(crate) fn label_of(&self, step: u32) -> String {
        format!("op '{}'", self.name_of(step))
    }

    /// Where a step was recorded; 0 if that is not known, as of members.
    pub(crate) fn place_of(&self, step: u32) -> Place {
        Place::said(self.places.get(step as usize).copied().unwrap_or(0))
    }
}
