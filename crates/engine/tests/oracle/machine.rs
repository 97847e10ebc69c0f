//! Runs a program on an engine and watches it.

use super::model::{Model, Outcome, made, seen, term};
use super::program::{Body, End, LOG, Nested, Op, Pace, Program, SUM, Step};
use std::cell::UnsafeCell;
use std::collections::BTreeSet;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, OnceLock};
use weft_engine::{
    AccessKind, Accesses, Cause, Completion, Engine, EngineError, Failure, InOrder, OpContext, Payload, PushOptions,
    Recoverable, Variable,
};

/// What completes ops elsewhere: one thread that does what it is sent.
pub(crate) type Elsewhere = Sender<Box<dyn FnOnce() + Send>>;

/// A value, and who is at it.
#[derive(Default)]
struct Place {
    variable: OnceLock<Variable>,
    value: UnsafeCell<u64>,
    /// Readers, or -1 for a mutation.
    users: AtomicI32,
}

/// One run of a program.
pub(crate) struct World {
    engine: Engine,
    program: Arc<Program>,
    elsewhere: Elsewhere,
    places: Vec<Place>,
    /// Order of the ops that logged.
    log: UnsafeCell<Vec<usize>>,
    /// What each op saw; 0 if it did not run.
    saw: Vec<AtomicU64>,
    /// Accesses at the same time that must not be, and ops that ran twice.
    violations: AtomicU64,
}

// SAFETY: values and log are touched by granted ops alone, which `users` checks.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

struct Hosted(Arc<World>, usize);

impl Payload for Hosted {
    const HOSTED: bool = true;

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        self.0.run(self.1, context)
    }
}

struct Queued(InOrder, Arc<World>, usize);

impl Payload for Queued {
    fn queue(&self) -> Option<InOrder> {
        Some(self.0)
    }

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        self.1.run(self.2, context)
    }
}

impl World {
    /// Runs the program to its end. Answers what went another way than in the model.
    pub(crate) fn check(
        engine: &Engine,
        elsewhere: &Elsewhere,
        program: &Arc<Program>,
        model: &Model,
    ) -> Result<(), String> {
        let world = Arc::new(Self {
            engine: engine.clone(),
            program: Arc::clone(program),
            elsewhere: elsewhere.clone(),
            places: (0..program.slots).map(|_| Place::default()).collect(),
            log: UnsafeCell::default(),
            saw: program.ops.iter().map(|_| AtomicU64::new(0)).collect(),
            violations: AtomicU64::new(0),
        });
        (0..program.initial).for_each(|slot| world.make(slot));
        let start = Barrier::new(program.threads.len());
        let wrong_waits = std::thread::scope(|scope| {
            let push = |thread| world.push_all(thread, model, &start);
            let others: Vec<_> = (1..program.threads.len()).map(|thread| scope.spawn(move || push(thread))).collect();
            let mine = push(0);
            others.into_iter().fold(mine, |all, other| all.and(other.join().expect("no panic out of an op")))
        });
        // Ops may have pushed ops.
        while engine.stats().pending > 0 {
            drop(engine.wait_for_all());
        }
        drop(engine.take_failures());
        wrong_waits.and_then(|()| world.compare(model))
    }

    fn make(&self, slot: usize) {
        let new = self.places[slot].variable.set(self.engine.new_variable(None));
        new.expect("a slot has one variable");
    }

    fn variable(&self, slot: usize) -> &Variable {
        self.places[slot].variable.get().expect("a variable is made before it is used")
    }

    fn push_all(self: &Arc<Self>, thread: usize, model: &Model, start: &Barrier) -> Result<(), String> {
        start.wait();
        let alone = self.program.threads.len() == 1;
        let mut outcome = Ok(());
        for (at, step) in self.program.threads[thread].iter().enumerate() {
            let raised = self.step(step);
            let expected = &model.waits[thread][at];
            // Which thread is told first of what nobody was told of is not determined.
            let comparable = alone || !matches!(step, Step::WaitForAll);
            if comparable && raised.as_ref() != Ok(expected) && outcome.is_ok() {
                outcome = Err(format!("thread {thread}, step {at}, {step:?}: {raised:?}, not {expected:?}"));
            }
        }
        outcome
    }

