//! Waiting for variables, and for everything.

use super::core::trace_in;
use super::stall::Listed;
use super::{Core, Engine, Variable};
use crate::EngineError;
use crate::failure::Failure;
use crate::op::{Extra, Op, OpFlags, OpKind, OpPtr, current};
use crate::pool::{BlockedWorker, Crowd, Guest, Sleeping};
use crate::replay;
use crate::sync::{Parker, spin_hint};
use crate::trace::{Note, Outcome};
use crate::var::{AccessKind, VarNode};
use crate::waiter::Waiter;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Called now and then while a wait lasts; answers whether to go on waiting.
pub type Tick<'a> = &'a mut dyn FnMut() -> bool;

/// How long a wait sleeps between two ticks, and without ticks between two looks whether a worker is still to be started.
const TICK: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_secs(1);
/// How long a wait inside an op goes on while the system gives no thread that could run what it waits for.
const NO_THREAD: Duration = Duration::from_secs(2);
/// Looks before a waiter sleeps, some 10 us together, and the one at which it helps.
const LOOKS: u32 = 128;
const HELP_AT: u32 = 48;
/// The look at which it yields if its last waits were in the way of the answering thread.
const YIELD_AT: u32 = 4;
const PAUSES: u32 = 8;
/// Of so many questions whether it is called away, a waiter looks at the clock for one.
const ASKS: u32 = 16;

/// How to wait.
#[derive(Default)]
pub struct Wait<'a> {
    /// How long at most.
    pub timeout: Option<Duration>,
    /// Called every 50 ms.
    pub tick: Option<Tick<'a>>,
    /// Its record in a trace.
    pub note: Note,
    /// Where it waits, in the caller's words, for a [`StallReport`](crate::StallReport); 0 if that is not known.
    pub place: u64,
}

/// The ticks of a wait that is made of many, each of which may be too short for one.
pub(super) struct Ticks(Instant);

impl Ticks {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }

    /// Calls the tick if it is due.
    pub(super) fn go_on(&mut self, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        if self.0.elapsed() < TICK {
            return Ok(());
        }
        self.0 = Instant::now();
        if wait.tick.as_mut().is_none_or(|tick| tick()) { Ok(()) } else { Err(EngineError::Interrupted) }
    }
}

thread_local! {
    static PARKER: Parker = Parker::new();
    static CROWD: Cell<Crowd> = const { Cell::new(Crowd::new()) };
}

/// Has another worker work in the place of this thread, if that is a worker, which waits outside of the engine: in an event loop, say.
///
/// Its end, on any thread, ends that.
pub struct StandIn {
    _blocked: BlockedWorker,
}

impl StandIn {
    /// None on a thread that is no worker; an error if too many workers wait already.
    pub fn begin() -> Result<Option<Self>, EngineError> {
        Ok(blocked_worker()?.map(|blocked| Self { _blocked: blocked }))
    }
}

fn blocked_worker() -> Result<Option<BlockedWorker>, EngineError> {
    BlockedWorker::enter().map_err(|blocked| EngineError::TooManyWaits { blocked })
}

