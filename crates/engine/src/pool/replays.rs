//! Running replays: plain steps in batches, steps with a cell one by one.

use super::run::first_line_of;
use super::seat::WorkerSeat;
use super::state::Pool;
use crate::failure::{Cause, Failure};
use crate::op::{Deliver, OpContext, OpPtr, clear_current, set_current};
use crate::quiet::{attempt, message_of, quietly};
use crate::replay::{BATCH, Batch, Call, Instance, Part, Plan, StepContext, Wanted};
use crate::sched::Order;
use crate::sync::Ordering;
use crate::trace::Ran;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

/// The time for which a worker goes on before it looks whether there is something else to do.
const SLICE: u64 = 50_000;
/// A step counts as so long at least: times may be wrong, and after a thousand steps the worker looks whether they are cancelled.
const SHORTEST: u64 = 50;
/// How often a worker looks whether the giver has counted its steps, before it counts them itself; the second figure is for parts from
/// [`LONG_PART`] on. The giver took as much for itself: where that is long, it may take longer by a good deal, too.
const COMES: u32 = 48;
const COMES_SOON: u32 = 8;
const LONG_PART: u64 = 3_000;
/// Looks of a worker for steps that others may make ready, and so many of them between looks for anything else.
const PATIENCE: u32 = 256;
const GLANCES: u32 = 8;

/// A worker's share of a replay, under way.
struct Run<'a> {
    pool: &'a Arc<Pool>,
    instance: &'a Instance,
    seat: Option<&'a WorkerSeat>,
    /// The seed with which steps are drawn among the ready ones.
    draw: Option<u64>,
}

impl Pool {
    /// Runs a part of a replay that was pulled from a queue.
    #[inline(never)] // out of the way of ops
    pub(super) fn run_part(self: &Arc<Self>, op: OpPtr, deliver: &Arc<dyn Deliver>, seat: Option<&WorkerSeat>) {
        // SAFETY: a queued part lives: its token holds the plan, or its call is pending.
        let part = unsafe { Part::of(op) };
        let instance: *const Instance = part.instance();
        let Some(step) = part.step() else {
            {
                // SAFETY: the token holds the plan.
                let run = Run { pool: self, instance: unsafe { &*instance }, seat, draw: self.seed() };
                run.token();
            }
            // SAFETY: the token has held the plan, and the instance is not looked at any more.
            return unsafe { Instance::release(instance) };
        };
        Run { pool: self, instance: part.instance(), seat, draw: None }.celled(op, part.call(), step, deliver);
    }

    /// A completion token has ended a step.
    pub(super) fn complete_part(self: &Arc<Self>, op: OpPtr, result: Result<(), Cause>) {
        // SAFETY: the step is not done, so its call is pending.
        let part = unsafe { Part::of(op) };
        if let Some(step) = part.step() {
            Run { pool: self, instance: part.instance(), seat: None, draw: None }.finish(part.call(), step, result);
        }
        self.turned();
    }

    /// Sees to it that the lanes of a plan's steps are there.
    pub(crate) fn open_lanes(&self, plan: &Plan) {
        for cell in &plan.celled {
            self.lane(cell.lane);
        }
    }

    /// The seed of the first lane, if it draws.
    fn seed(&self) -> Option<u64> {
        match self.placement.order(0) {
            Order::Drawn(seed) => Some(seed),
            Order::Ready | Order::Pushed => None,
        }
    }

    /// Whether a worker that has had its time has something else to do.
    fn has_other_work(&self, seat: Option<&WorkerSeat>) -> bool {
        let registrar = &self.registrar;
        seat.is_none_or(WorkerSeat::has_native) || registrar.has_news() || self.has_ready()
    }
}

