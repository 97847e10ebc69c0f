//! Replays: built once, pushed again and again.

use super::{Core, Engine, PushOptions, Variable};
use crate::EngineError;
use crate::op::{Extra, Op, OpFlags, OpKind, current};
use crate::quiet::drop_later;
use crate::replay::{Bound, Call, Clash, InlineFailures, Plan, PortId, ReplayBuilder, StepKind};
use crate::trace::Kind;
use crate::var::AccessKind;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// The options of a replay's push.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplayOptions<'a> {
    /// As of any push. The name goes before that of the replay; where plain steps run was said when it was built, and
    /// `always_run` is each step's own.
    pub push: PushOptions<'a>,
    /// Whether the steps run one by one, in their recorded order.
    pub sequential: bool,
}

/// Ops with resolved dependencies, to be pushed again and again; made by a [`ReplayBuilder`]. Clones are the same.
pub struct Replay<B> {
    core: Arc<Core>,
    plan: Arc<Plan>,
    bindings: PhantomData<fn(&B)>,
}

impl<B> Replay<B> {
    /// Whether no push of it is pending, as far as this handle knows: there is no other one, and none is being pushed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        Arc::strong_count(&self.plan) == 1
    }
}

impl<B> Clone for Replay<B> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core), plan: Arc::clone(&self.plan), bindings: PhantomData }
    }
}

impl<B> std::fmt::Debug for Replay<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay")
            .field("name", &self.plan.name)
            .field("steps", &self.steps())
            .field("ports", &self.plan.ports.len())
            .finish_non_exhaustive()
    }
}

impl<B> Replay<B> {
    /// How many steps it has.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.plan.step_count() as usize
    }

    /// How many ports it has.
    #[must_use]
    pub fn ports(&self) -> usize {
        self.plan.ports.len()
    }

    /// Whether all its steps are [plain](StepKind::Plain), so that it can [run inline](Self::run_inline).
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.plan.celled.is_empty()
    }
}

impl<B: Send + Sync + 'static> Replay<B> {
    /// Runs the steps on this thread, in their recorded order, for a caller that has all of its ports' variables
    /// granted. Answers what failed.
    ///
    /// The engine knows nothing of it. Steps that are not plain are refused.
    pub fn run_inline(&self, bindings: &B) -> Result<InlineFailures, EngineError> {
        // SAFETY: the plan was made for bindings of this type.
        unsafe { self.plan.run_inline(std::ptr::from_ref(bindings).cast()) }
    }
}

