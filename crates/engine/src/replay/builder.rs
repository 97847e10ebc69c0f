//! Putting a replay together.

use super::plan::{Celled, Parts, Plan, PortPlan, Writers};
use super::step::{Erased, ErasedStep, Step, StepKind};
use crate::EngineError;
use crate::op::Device;
use crate::var::AccessKind;
use std::marker::PhantomData;
use std::sync::Arc;

/// Instances of a replay that may be in flight, unless it is said how many.
const LIMIT: u32 = 1;

/// Marks a port among a step's needs.
const PORT: u32 = 1 << 31;
/// Marks a member of a step among steps.
const MEMBER: u32 = 1 << 30;

/// A step of a replay, by its place in the recorded order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub(crate) u32);

/// A port of a replay, by its place in the order of making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub(crate) u32);

impl StepId {
    /// Its place, counted from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl PortId {
    /// Its place, counted from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The options of a step, besides its work.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepOptions<'a> {
    /// Its kind for the pool.
    pub kind: StepKind,
    /// For messages and traces.
    pub name: Option<&'a str>,
    /// Nanoseconds that it is expected to take; 0 if that is not known. Decides the order, and never the result.
    pub cost: u32,
    /// Steps that are ready and have a higher one go first. Added to that of the push.
    pub priority: i32,
    /// Whether it runs even if its needs have failed, or the engine is being cancelled.
    pub always_run: bool,
    /// Where it runs, under a policy that tells devices apart. Plain steps run where the replay does.
    pub device: Device,
    /// Where it was recorded, in a way of the caller's: for [failures](crate::Failure::place). 0 if that is not known.
    pub place: u64,
}

struct Port {
    writers: Vec<(u32, AccessKind)>,
    /// The access of all uses to the variables behind it.
    kind: Option<AccessKind>,
    overwritten: bool,
    /// The fate of its users, if the caller has stated it.
    resolved: Option<Writers>,
}

/// A replay that is being put together: steps in their recorded order, each after its needs.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use weft_engine::{AccessKind, Engine, ReplayBuilder, ReplayOptions, Settings, StepContext, StepOptions};
///
/// let engine = Engine::new(Settings { workers: Some(2), ..Settings::default() })?;
/// let mut builder = ReplayBuilder::<Mutex<i64>>::new();
/// let total = builder.port();
/// let add = builder.step(|value: &Mutex<i64>, _: &mut StepContext<'_, '_>| {
///     *value.lock().unwrap() += 1;
///     Ok(())
/// }, &StepOptions::default());
/// let double = builder.step(|value: &Mutex<i64>, _: &mut StepContext<'_, '_>| {
///     *value.lock().unwrap() *= 2;
///     Ok(())
/// }, &StepOptions::default());
/// builder.needs(double, add)?;
/// builder.uses(add, total, AccessKind::Mutate)?;
/// builder.uses(double, total, AccessKind::Mutate)?;
/// let replay = engine.new_replay(builder)?;
///
/// let (variable, value) = (engine.new_variable(Some("total")), Arc::new(Mutex::new(1)));
/// for _ in 0..3 {
///     engine.push_replay(&replay, &[(total, &variable)], Arc::clone(&value), &ReplayOptions::default())?;
/// }
/// engine.wait_for_var(&variable)?;
/// assert_eq!(*value.lock().unwrap(), 22);
/// # Ok::<(), weft_engine::EngineError>(())
/// ```
pub struct ReplayBuilder<B> {
    name: Option<Box<str>>,
    steps: Vec<Box<dyn ErasedStep>>,
    names: Vec<Option<Box<str>>>,
    places: Vec<u64>,
    always_run: Vec<bool>,
    costs: Vec<u32>,
    priorities: Vec<i32>,
    kinds: Vec<(StepKind, Device)>,
    /// Of each member the step that does its work, and its name.
    members: Vec<(u32, Option<Box<str>>)>,
    ports: Vec<Port>,
    /// The values that a step sees, in the order of their statement: earlier steps', and with [`PORT`] those behind a
    /// port before the push. It takes over the failure of the first one.
    needs: Vec<(u32, u32)>,
    follows: Vec<(u32, u32)>,
    /// Step and port.
    uses: Vec<(u32, u32)>,
    limit: u32,
    bindings: PhantomData<fn(&B)>,
}

impl<B: Send + Sync + 'static> Default for ReplayBuilder<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Send + Sync + 'static> ReplayBuilder<B> {
    /// One without steps.
    #[must_use]
    pub fn new() -> Self {
        Self {
            name: None,
            steps: Vec::new(),
            names: Vec::new(),
            places: Vec::new(),
            always_run: Vec::new(),
            costs: Vec::new(),
            priorities: Vec::new(),
            kinds: Vec::new(),
            members: Vec::new(),
            ports: Vec::new(),
            needs: Vec::new(),
            follows: Vec::new(),
            uses: Vec::new(),
            limit: LIMIT,
            bindings: PhantomData,
        }
    }

