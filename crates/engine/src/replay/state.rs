//! The counts of the holder of an instance's role.

use super::ahead::fetch;
use super::batch::{BATCH, Batch, DOOMED, Manner, Wanted};
use super::handoff::HELD;
use super::plan::{HANDED, HANDED_EACH, LONG};
use super::ready::Ready;
use super::shape::{FEW, Shape};
use super::trial::Way;
use super::{Call, Ended, Failures, Instance, NONE, Outcome, Plan};
use crate::failure::{Cause, Failure};
use crate::op::OpFlags;
use crate::quiet::quietly;
use crate::random::{below, number};
use crate::trace::Ran;
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

/// Time that the steps of a batch may take together, so that others do not wait long for steps in a worker's hands.
const BATCH_TIME: u64 = 4_000;
/// The rest is worth a second worker if it takes so long, and each step of it so long: a token takes some 200 ns, and cache lines
/// travel.
const SHARED: u64 = 4_000;
const SHARED_EACH: u64 = 400;
/// Nanoseconds that a wide call must still last for a second worker to be called.
const GOES_ON: u64 = 50_000;

/// The work for when the role is given back.
pub(crate) struct Todo {
    /// First of the steps to be queued, linked by their nodes.
    pub(crate) celled: u32,
    /// Whether there is something that other workers should hear of.
    pub(crate) announce: bool,
    /// The call with steps to be queued; its priority.
    pub(crate) call: *const Call,
    pub(crate) priority: i32,
    /// A call that is to be put into the engine's inbox, and whether it has ended.
    pub(crate) left: *const Call,
    pub(crate) ended: *const Call,
    /// Failures that are not needed any more.
    pub(crate) failures: Option<Failures>,
}

impl Todo {
    pub(super) fn new() -> Self {
        Self {
            celled: NONE,
            announce: false,
            call: ptr::null(),
            priority: 0,
            left: ptr::null(),
            ended: ptr::null(),
            failures: None,
        }
    }

    /// Whether there is nothing to do.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.celled == NONE && !self.announce && self.left.is_null() && self.ended.is_null()
    }
}

/// See the module.
pub(super) struct State {
    call: *const Call,
    sequential: bool,
    timed: bool,
    way: Way,
    /// When the call began, with all its ports granted, if it is tried.
    tried: Option<Instant>,
    /// Nodes that are not done.
    remaining: u32,
    /// Steps in the hands of workers: a guess.
    taken: u32,
    /// Ports of the call that are granted.
    ports_granted: u32,
    /// Ranks of the ready steps.
    ready: Ready,
    ready_count: u64,
    ready_time: u64,
    /// The places of workers that were given as much as the role's holder has just taken itself, as bits.
    parted: u32,
    /// Steps and ports that failed, by node.
    failures: Failures,
    cancelled: bool,
    ran: Option<Ran>,
}

impl State {
    /// That of an instance with so many steps.
    pub(super) fn new(steps: u32) -> Self {
        Self {
            call: ptr::null(),
            sequential: false,
            timed: false,
            way: Way::SHARED,
            tried: None,
            remaining: 0,
            taken: 0,
            ports_granted: 0,
            ready: Ready::new(steps as usize),
            ready_count: 0,
            ready_time: 0,
            parted: 0,
            failures: Failures::default(),
            cancelled: false,
            ran: None,
        }
    }

    fn call(&self) -> &Call {
        // SAFETY: asked while nodes of the call are not done.
        unsafe { &*self.call }
    }

    /// See [`Instance::attend`]. Answers whether steps that others run may make more ready.
    #[inline]
    pub(super) fn turn(
        &mut self,
        instance: &Instance,
        batch: &mut Batch,
        wanted: Wanted,
        cancelling: bool,
        todo: &mut Todo,
    ) -> bool {
        let plan = instance.plan();
        self.cancelled |= cancelling;
        let events = instance.take_events();
        instance.take_failed(|failed| self.note_failure(plan, failed));
        if events != NONE {
            self.count_events(instance, events, wanted, todo);
        }
        let mut soon = 0;
        if batch.is_done() {
            self.count_batch(instance, plan.shape(self.sequential), batch, todo);
            soon = std::mem::take(&mut self.parted);
        }
        let handed_back = instance.handoff.done(soon);
        if handed_back != 0 {
            self.count_handed_back(instance, handed_back, todo);
        }
        if wanted.steps > 0 && batch.is_empty() && self.ready_count > 0 {
            self.fill(instance, batch, wanted, todo);
        } else {
            todo.announce |= self.ready_count > 0;
        }
        if todo.announce && !self.call.is_null() {
            todo.priority = self.call().priority();
        }
        if self.remaining == 0 && !self.call.is_null() {
            self.end(plan, todo);
        }
        wanted.shares && wanted.steps > 0 && self.taken > 0
    }