impl Engine {
    /// Makes a replay of the builder's steps.
    pub fn new_replay<B: Send + Sync + 'static>(&self, builder: ReplayBuilder<B>) -> Result<Replay<B>, EngineError> {
        let pool = self.core.pool();
        let lane = |kind, device| match kind {
            StepKind::InOrder(queue) => pool.lane_of_queue(queue),
            _ => pool.placement().lane(device),
        };
        Ok(Replay { core: Arc::clone(&self.core), plan: builder.plan(lane)?, bindings: PhantomData })
    }

    /// Pushes a replay: all its steps, as one op.
    ///
    /// `variables` stand behind the ports, any number behind each: a port is granted, left and failed by itself, and a
    /// step waits only for the ports and steps that it needs. Two ports may have one variable behind them if both only
    /// read it. A step that fails fails the steps that need it, and nothing else.
    ///
    /// Pushing may wait for room, as [`push`](Self::push) does; a push that fails has changed nothing, and drops the
    /// bindings.
    pub fn push_replay<B: Send + Sync + 'static>(
        &self,
        replay: &Replay<B>,
        variables: &[(PortId, &Variable)],
        bindings: Arc<B>,
        options: &ReplayOptions<'_>,
    ) -> Result<(), EngineError> {
        if !self.has_room(options.push.bytes) {
            self.wait_for_room(options.push.bytes, None)?;
        }
        // A port that there is not is refused when it is bound.
        let kind = |port: PortId| replay.plan.ports.get(port.index()).map_or(AccessKind::Read, |port| port.kind);
        let variables = variables.iter().map(|&(port, variable)| (port, variable, kind(port)));
        let pushed = self.enqueue_bound(replay, variables, bindings, options);
        self.follow_up();
        pushed
    }

    /// [`push_replay`](Self::push_replay) without a look at the limits, for callers that hold a lock of their own: nothing
    /// runs on this thread before [`follow_up`](Self::follow_up), which they owe.
    ///
    /// They also state the replay's access to each variable. A caller may state a lesser access to one of the variables
    /// behind a port.
    pub fn enqueue_replay<B: Send + Sync + 'static>(
        &self,
        replay: &Replay<B>,
        variables: &[(PortId, &Variable, AccessKind)],
        bindings: Arc<B>,
        options: &ReplayOptions<'_>,
    ) -> Result<(), EngineError> {
        self.enqueue_bound(replay, variables.iter().copied(), bindings, options)
    }

    fn enqueue_bound<'v, B: Send + Sync + 'static>(
        &self,
        replay: &Replay<B>,
        variables: impl Iterator<Item = (PortId, &'v Variable, AccessKind)>,
        bindings: Arc<B>,
        options: &ReplayOptions<'_>,
    ) -> Result<(), EngineError> {
        let core = &*self.core;
        if !Arc::ptr_eq(&self.core, &replay.core) {
            drop_later(bindings);
            return Err(EngineError::WrongEngine {
                variable: format!("replay '{}'", replay.plan.name.as_deref().unwrap_or("unnamed")),
                owner: replay.core.label.clone(),
                engine: core.label.clone(),
            });
        }
        let mut call = Call::take(&replay.plan);
        if let Err(error) = self.bind(&mut call, replay, variables) {
            drop_later((call, bindings));
            return Err(error);
        }
        // One by one where each op runs at its push.
        call.sequential = options.sequential || self.core.pool().placement().is_inline();
        if call.sequential {
            let _ = replay.plan.sequential(); // made here, and not under a role
        }
        call.bind(Bound::new(bindings));
        self.enter(call, &replay.plan, &options.push)
    }

    /// Binds variables to ports.
    fn bind<'v, B>(
        &self,
        call: &mut Call,
        replay: &Replay<B>,
        variables: impl Iterator<Item = (PortId, &'v Variable, AccessKind)>,
    ) -> Result<(), EngineError> {
        let ports = replay.plan.ports.len();
        for (port, variable, kind) in variables {
            if port.index() >= ports {
                return Err(EngineError::InvalidArgument(format!(
                    "there is no port {} in a replay of {ports} ports",
                    port.index()
                )));
            }
            super::Accesses::take(&self.core, variable)?;
            variable.adopt();
            call.access(port.0, variable.node_pointer(), kind).map_err(|clash| clashing(&clash))?;
        }
        call.check().map_err(|clash| clashing(&clash))?;
        call.make_room();
        Ok(())
    }

    /// Puts a call into the ring.
    fn enter(&self, mut call: Box<Call>, plan: &Arc<Plan>, options: &PushOptions<'_>) -> Result<(), EngineError> {
        let (core, lane) = (&*self.core, plan.lane);
        let pool = core.pool();
        let inside = current(pool.address()).is_some();
        let name = options.name.or(plan.name.as_deref());
        // The replay's own name is found by the plan.
        let extra = options.name.map(|name| Box::new(Extra { name: Some(name.into()), ..Extra::default() }));
        call.bytes = options.bytes;
        (call.inside, call.generation) = (inside, core.generation());
        call.gift = plan.supply(call.generation, inside);
        call.set_priority(options.priority);
        pool.open_lanes(plan);
        let mut flags = OpFlags::default();
        let prioritised = options.priority != 0 || plan.has_priorities();
        if prioritised {
            flags.set(OpFlags::PRIORITISED);
            pool.registrar.count_prioritised();
        }
        let mut refused = None;
        core.push_cell(call.bound().len(), |cell, number| {
            let state = core.state();
            let payload = MaybeUninit::uninit();
            if state != 0 && core.is_closed() && !inside {
                refused = Some(call);
                // SAFETY: the cell is ours to fill. An op that does nothing takes the ticket.
                unsafe { Op::fill(cell, OpKind::Fence, payload, &[], OpFlags::default(), 0, 0, None) };
                return;
            }
            for (node, kind) in call.bound() {
                if kind.makes_version() {
                    // SAFETY: the caller borrows the variables.
                    unsafe { node.as_ref() }.count_version();
                }
            }
            if options.bytes > 0 {
                pool.registrar.hold_bytes(options.bytes);
            }
            if state != 0 {
                let options = PushOptions { name, ..*options };
                // SAFETY: the ticket is taken and not published, and the state was asked for since.
                unsafe { core.trace_push(state, Kind::Native, number, call.bound(), &options, lane, &mut flags) };
            }
            call.traced = flags.has(OpFlags::TRACED);
            // SAFETY: the cell is ours to fill.
            unsafe {
                Op::fill(cell, OpKind::Replay, payload, &[], flags, options.priority, lane, extra);
                call.enter(cell);
            }
        });
        if let Some(call) = refused {
            if prioritised {
                pool.registrar.uncount_prioritised();
            }
            {
                let mut turn = pool.turn();
                turn.catch_up();
                let (tracker, seat) = turn.parts();
                tracker.take_gift(seat, &call);
                turn.catch_up();
            }
            drop_later(call);
            return Err(core.closed_error());
        }
        pool.published(lane, false);
        Ok(())
    }
}

fn clashing(clash: &Clash) -> EngineError {
    // SAFETY: the caller of the push borrows the variable.
    let variable = unsafe { clash.variable.as_ref() }.label();
    let (first, second) = clash.ports;
    EngineError::InvalidArgument(format!(
        "{variable} is behind ports {first} and {second} of the replay, one of which mutates it; a replay whose ports share \
         what is mutated is another one: record it so"
    ))
}