/// Waits for the answer of a waiter that `enlist` makes known.
pub(super) fn park_until(
    core: &Core,
    wait: &mut Wait<'_>,
    (what, name, variable): (&str, &'static str, Option<NonNull<VarNode>>),
    enlist: impl FnOnce(&Arc<Waiter>, &mut Guest<'_>) -> Result<(), EngineError>,
) -> Result<Arc<Waiter>, EngineError> {
    PARKER.with(|parker| {
        let start = Instant::now();
        let deadline = wait.timeout.and_then(|timeout| start.checked_add(timeout));
        let waiter = Waiter::new(parker);
        let until = [deadline, wait.tick.as_ref().map(|_| start + TICK)].into_iter().flatten().min();
        let mut recall = Recall { waiter: &waiter, until, asked: 0, left: false };
        enlist(&waiter, &mut |long| recall.is_due(long))?;
        for look in 0..LOOKS {
            if waiter.is_done() {
                return Ok(waiter);
            }
            if look == HELP_AT {
                core.pool().help(&mut |long| recall.is_due(long));
            }
            if look == YIELD_AT && CROWD.get().is_suspected() {
                CROWD.set(CROWD.get().after_yield());
                continue;
            }
            (0..PAUSES).for_each(|_| spin_hint());
        }
        CROWD.set(CROWD.get().after_spin());
        // No other thread may be free to register the awaited op, however much was pushed before it.
        core.pool().turn().catch_up();
        core.pool().help(&mut |long| recall.is_due(long));
        if waiter.is_done() {
            return Ok(waiter);
        }
        let _listed =
            Listed::new(core, Sleeping { what: name, subject: variable.map(NonNull::cast), place: wait.place });
        let stand_in = blocked_worker()?;
        let mut stuck = None;
        loop {
            let next = Instant::now() + if wait.tick.is_some() { TICK } else { LOOK };
            if waiter.sleep(parker, Some(deadline.map_or(next, |deadline| deadline.min(next)))) {
                return Ok(waiter);
            }
            core.pool().start_missing();
            if let Some(blocked) = stand_in.as_ref().and_then(BlockedWorker::among_all) {
                if stuck.get_or_insert_with(Instant::now).elapsed() > NO_THREAD {
                    return give_up(&waiter, EngineError::TooManyWaits { blocked });
                }
            } else {
                stuck = None;
            }
            if let Some(tick) = &mut wait.tick
                && !tick()
            {
                return give_up(&waiter, EngineError::Interrupted);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let after = wait.timeout.unwrap_or_default();
                return give_up(&waiter, EngineError::Timeout { what: what.to_owned(), after });
            }
        }
    })
}

/// The calls of a waiting thread away from ops that it carries out meanwhile: an answer, or the time for its own
/// affairs. Signals are not among these: their handler may wait, too, and the thread holds an op.
struct Recall<'a> {
    waiter: &'a Waiter,
    until: Option<Instant>,
    asked: u32,
    /// Whether it was called away: the rest of its op is the worker's.
    left: bool,
}

impl Recall<'_> {
    /// Whether it is called away, by its own affairs or by an op that turned out to be long.
    fn is_due(&mut self, long: bool) -> bool {
        self.asked = self.asked.wrapping_add(1);
        let looks_at_clock = self.asked.is_multiple_of(ASKS);
        self.left |= long
            || self.waiter.is_done()
            || (looks_at_clock && self.until.is_some_and(|until| Instant::now() >= until));
        self.left
    }
}

/// The last look before a wait fails.
fn give_up(waiter: &Arc<Waiter>, error: EngineError) -> Result<Arc<Waiter>, EngineError> {
    let done = waiter.is_done() && !matches!(error, EngineError::Interrupted);
    if done { Ok(Arc::clone(waiter)) } else { Err(error) }
}

/// Many failures as one error.
pub(super) fn raise_all(mut failures: Vec<Arc<Failure>>) -> Result<(), EngineError> {
    match failures.len() {
        0 => Ok(()),
        1 => Err(EngineError::Failed(failures.remove(0))),
        _ => Err(EngineError::ManyFailed(failures)),
    }
}

impl Core {
    /// Pushes a wait. Answers its op, and its number if it is recorded.
    fn push_wait(
        &self,
        kind: OpKind,
        accesses: &[(NonNull<VarNode>, AccessKind)],
        waiter: &Arc<Waiter>,
        asker: Option<OpPtr>,
        note: (Note, &str),
    ) -> (*mut Op, Option<u64>) {
        let (mut probe, mut recorded) = (std::ptr::null_mut(), None);
        let extra = Box::new(Extra { waiter: Some(Arc::clone(waiter)), asker, ..Extra::default() });
        self.push_cell(accesses.len(), |cell, number| {
            probe = cell;
            // SAFETY: the ticket is taken and not published.
            recorded = unsafe { self.trace_wait(number, accesses, note) };
            let (payload, flags) = (MaybeUninit::uninit(), OpFlags::default());
            // SAFETY: the cell is ours to fill; a wait has no payload.
            unsafe { Op::fill(cell, kind, payload, accesses, flags, 0, 0, Some(extra)) };
        });
        (probe, recorded)
    }
}