    /// Gives it a name, for messages and traces.
    pub fn name(&mut self, name: &str) {
        self.name = Some(name.into());
    }

    /// Says how many pushes of it may be in flight at a time, 1 by default; further ones wait, and their callers do not.
    /// At least 1.
    ///
    /// With more than one, a push begins step by step while the one before it ends. The engine orders the memory behind
    /// ports, and nothing else: **scratch memory in bindings that pushes share is then used by two pushes at once.**
    /// Either each push has bindings of its own, or each instance has scratch of its own
    /// ([`StepContext::instance`](crate::StepContext::instance) says which one runs), or the limit stays 1.
    pub fn instances(&mut self, limit: u32) {
        self.limit = limit.max(1);
    }

    /// Adds a port: its variables of a push are granted, left and failed together.
    pub fn port(&mut self) -> PortId {
        let id = PortId(u32::try_from(self.ports.len()).unwrap_or(u32::MAX));
        self.ports.push(Port { writers: Vec::new(), kind: None, overwritten: false, resolved: None });
        id
    }

    /// Adds a step behind those recorded so far.
    pub fn step(&mut self, step: impl Step<B>, options: &StepOptions<'_>) -> StepId {
        let id = StepId(u32::try_from(self.steps.len()).unwrap_or(u32::MAX));
        self.steps.push(Box::new(Erased(step, PhantomData::<fn(&B)>)));
        self.names.push(options.name.map(Into::into));
        self.places.push(options.place);
        self.always_run.push(options.always_run);
        self.costs.push(options.cost);
        self.priorities.push(options.priority);
        self.kinds.push((options.kind, options.device));
        id
    }

    /// Adds a member to the step that was recorded last: an inner op, with its work done by that step. A member needs
    /// and touches things, and is needed, as a step is; it waits and ends with its step. Its needs decide whether it is
    /// [left out](Step::left_out), and [failures](crate::StepContext::fail) are its own.
    pub fn member(&mut self, of: StepId, name: Option<&str>) -> Result<StepId, EngineError> {
        if of.index() + 1 != self.steps.len() {
            let message = format!("step {} is not the last one of {}: it takes no members", of.0, self.steps.len());
            return Err(EngineError::InvalidArgument(message));
        }
        let id = StepId(MEMBER | u32::try_from(self.members.len()).unwrap_or(u32::MAX));
        self.members.push((of.0, name.map(Into::into)));
        Ok(id)
    }

    /// The step that does the work of this one; none if there is no such.
    fn doer(&self, step: StepId) -> Option<u32> {
        match step.0 & MEMBER {
            0 => (step.index() < self.steps.len()).then_some(step.0),
            _ => self.members.get((step.0 & !MEMBER) as usize).map(|(of, _)| *of),
        }
    }