    #[inline(never)]
    fn count_events(&mut self, instance: &Instance, last: u32, wanted: Wanted, todo: &mut Todo) {
        let plan = instance.plan();
        let steps = plan.step_count();
        // The first one first: a call begins before its ports are granted.
        let (mut at, mut first, mut ports) = (last, NONE, 0);
        while at != NONE {
            ports += u32::from(at >= steps && at != plan.start());
            // SAFETY: events that were taken are the role's.
            let next =
                instance.nodes[at as usize].next.with_mut(|next| unsafe { std::mem::replace(&mut *next, first) });
            (first, at) = (at, next);
        }
        // Posted before the events were.
        let mut behind = instance.take_behind();
        while first != NONE {
            let node = first;
            // SAFETY: as above.
            first = instance.nodes[node as usize].next.with(|next| unsafe { *next });
            if node == plan.start() {
                self.begin(instance, ports == plan.port_count() && wanted.goes_by_time());
            }
            self.ports_granted += u32::from(node >= steps && node != plan.start());
            self.remaining -= std::mem::take(&mut behind);
            let shape = plan.shape(self.sequential);
            if node < steps || node == plan.start() {
                self.taken = self.taken.saturating_sub(u32::from(node < steps));
                self.done(instance, shape, node, todo);
            } else {
                if let Some(failure) = self.call().take_incoming(node - steps) {
                    self.failures.skipped(node, failure);
                }
                self.count_down(instance, shape, node, todo);
            }
        }
        // Nothing but the start is done.
        let is_new = self.remaining == plan.start() && self.ports_granted == plan.port_count();
        if is_new && self.taken == 0 && wanted.goes_by_time() && !self.call().sequential {
            if self.way.one_by_one && !self.sequential {
                self.begin_anew(instance, todo);
            }
            self.tried = (self.way.is_tried && !self.timed).then(Instant::now);
        }
    }

    /// Has a call of which no step was taken go one by one, now that all its ports are granted.
    #[inline(never)]
    fn begin_anew(&mut self, instance: &Instance, todo: &mut Todo) {
        let plan = instance.plan();
        self.ready.clear();
        (self.ready_count, self.ready_time) = (0, 0);
        self.go_by(instance, true);
        for node in plan.step_count()..=plan.start() {
            self.count_down(instance, plan.shape(true), node, todo);
        }
    }

    /// Sets all counts for a call that goes by this graph.
    fn go_by(&mut self, instance: &Instance, sequential: bool) {
        self.sequential = sequential;
        for (node, count) in instance.nodes.iter().zip(instance.plan().shape(sequential).counts()) {
            // SAFETY: the role is ours, and no node of the call was done but its start and its ports.
            node.count.with_mut(|place| unsafe { *place = count });
        }
    }

    /// Counts the steps that were run at these places.
    #[inline(never)] // out of the way of those who are alone
    fn count_handed_back(&mut self, instance: &Instance, mut places: u32, todo: &mut Todo) {
        let shape = instance.plan().shape(self.sequential);
        // Noted before they were handed back.
        instance.take_failed(|failed| self.note_failure(instance.plan(), failed));
        while places != 0 {
            // SAFETY: the role is ours, and these places are done.
            if let Some(mut batch) = unsafe { instance.handoff.take_done(places.trailing_zeros() as usize) } {
                self.count_batch(instance, shape, &mut batch, todo);
            }
            places &= places - 1;
        }
    }