impl Engine {
    /// Waits until every mutation of the variable pushed before has finished.
    pub fn wait_for_var(&self, variable: &Variable) -> Result<(), EngineError> {
        self.wait_for_var_with(variable, &mut Wait::default())
    }

    /// [`wait_for_var`](Self::wait_for_var), for a limited time or with ticks.
    pub fn wait_for_var_with(&self, variable: &Variable, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        if self.is_done(variable)? {
            return Ok(());
        }
        // A failure that is there already need not be waited for.
        let node = variable.node();
        if node.completed_version() >= node.version()
            && let Some(failure) = self.failure(variable)
        {
            failure.report();
            return Err(EngineError::Failed(failure));
        }
        self.wait_on(variable, AccessKind::Read, wait)
    }

    /// Waits until every access of the variable pushed before, reads included, has finished.
    pub fn wait_to_write(&self, variable: &Variable) -> Result<(), EngineError> {
        self.wait_to_write_with(variable, &mut Wait::default())
    }

    /// [`wait_to_write`](Self::wait_to_write), for a limited time or with ticks.
    pub fn wait_to_write_with(&self, variable: &Variable, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        self.check(variable)?;
        self.wait_on(variable, AccessKind::Exclusive, wait)
    }

    /// Whether a wait for the variable would return at once and raise nothing.
    #[inline]
    pub fn is_done(&self, variable: &Variable) -> Result<bool, EngineError> {
        self.check(variable)?;
        Ok(variable.is_ready() && !variable.node().failed())
    }

    /// The failure of the variable's last finished version.
    #[must_use]
    pub fn failure(&self, variable: &Variable) -> Option<Arc<Failure>> {
        variable.adopt();
        let pool = self.core.pool();
        let mut turn = pool.turn();
        turn.settle_kept();
        let failure = variable.node().failure(turn.parts().1);
        drop(turn);
        failure
    }

    /// Refuses another engine's variable.
    pub(super) fn check_owner(&self, variable: &Variable) -> Result<(), EngineError> {
        if self.owns(variable) {
            return Ok(());
        }
        Err(EngineError::WrongEngine {
            variable: variable.label(),
            owner: variable.engine_name().to_owned(),
            engine: self.name().to_owned(),
        })
    }

    fn check(&self, variable: &Variable) -> Result<(), EngineError> {
        self.check_owner(variable)?;
        if variable.is_deleted() {
            return Err(EngineError::VariableDeleted { variable: variable.label() });
        }
        variable.adopt();
        if let Some(op) = current(self.core.pool().address())
            // A replay leaves its variables one by one: the walk below knows which it still has.
            && !Op::is_replay(op)
            && Op::touches(op.as_ptr(), variable.node_pointer())
        {
            // SAFETY: this thread runs the op.
            let label = unsafe { replay::label(op) };
            return Err(EngineError::Deadlock {
                reason: format!("{label} waits for {}, which it holds itself", variable.label()),
                ops: vec![label.clone(), label],
            });
        }
        Ok(())
    }

    fn wait_on(&self, variable: &Variable, kind: AccessKind, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        let core = &*self.core;
        let pool = core.pool();
        let node = variable.node_pointer();
        let (mut listed, mut recorded) = (None, None);
        let name = if kind == AccessKind::Read { "wait_for_var" } else { "wait_to_write" };
        let shown = (wait.note, name);
        let outcome = park_until(core, wait, (&variable.label(), name, Some(node)), |waiter, guest| {
            listed = Some(Arc::clone(waiter));
            let asker = current(pool.address());
            let probe;
            (probe, recorded) = core.push_wait(OpKind::Probe, &[(node, kind)], waiter, asker, shown);
            if let Some(asker) = asker {
                self.refuse_cycle(variable, asker, probe, waiter)?;
            }
            pool.asked(guest);
            // No other thread may be free to register it.
            if !waiter.is_done() && kind == AccessKind::Exclusive {
                pool.turn().catch_up();
            }
            Ok(())
        });
        let waiter = match (outcome, listed) {
            (Ok(waiter), _) => waiter,
            (Err(error), Some(waiter)) => {
                let mut turn = pool.turn();
                turn.catch_up();
                let (tracker, seat) = turn.parts();
                tracker.withdraw(seat, node, &waiter);
                turn.catch_up();
                drop(turn);
                core.trace_waited(recorded, Outcome::Cancelled);
                return Err(error);
            }
            (Err(error), None) => return Err(error),
        };
        let failure = waiter.take();
        core.trace_waited(recorded, if failure.is_none() { Outcome::Done } else { Outcome::Failed });
        match failure {
            None => Ok(()),
            Some(failure) => {
                failure.report();
                Err(EngineError::Failed(failure))
            }
        }
    }