    /// Does a step. Answers the ops whose failures it raised.
    fn step(self: &Arc<Self>, step: &Step) -> Result<BTreeSet<usize>, String> {
        let answer = match *step {
            Step::Push(id) => {
                self.push(id);
                Ok(())
            }
            Step::WaitForVar(slot) => self.engine.wait_for_var(self.variable(slot)),
            Step::WaitToWrite(slot) => self.engine.wait_to_write(self.variable(slot)),
            Step::WaitForAll => self.engine.wait_for_all(),
            Step::Delete(old, finalizer, new) => {
                self.delete(old, finalizer);
                self.make(new);
                Ok(())
            }
            Step::Misuse(slot) => match self.engine.op(|_: &mut OpContext<'_>| Ok(())).read(self.variable(slot)).push()
            {
                Err(EngineError::VariableDeleted { .. }) => Ok(()),
                other => return Err(format!("pushing onto a deleted variable: {other:?}")),
            },
        };
        match answer {
            Ok(()) => Ok(BTreeSet::new()),
            Err(EngineError::Failed(failure)) => Ok(BTreeSet::from([root(&failure)])),
            Err(EngineError::ManyFailed(failures)) => Ok(failures.iter().map(|failure| root(failure)).collect()),
            Err(other) => Err(other.to_string()),
        }
    }

    fn push(self: &Arc<Self>, id: usize) {
        let op = &self.program.ops[id];
        let mut accesses = Accesses::new(&self.engine);
        for &(slot, kind) in &op.accesses {
            accesses.add(self.variable(slot), kind).expect("a variable of this engine");
        }
        let name = (op.end != End::Done).then(|| id.to_string());
        let (priority, device, always_run) = (op.priority, op.device, op.always_run);
        let options = PushOptions { priority, name: name.as_deref(), device, always_run, ..PushOptions::default() };
        let world = Arc::clone(self);
        let pushed = match op.body {
            Body::Hosted => self.engine.push(Hosted(world, id), &mut accesses, &options),
            Body::InOrder(queue) => self.engine.push(Queued(queue, world, id), &mut accesses, &options),
            Body::Large => {
                let ballast = [id; 8];
                let large = move |context: &mut OpContext<'_>| world.run(ballast[7], context);
                self.engine.push(large, &mut accesses, &options)
            }
            _ => {
                let small = move |context: &mut OpContext<'_>| world.run(id, context);
                self.engine.push(small, &mut accesses, &options)
            }
        };
        pushed.expect("an open engine");
    }

    fn delete(self: &Arc<Self>, slot: usize, finalizer: usize) {
        let name = (self.program.ops[finalizer].end != End::Done).then(|| finalizer.to_string());
        let (world, variable) = (Arc::clone(self), self.variable(slot));
        let finalize = move |context: &mut OpContext<'_>| world.run(finalizer, context);
        self.engine.delete_variable(variable, finalize, name.as_deref()).expect("it is deleted once");
    }

    /// The payload of every op.
    fn run(self: &Arc<Self>, id: usize, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let op = &self.program.ops[id];
        match op.body {
            Body::Elsewhere => {
                let (token, world) = (context.defer(), Arc::clone(self));
                self.push_nested(op);
                self.elsewhere.send(Box::new(move || world.complete(id, &token))).expect("a thread elsewhere");
                return Ok(());
            }
            Body::Itself => {
                self.complete(id, &context.defer());
                self.push_nested(op);
                return Ok(());
            }
            Body::Small | Body::Large | Body::Hosted | Body::InOrder(_) => {}
        }
        self.work(id);
        self.push_nested(op);
        match op.end {
            End::Done => Ok(()),
            End::Error => Err(Cause::Error("oracle".into())),
            End::Panic => std::panic::panic_any("oracle"),
        }
    }

    fn complete(&self, id: usize, token: &Completion) {
        self.work(id);
        let failed = self.program.ops[id].end != End::Done;
        let result = if failed { Err(Cause::Error("oracle".into())) } else { Ok(()) };
        token.complete(result).expect("a token used once");
    }

    fn push_nested(self: &Arc<Self>, op: &Op) {
        for nested in &op.nested {
            match nested {
                Nested::Same(inner) => self.push(*inner),
                Nested::Fresh { slot, ops, wait } => {
                    self.make(*slot);
                    ops.iter().for_each(|&inner| self.push(inner));
                    if *wait {
                        drop(self.engine.wait_for_var(self.variable(*slot)));
                    }
                }
            }
        }
    }

    /// Reads and changes the values.
    fn work(&self, id: usize) {
        let op = &self.program.ops[id];
        for &(slot, kind) in &op.merged {
            let (users, alone) = (&self.places[slot].users, kind.is_exclusive());
            // Relaxed: the engine orders accesses; a relaxed count adds no order of its own.
            let free =
                if alone { users.swap(-1, Ordering::Relaxed) == 0 } else { users.fetch_add(1, Ordering::Relaxed) >= 0 };
            self.expect(free);
        }
        // SAFETY: the accesses are granted.
        let value = |slot: usize| unsafe { *self.places[slot].value.get() };
        let reads =
            op.merged.iter().filter(|(slot, kind)| *kind != AccessKind::Overwrite && ![SUM, LOG].contains(slot));
        let saw = seen(id, reads.map(|&(slot, _)| value(slot)));
        self.expect(self.saw[id].swap(saw, Ordering::Relaxed) == 0);
        match op.pace {
            Pace::Quick => {}
            Pace::Spins => (0..50).for_each(|_| spin_loop()),
            Pace::Yields => std::thread::yield_now(),
        }
        for &(slot, kind) in op.merged.iter().filter(|(_, kind)| kind.makes_version()) {
            let new = match slot {
                SUM => value(SUM).wrapping_add(term(id)),
                LOG => {
                    // SAFETY: as above.
                    unsafe { (*self.log.get()).push(id) };
                    0
                }
                _ => made(kind, value(slot), saw),
            };
            // SAFETY: as above.
            unsafe { *self.places[slot].value.get() = new };
        }
        for &(slot, kind) in &op.merged {
            let (users, alone) = (&self.places[slot].users, kind.is_exclusive());
            let mine =
                if alone { users.swap(0, Ordering::Relaxed) == -1 } else { users.fetch_sub(1, Ordering::Relaxed) > 0 };
            self.expect(mine);
        }
    }

    fn expect(&self, fact: bool) {
        if !fact {
            self.violations.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn compare(&self, model: &Model) -> Result<(), String> {
        let violations = self.violations.load(Ordering::Relaxed);
        if violations > 0 {
            return Err(format!("{violations} accesses at the same time, or ops run twice"));
        }
        for (id, expected) in model.saw.iter().enumerate() {
            let saw = Some(self.saw[id].load(Ordering::Relaxed)).filter(|&saw| saw != 0);
            if saw != *expected {
                return Err(format!("op {id} saw {saw:x?}, not {expected:x?}: {:?}", self.program.ops[id]));
            }
        }
        for (slot, expected) in model.variables.iter().enumerate() {
            // A nested op that was skipped made no variable.
            let Some(variable) = self.places[slot].variable.get() else { continue };
            // SAFETY: everything has run.
            let value = unsafe { *self.places[slot].value.get() };
            let failure = self.engine.failure(variable).map(|failure| root(&failure));
            let begun = matches!(self.engine.recoverable(variable), Ok(Recoverable::Spoilt(_)));
            let outcome = Outcome { value, version: variable.version(), failure, begun };
            if outcome != *expected || variable.completed_version() != expected.version {
                let completed = variable.completed_version();
                return Err(format!("slot {slot}: {outcome:?}, completed {completed}, not {expected:?}"));
            }
            self.engine.recover(&[variable]).map_err(|error| error.to_string())?;
            if variable.has_failed() != begun {
                return Err(format!("slot {slot}: recovered, and not as it was: {outcome:?}"));
            }
        }
        self.compare_log()
    }

    /// The log has each op that logs once, and the ops of each thread in their order.
    fn compare_log(&self) -> Result<(), String> {
        // SAFETY: everything has run.
        let log = unsafe { &*self.log.get() };
        let logs = |id: &usize| self.program.ops[*id].merged.iter().any(|(slot, _)| *slot == LOG);
        let ran = (0..self.saw.len()).filter(logs).filter(|&id| self.saw[id].load(Ordering::Relaxed) != 0);
        let sorted: BTreeSet<usize> = log.iter().copied().collect();
        if sorted.len() != log.len() || !sorted.into_iter().eq(ran) {
            return Err(format!("the log misses ops or has them twice: {log:?}"));
        }
        for thread in 0..self.program.threads.len() {
            let mine =
                log.iter().filter(|&&id| self.program.ops[id].thread == thread && self.program.ops[id].outermost);
            if !mine.is_sorted() {
                return Err(format!("thread {thread}'s ops are out of order in the log: {log:?}"));
            }
        }
        Ok(())
    }
}

/// Ops that fail are named by their numbers.
fn root(failure: &Failure) -> usize {
    let digits = failure.op().trim_matches(|letter: char| !letter.is_ascii_digit());
    digits.parse().expect("a failing op has its number for a name")
}