    /// A call begins. `free` says that nothing stands in the way of any order of its steps.
    fn begin(&mut self, instance: &Instance, free: bool) {
        let plan = instance.plan();
        self.call = instance.call_that_begins();
        let traced = self.call().traced;
        let run;
        (run, self.timed) = plan.begin_run();
        (self.way, self.tried) = (plan.way(run), None);
        let sequential = self.call().sequential || (free && self.way.one_by_one);
        if sequential != self.sequential {
            self.go_by(instance, sequential);
        }
        (self.remaining, self.taken, self.ports_granted) = (plan.start() + 1, 0, 0);
        self.ran = traced.then(|| Ran::begin(u16::MAX));
    }

    /// Notes that a step failed: for those that need it, and for the engine to report.
    #[cold]
    fn note_failure(&mut self, plan: &Plan, failed: Box<super::Failed>) {
        self.failures.failed(failed.step, Arc::clone(&failed.failure));
        for member in plan.members_behind(failed.step) {
            self.failures.left_out(plan.node_of(member), &failed.failure);
            self.call().note_ended(Ended::Skipped);
        }
        if matches!(failed.failure.cause(), Cause::Cancelled) {
            self.call().note_ended(Ended::Cancelled);
        } else {
            self.call().note_ended(Ended::Failed);
            self.call().told.put(failed);
        }
    }

    /// The steps of a batch are done. Those behind them are written side by side before they are counted down, and those that
    /// this makes ready before they are taken in: how many there are, and which become ready, no processor can foresee.
    #[inline]
    fn count_batch(&mut self, instance: &Instance, shape: &Shape, batch: &mut Batch, todo: &mut Todo) {
        self.remaining -= batch.take_behind();
        let (mut next, mut count) = ([NONE; BATCH * FEW], 0);
        for &step in batch.steps() {
            self.remaining -= 1;
            match shape.successors.few(step) {
                Some((few, behind)) => {
                    next[count..count + FEW].copy_from_slice(few);
                    count += behind;
                }
                None => self.count_down(instance, shape, step, todo),
            }
        }
        self.taken = self.taken.saturating_sub(batch.size());
        batch.count = 0;
        let next = &next[..count];
        if shape.is_large() {
            next.iter().for_each(|next| fetch(&instance.nodes[*next as usize]));
        }
        let (mut ready, mut count) = ([NONE; BATCH * FEW], 0);
        for &next in next {
            // SAFETY: counts are the role's.
            let is_ready = instance.nodes[next as usize].count.with_mut(|count| unsafe {
                let left = (*count).left - 1;
                (*count).left = if left == 0 { (*count).all } else { left };
                left == 0
            });
            ready[count] = next;
            count += usize::from(is_ready);
        }
        ready[..count].iter().for_each(|node| self.reached(instance, shape, *node, todo));
    }

    /// A node is done.
    #[inline]
    fn done(&mut self, instance: &Instance, shape: &Shape, node: u32, todo: &mut Todo) {
        self.remaining -= 1;
        self.count_down(instance, shape, node, todo);
    }

    #[inline]
    fn count_down(&mut self, instance: &Instance, shape: &Shape, node: u32, todo: &mut Todo) {
        for &next in shape.successors.of(node) {
            // SAFETY: counts are the role's.
            let ready = instance.nodes[next as usize].count.with_mut(|count| unsafe {
                (*count).left -= 1;
                let ready = (*count).left == 0;
                if ready {
                    (*count).left = (*count).all;
                }
                ready
            });
            if ready {
                self.reached(instance, shape, next, todo);
            }
        }
    }

    /// Nothing is left that a node waits for.
    #[inline]
    fn reached(&mut self, instance: &Instance, shape: &Shape, node: u32, todo: &mut Todo) {
        let plan = instance.plan();
        if node >= plan.step_count() {
            self.leave_port(plan, node - plan.step_count(), todo);
        } else if plan.is_plain(node) || self.is_doomed(plan, node) {
            self.put_ready(instance, shape, node);
        } else {
            if !self.failures.is_empty() {
                self.leave_out(plan, node);
            }
            // SAFETY: a step that was just reached is the role's.
            instance.nodes[node as usize].next.with_mut(|next| unsafe { *next = todo.celled });
            (todo.celled, todo.call) = (node, self.call);
        }
    }