    /// Refuses a wait inside an op that could never end.
    fn refuse_cycle(
        &self,
        variable: &Variable,
        asker: OpPtr,
        probe: *mut Op,
        waiter: &Arc<Waiter>,
    ) -> Result<(), EngineError> {
        let pool = self.core.pool();
        let mut turn = pool.turn();
        turn.catch_up();
        let (tracker, seat) = turn.parts();
        let cycle = match OpPtr::from_raw(probe) {
            // An answered probe is gone.
            Some(probe) if !waiter.is_done() => tracker.cycle(seat, asker, probe),
            _ => None,
        };
        turn.catch_up(); // with what the walk has let go on
        drop(turn);
        match cycle {
            None => Ok(()),
            Some(ops) => {
                let reason = format!("{} waits for {}", ops[0], variable.label());
                Err(EngineError::Deadlock { reason, ops })
            }
        }
    }

    /// Refuses waits that an op of this engine must not make.
    pub(super) fn refuse_inside_op(&self, reason: &str) -> Result<(), EngineError> {
        match current(self.core.pool().address()) {
            None => Ok(()),
            Some(op) => {
                // SAFETY: this thread runs the op.
                let label = unsafe { replay::label(op) };
                Err(EngineError::Deadlock { reason: reason.to_owned(), ops: vec![label.clone(), label] })
            }
        }
    }

    /// Waits until all ops pushed before have finished, and raises the untold failures of ops, pushed before or not.
    pub fn wait_for_all(&self) -> Result<(), EngineError> {
        self.wait_for_all_with(&mut Wait::default())
    }

    /// [`wait_for_all`](Self::wait_for_all), for a limited time or with ticks.
    pub fn wait_for_all_with(&self, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        self.drain_with(wait)?;
        raise_all(self.take_failures())
    }

    /// Waits until all ops pushed before have finished, and leaves their failures for others to raise.
    pub fn drain_with(&self, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        self.refuse_inside_op("an op waits for all ops, and is one of them")?;
        self.drain(wait)
    }

    /// Waits until all ops pushed before have finished.
    pub(super) fn drain(&self, wait: &mut Wait<'_>) -> Result<(), EngineError> {
        let pool = self.core.pool();
        // All tickets are settled, so nothing is to be waited for; a trace shows the wait nevertheless.
        if pool.registrar.pending() == 0 && trace_in(self.core.state()) == 0 {
            return Ok(());
        }
        let (note, mut recorded, mut listed) = ((wait.note, "wait_for_all"), None, None);
        let what = format!("the work of {}", self.name());
        let outcome = park_until(&self.core, wait, (&what, note.1, None), |waiter, guest| {
            listed = Some(Arc::clone(waiter));
            (_, recorded) = self.core.push_wait(OpKind::Fence, &[], waiter, None, note);
            if pool.lends() {
                pool.asked(guest);
            } else {
                pool.pushed(0, false);
            }
            Ok(())
        });
        if let (Err(_), Some(waiter)) = (&outcome, listed) {
            let mut turn = pool.turn();
            turn.catch_up(); // it is registered
            turn.parts().0.epochs.withdraw(&waiter);
        }
        self.core.trace_waited(recorded, if outcome.is_ok() { Outcome::Done } else { Outcome::Cancelled });
        outcome.map(drop)
    }

    /// The untold failures; they count as told from now on.
    #[must_use]
    pub fn take_failures(&self) -> Vec<Arc<Failure>> {
        let pool = self.core.pool();
        let mut turn = pool.turn();
        let failures = turn.parts().0.report();
        drop(turn);
        failures
    }
}