impl Run<'_> {
    /// Runs plain steps, as long as there are any and it is this worker's turn.
    fn token(&self) {
        let (pool, instance) = (self.pool, self.instance);
        instance.pulled();
        let mut batch = Batch::new();
        let (mut spent, mut ran) = (0_u64, false);
        let workers = pool.placement().workers(instance.plan().lane, pool.workers);
        let may_share = self.seat.is_some() && self.draw.is_none() && workers > 1;
        loop {
            let ordered = pool.registrar.chooses_each();
            // Where priorities count, the next op is chosen each time.
            let over = (ordered && ran) || (spent > SLICE && pool.has_other_work(self.seat));
            let steps = if over {
                0
            } else if ordered {
                1
            } else {
                BATCH
            };
            let wanted = Wanted { steps, draw: self.draw, shares: may_share && !ordered };
            if spent > SLICE {
                spent = 0;
            }
            let todo = instance.attend(&mut batch, wanted, pool.is_cancelling(), &mut self.patience());
            if !todo.is_empty() {
                pool.registrar.carry_out(instance, todo);
                pool.wake_workers();
            }
            ran = true;
            if !batch.is_empty() {
                spent += self.batch(&mut batch);
                continue;
            }
            if wanted.shares && steps > 0 {
                instance.run_handed(
                    &mut batch,
                    || self.patience(),
                    |batch| {
                        let time = self.batch(batch);
                        spent += time;
                        let is_over = spent > SLICE && pool.has_other_work(self.seat);
                        (!is_over).then_some(if time < LONG_PART { COMES } else { COMES_SOON })
                    },
                );
            }
            if batch.is_empty() {
                return instance.plan().prepare();
            }
        }
    }

    /// Says for how long to look for steps that others may make ready: while there is nothing else to do.
    fn patience(&self) -> impl FnMut() -> bool {
        let mut looks = 0;
        move || {
            looks += 1;
            looks < PATIENCE && !(looks % GLANCES == 0 && self.pool.has_other_work(self.seat))
        }
    }

    /// Runs the steps of a batch. Answers how long they were expected to take.
    #[inline]
    fn batch(&self, batch: &mut Batch) -> u64 {
        // SAFETY: none of the batch's steps is done, so their call is pending.
        let call = unsafe { &*batch.call };
        let before = self.enter(call.op, call.op);
        let spent = if batch.manner.timed || call.traced {
            self.steps::<true>(batch, call)
        } else {
            self.steps::<false>(batch, call)
        };
        self.leave(before);
        spent
    }

    /// This thread runs something for an op, and `noted` is shown meanwhile.
    #[inline]
    fn enter(&self, op: *mut crate::op::Op, noted: *mut crate::op::Op) -> (usize, Option<OpPtr>) {
        if let Some(seat) = self.seat {
            seat.note(noted);
        }
        match OpPtr::from_raw(op) {
            Some(op) => set_current(self.pool.address(), op),
            None => unreachable!("a call in use has a cell"),
        }
    }

    #[inline]
    fn leave(&self, before: (usize, Option<OpPtr>)) {
        clear_current(before);
        if let Some(seat) = self.seat {
            seat.note(ptr::null_mut()); // from here on the op may be gone
        }
    }

    #[inline]
    fn steps<const TIMED: bool>(&self, batch: &mut Batch, call: &Call) -> u64 {
        let (instance, plan) = (self.instance, self.instance.plan());
        let (shape, bindings) = (plan.shape(batch.manner.sequential), call.bindings());
        let number = Some(instance.number);
        // How long to go on with steps behind those of the batch; not at all once a part of one has failed.
        let limit = Cell::new(if batch.manner.goes_on { SLICE } else { 0 });
        let mut spent = 0;
        batch.run(|first, doomed| {
            if doomed {
                // SAFETY: the bindings are those of the plan's type, and live until all steps are done.
                let skip = || unsafe { plan.step(first).skipped(bindings) };
                // A panic ends no other work.
                quietly(skip);
                return (first, 0);
            }
            let (mut step, mut behind) = (first, 0);
            loop {
                let clock = if TIMED { Some(Clock::start(self, call)) } else { None };
                let fails = |member: usize, cause: Cause| {
                    limit.set(0);
                    self.fail_member(call, step, member, cause)
                };
                let mut context = StepContext::new(number, None);
                if plan.has_members() {
                    context = context.failing(&fails);
                }
                // SAFETY: as above.
                let run = || unsafe { plan.step(step).run(bindings, &mut context) };
                let result = attempt(run);
                if let Some(clock) = clock {
                    clock.stop(self, plan, call, step);
                }
                spent += u64::from(plan.estimate(step)).max(SHORTEST);
                if !matches!(result, Ok(Ok(()))) {
                    let cause = result.unwrap_or_else(|panic| Err(Cause::Panic(message_of(panic))));
                    self.fail(call, step, cause.err());
                    return (step, behind);
                }
                match shape.next(step) {
                    Some(next) if spent < limit.get() => (step, behind) = (next, behind + 1),
                    _ => return (step, behind),
                }
            }
        });
        spent
    }

    /// Notes that a step failed.
    #[cold]
    fn fail(&self, call: &Call, step: u32, cause: Option<Cause>) {
        let Some(cause) = cause else { return };
        let plan = self.instance.plan();
        // SAFETY: the call is pending.
        let number = unsafe { (*call.op).number };
        if call.traced
            && let Some(recorder) = self.pool.recorder().filter(|recorder| recorder.has(number))
        {
            let text = format!("{}: {}", plan.name_of(step), first_line_of(&cause));
            recorder.failed(number, text);
        }
        self.instance.fail(step, Arc::new(Failure::new(plan.label_of(step), cause).at(plan.place_of(step))));
    }

    /// Notes that a member of a step failed. Answers those that fail with it, by their places.
    #[cold]
    fn fail_member(&self, call: &Call, step: u32, member: usize, cause: Cause) -> Vec<usize> {
        let plan = self.instance.plan();
        let Some(node) = plan.members_of(step).get(member).map(|member| plan.node_of(*member)) else {
            return Vec::new();
        };
        self.fail(call, node, Some(cause));
        plan.places_behind(step, node)
    }

    /// Runs a step that has a cell.
    fn celled(&self, op: OpPtr, call: &Call, step: u32, deliver: &Arc<dyn Deliver>) {
        let (instance, plan) = (self.instance, self.instance.plan());
        let bindings = call.bindings();
        if self.pool.is_cancelling() && !plan.runs_always(step) {
            // SAFETY: the bindings are those of the plan's type, and live until all steps are done.
            let skip = || unsafe { plan.step(step).skipped(bindings) };
            quietly(skip);
            self.finish(call, step, Err(Cause::Cancelled));
            return;
        }
        let mut context = OpContext::new(op, deliver);
        let before = self.enter(call.op, op.as_ptr());
        let clock = Clock::start(self, call);
        let fails = |member: usize, cause: Cause| self.fail_member(call, step, member, cause);
        let mut context_of_step = StepContext::new(Some(instance.number), Some(&mut context)).failing(&fails);
        // SAFETY: as above.
        let run = || unsafe { plan.step(step).run(bindings, &mut context_of_step) };
        let result = attempt(run);
        clock.stop(self, plan, call, step);
        self.leave(before);
        // A token may deliver from here on, and the call may be gone.
        if let Some(result) = context.conclude(result.unwrap_or_else(|panic| Err(Cause::Panic(message_of(panic))))) {
            self.finish(call, step, result);
        }
    }

    /// A step that has a cell is done.
    fn finish(&self, call: &Call, step: u32, result: Result<(), Cause>) {
        let instance: *const Instance = self.instance;
        if let Err(cause) = result {
            self.fail(call, step, Some(cause));
        }
        self.instance.retain();
        self.instance.finished(step);
        let todo = self.instance.attend(&mut Batch::new(), Wanted::NOTHING, self.pool.is_cancelling(), &mut || false);
        if !todo.is_empty() {
            self.pool.registrar.carry_out(self.instance, todo);
            if !self.pool.placement().is_inline() {
                self.pool.wake_workers();
            }
        }
        // SAFETY: it was retained above, and is not looked at any more.
        unsafe { Instance::release(instance) };
    }
}