    /// Tells a step that is about to run which of its members are not to, and notes why.
    #[cold]
    fn leave_out(&mut self, plan: &Plan, step: u32) {
        for (at, member) in plan.members_of(step).iter().enumerate() {
            let needs = plan.needs_of_member(*member);
            let Some(failure) = self.failures.first_of(needs) else { continue };
            self.failures.skipped(plan.node_of(*member), failure);
            self.call().note_ended(Ended::Skipped);
            // SAFETY: the bindings are those of the plan's type, and live until all steps are done.
            quietly(|| unsafe { plan.step(step).left_out(self.call().bindings(), at) });
        }
    }

    fn leave_port(&mut self, plan: &Plan, port: u32, todo: &mut Todo) {
        self.remaining -= 1;
        let outcome = if self.failures.is_empty() { Outcome::Kept } else { self.outcome(plan, port) };
        if self.call().leave(port, outcome) {
            todo.left = self.call;
        }
    }

    /// The fate of a port: the failure of the last step that changed it, unless one behind it overwrote it.
    #[cold]
    fn outcome(&self, plan: &Plan, port: u32) -> Outcome {
        plan.ports[port as usize].writers.outcome(&self.failures)
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // as take()
    fn put_ready(&mut self, instance: &Instance, shape: &Shape, step: u32) {
        if shape.is_large() {
            shape.fetch(step);
        }
        // SAFETY: counts are the role's.
        let rank = instance.nodes[step as usize].count.with(|count| unsafe { (*count).rank });
        self.ready.put(rank);
        self.ready_count += 1;
        self.ready_time += u64::from(instance.plan().estimate(step));
    }

    /// From where to look for a ready step, drawn anew for each number of nodes that are left.
    #[cold]
    fn drawn_rank(&self, plan: &Plan, seed: u64) -> u32 {
        // SAFETY: steps are ready, so the call is pending.
        let call = unsafe { (*self.call().op).number };
        let random = number(seed, u64::from(call) << 32 | u64::from(self.remaining));
        #[allow(clippy::cast_possible_truncation)] // a rank
        let rank = below(plan.step_count() as usize, random) as u32;
        rank
    }

    /// Takes steps that are ready, those of the highest priority first, and leaves a part to others if that is worth it.
    #[inline]
    fn fill(&mut self, instance: &Instance, batch: &mut Batch, wanted: Wanted, todo: &mut Todo) {
        let plan = instance.plan();
        // What fails, or is cancelled, is noted as it is taken, and is not taken back.
        let is_fine = wanted.shares
            && self.ready_time >= HANDED
            && self.ready_time >= self.ready_count * HANDED_EACH
            && !self.cancelled
            && self.failures.is_empty();
        let waiting = if is_fine { instance.handoff.waiting() } else { 0 };
        let calls = is_fine && waiting == 0 && self.is_worth_calling(plan) && !instance.is_announced();
        let mut most = BATCH_TIME;
        if waiting != 0 {
            self.hand_over(instance, waiting);
        } else if calls {
            most = most.min(self.ready_time / 2);
        }
        let time = self.take(instance, batch, wanted, most);
        if self.ready_count > 0 {
            let shared = self.ready_time >= SHARED && self.ready_time >= self.ready_count * SHARED_EACH;
            todo.announce |= time >= LONG || shared || calls;
        } else {
            self.ready_time = 0;
        }
    }

    /// Whether steps that are ready are worth another worker: the call is wide, and goes on for long enough.
    #[inline(never)]
    fn is_worth_calling(&self, plan: &Plan) -> bool {
        let each = self.ready_time / self.ready_count;
        plan.shape(self.sequential).is_wide && each * u64::from(self.remaining) >= GOES_ON
    }

    /// Gives equal parts of the ready steps to the workers that wait at these places, as far as each is worth it.
    #[inline(never)]
    fn hand_over(&mut self, instance: &Instance, mut places: u32) {
        let workers = 1 + u64::from(places.count_ones());
        let part = self.ready_time / workers.min(self.ready_time / (HANDED / 2));
        let most = part.min(BATCH_TIME);
        while places != 0 && self.ready_time > most && self.ready_count > 1 {
            let mut batch = Batch::new();
            self.take(instance, &mut batch, Wanted { steps: HELD, ..Wanted::NOTHING }, most);
            let place = places.trailing_zeros();
            // SAFETY: the role is ours, and a worker has waited there.
            if unsafe { instance.handoff.give(place as usize, &batch) } {
                self.parted |= 1 << place;
            } else {
                let shape = instance.plan().shape(self.sequential);
                batch.steps().iter().for_each(|step| self.put_ready(instance, shape, *step));
                self.taken -= batch.size();
            }
            places &= places - 1;
        }
    }

    /// Takes ready steps that take about so long together, or one.
    #[inline(always)]
    #[allow(clippy::inline_always)] // a tenth of the price of a step
    fn take(&mut self, instance: &Instance, batch: &mut Batch, wanted: Wanted, most: u64) -> u64 {
        let plan = instance.plan();
        let shape = plan.shape(self.sequential);
        let (wanted, draw, mut time) = (wanted.steps.min(BATCH), wanted.draw, 0);
        let from = draw.map_or(0, |seed| self.drawn_rank(plan, seed));
        self.ready.take_while(from, |rank| {
            if batch.count == wanted {
                return false;
            }
            let step = shape.step_of(rank);
            let estimate = u64::from(plan.estimate(step));
            if batch.count > 0 && (estimate >= LONG || time + estimate / 2 > most) {
                return false;
            }
            batch.steps[batch.count] = step;
            batch.count += 1;
            time += estimate;
            true
        });
        self.ready_count -= batch.count as u64;
        self.ready_time = self.ready_time.saturating_sub(time);
        self.taken += batch.size();
        let is_fine = !self.cancelled && self.failures.is_empty();
        if !is_fine {
            for at in 0..batch.count {
                if self.dooms(plan, batch.steps[at]) {
                    batch.steps[at] |= DOOMED;
                } else {
                    self.leave_out(plan, batch.steps[at]);
                }
            }
        }
        if shape.is_large() {
            batch.steps().iter().for_each(|step| plan.fetch(step & !DOOMED));
            batch.steps().iter().for_each(|step| shape.fetch_successors(step & !DOOMED));
        }
        (batch.done, batch.call) = (false, self.call);
        // One by one, a step may need any of those before it.
        let goes_on = draw.is_none() && (is_fine || !self.sequential);
        batch.manner = Manner { timed: self.timed, sequential: self.sequential, goes_on };
        time
    }

    /// Whether a step is to be skipped.
    #[inline]
    fn is_doomed(&self, plan: &Plan, step: u32) -> bool {
        !self.failures.is_empty() && !plan.always_run[step as usize] && self.failure_for(plan, step).is_some()
    }

    /// The failure that a step would see: of several, that of the first one named.
    fn failure_for(&self, plan: &Plan, step: u32) -> Option<Arc<Failure>> {
        self.failures.first_of(plan.needs.of(step))
    }

    /// The same as [`is_doomed`](Self::is_doomed), noting why: those that need it are to be skipped for that, too.
    #[cold]
    fn dooms(&mut self, plan: &Plan, step: u32) -> bool {
        if plan.always_run[step as usize] {
            return false;
        }
        let (failure, ended) = match self.failure_for(plan, step) {
            Some(failure) => (failure, Ended::Skipped),
            None if self.cancelled => (Arc::new(Failure::new(plan.label_of(step), Cause::Cancelled)), Ended::Cancelled),
            None => return false,
        };
        self.call().note_ended(ended);
        for member in plan.members_of(step) {
            self.failures.skipped(plan.node_of(*member), Arc::clone(&failure));
        }
        self.failures.skipped(step, failure);
        true
    }

    /// All nodes are done.
    fn end(&mut self, plan: &Plan, todo: &mut Todo) {
        if self.timed {
            plan.judge();
        }
        if let Some(began) = self.tried.take()
            && self.failures.is_empty()
        {
            plan.note_run(self.sequential, began.elapsed());
        }
        if let Some(mut ran) = self.ran.take() {
            ran.prolong();
            // SAFETY: the call has not ended yet, and its cell is in no lane's list.
            unsafe {
                debug_assert!((*self.call().op).flags.has(OpFlags::TRACED));
                (*self.call().op).last = crate::op::Last { ran };
            }
        }
        if !self.failures.is_empty() {
            todo.failures = Some(std::mem::take(&mut self.failures));
        }
        todo.ended = std::mem::replace(&mut self.call, ptr::null());
    }
}