    /// The steps recorded so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is no step yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    fn check(&self, later: StepId, earlier: StepId) -> Result<(), EngineError> {
        if let (Some(after), Some(before)) = (self.doer(later), self.doer(earlier))
            && (before < after || before == after && earlier.0 < later.0 && earlier.0 & MEMBER != 0)
        {
            return Ok(());
        }
        Err(EngineError::InvalidArgument(format!(
            "step {} cannot come after step {} of {}: a step comes after ones recorded before it",
            later.0,
            earlier.0,
            self.steps.len()
        )))
    }

    /// The step sees the result of an earlier one: it comes after it, and is skipped if that one fails.
    pub fn needs(&mut self, step: StepId, earlier: StepId) -> Result<(), EngineError> {
        self.check(step, earlier)?;
        self.needs.push((step.0, earlier.0));
        Ok(())
    }

    /// The step comes after an earlier one, even if that fails: it overwrites an input of that one, or uses its memory.
    pub fn follows(&mut self, step: StepId, earlier: StepId) -> Result<(), EngineError> {
        self.check(step, earlier)?;
        self.follows.push((step.0, earlier.0));
        Ok(())
    }

    /// The step touches the memory behind a port. Which of a port's users come after which others is said by
    /// [`needs`](Self::needs) and [`follows`](Self::follows), as of any steps. Uses of one port are named in the order
    /// of their steps.
    pub fn uses(&mut self, step: StepId, port: PortId, kind: AccessKind) -> Result<(), EngineError> {
        self.check_use(step, port)?;
        if kind == AccessKind::Exclusive {
            return Err(EngineError::InvalidArgument("a step reads, mutates or overwrites a port".to_owned()));
        }
        let uses = &mut self.ports[port.index()];
        if kind.sees_value() && !uses.overwritten {
            self.needs.push((step.0, PORT | port.0));
        }
        uses.overwritten |= kind == AccessKind::Overwrite;
        // Of several uses the first one decides whether the value before the push is seen.
        uses.kind = Some(match uses.kind {
            None => kind,
            Some(AccessKind::Overwrite) => AccessKind::Overwrite,
            Some(AccessKind::Read) if !kind.makes_version() => AccessKind::Read,
            Some(_) => AccessKind::Mutate,
        });
        if kind.makes_version() {
            uses.writers.push((step.0, kind));
        }
        self.uses.push((step.0, port.0));
        Ok(())
    }

    fn check_use(&self, step: StepId, port: PortId) -> Result<(), EngineError> {
        if self.doer(step).is_some() && port.index() < self.ports.len() {
            return Ok(());
        }
        Err(EngineError::InvalidArgument(format!(
            "there is no step {} or no port {} among {} steps and {} ports",
            step.0,
            port.0,
            self.steps.len(),
            self.ports.len()
        )))
    }

    /// The step touches the memory behind a port; [`resolve`](Self::resolve) states the fate of its users. `sees` says
    /// whether it looks at any value from before the push, and so is skipped if that has failed.
    pub fn touches(&mut self, step: StepId, port: PortId, sees: bool) -> Result<(), EngineError> {
        self.check_use(step, port)?;
        if sees {
            self.needs.push((step.0, PORT | port.0));
        }
        self.uses.push((step.0, port.0));
        Ok(())
    }

    /// States the fate of all users of a port, for a caller that knows them better than one by one: each may change a
    /// part. The port is as `kind` to its variables; it has failed if one of `last` has, the steps with the last
    /// changes; else it is as good as new, if they leave nothing of the old value.
    ///
    /// `writers` are all steps that change something there. Only where none of them has run, the value from before the
    /// push can be [recovered](crate::Engine::recover).
    pub fn resolve(
        &mut self,
        port: PortId,
        kind: AccessKind,
        (last, leaves_nothing): (&[StepId], bool),
        writers: &[StepId],
    ) -> Result<(), EngineError> {
        let (steps, known) = (self.steps.len(), last.iter().chain(writers).all(|step| self.doer(*step).is_some()));
        if let Some(port) = self.ports.get_mut(port.index())
            && known
        {
            port.kind = Some(kind);
            let numbers = |steps: &[StepId]| steps.iter().map(|step| step.0).collect();
            port.resolved = Some(Writers { last: numbers(last), leaves_nothing, all: numbers(writers) });
            return Ok(());
        }
        Err(EngineError::InvalidArgument(format!("there is no port {}, or no such step of {steps}", port.0)))
    }

    /// The plan. `lane` says where steps of a kind run on a device.
    pub(crate) fn plan(mut self, lane: impl Fn(StepKind, Device) -> u16) -> Result<Arc<Plan>, EngineError> {
        const MOST: usize = u32::MAX as usize >> 2;
        if self.steps.len() + self.ports.len() + self.members.len() >= MOST {
            return Err(EngineError::InvalidArgument(format!("a replay has at most {MOST} steps and ports")));
        }
        let doer = |step: u32| self.doer(StepId(step)).unwrap_or(step);
        let celled = (0..).zip(&self.kinds).filter(|(_, (kind, _))| *kind != StepKind::Plain);
        let celled = celled
            .map(|(step, &(kind, device))| Celled { step, lane: lane(kind, device), hosted: kind == StepKind::Hosted })
            .collect();
        let needs = self.needs.iter().filter(|(_, earlier)| earlier & PORT == 0);
        let pairs = needs.chain(&self.follows);
        let mut edges: Vec<_> = pairs.map(|&(step, earlier)| (doer(earlier), doer(step))).collect();
        edges.retain(|(earlier, step)| earlier != step);
        self.uses = self.uses.iter().map(|&(step, port)| (doer(step), port)).collect();
        for pairs in [&mut edges, &mut self.uses] {
            pairs.sort_unstable();
            pairs.dedup();
        }
        #[allow(clippy::cast_possible_truncation)] // few enough, here and below
        let steps = self.steps.len() as u32;
        #[allow(clippy::cast_possible_truncation)]
        let first_member = steps + self.ports.len() as u32 + 1;
        let node = |step: u32| if step & MEMBER == 0 { step } else { first_member + (step & !MEMBER) };
        for (step, earlier) in &mut self.needs {
            *earlier = if *earlier & PORT == 0 { node(*earlier) } else { steps + (*earlier & !PORT) };
            *step = if *step & MEMBER == 0 { *step } else { steps + (*step & !MEMBER) };
        }
        let port = |port: Port| {
            let mut writers = port.resolved.unwrap_or_else(|| Writers::of(&port.writers));
            writers.last.iter_mut().chain(&mut writers.all).for_each(|step| *step = node(*step));
            PortPlan { kind: port.kind.unwrap_or(AccessKind::Read), writers }
        };
        Ok(Plan::new(Parts {
            name: self.name,
            steps: self.steps,
            names: self.names,
            places: self.places,
            always_run: self.always_run,
            costs: self.costs,
            priorities: self.priorities,
            ports: self.ports.into_iter().map(port).collect(),
            members: self.members,
            needs: self.needs,
            edges,
            users: self.uses,
            celled,
            lane: lane(StepKind::Plain, Device::default()),
            limit: self.limit,
        }))
    }
}