/// When a step began, for estimates and for a trace.
struct Clock {
    start: Instant,
    ran: Option<Ran>,
}

impl Clock {
    fn start(run: &Run<'_>, call: &Call) -> Self {
        let thread = if call.traced { run.pool.running_thread_in_trace(run.seat) } else { None };
        Self { start: Instant::now(), ran: thread.map(Ran::begin) }
    }

    fn stop(self, run: &Run<'_>, plan: &Plan, call: &Call, step: u32) {
        plan.note_time(step, self.start.elapsed());
        // SAFETY: the call is pending: its step is not done.
        let number = unsafe { (*call.op).number };
        if let Some(mut ran) = self.ran
            && let Some(recorder) = run.pool.recorder().filter(|recorder| recorder.has(number))
        {
            ran.end();
            // SAFETY: the bindings are those of the plan's type, and live until all steps are done.
            let note = unsafe { plan.step(step).note(call.bindings()) }.or(plan.kind_of(step));
            recorder.single(note, &plan.name_of(step), Some(number), ran);
        }
    }
}

impl Pool {
    /// Whether ops that have not started are to fail.
    #[inline]
    fn is_cancelling(&self) -> bool {
        // ORDERING: as in run().
        self.watched.load(Ordering::Relaxed) > 0 && self.cancels()
    }
}
