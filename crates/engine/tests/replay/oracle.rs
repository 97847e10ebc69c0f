//! Random replays beside ops, against what each step would do if it ran at its push.
//!
//! `WEFT_REPLAY_PROGRAMS` says how many programs; a failure prints its seed, and `WEFT_REPLAY_SEED` runs that one alone.

use super::watchdog::Watchdog;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier};
use weft_engine::{
    AccessKind, Cause, Engine, InOrder, OpContext, Policy, PortId, PushOptions, Replay, ReplayBuilder, ReplayOptions,
    Settings, Step, StepContext, StepKind, StepOptions, Variable,
};

const KINDS: [AccessKind; 4] = [AccessKind::Read, AccessKind::Mutate, AccessKind::Read, AccessKind::Overwrite];

/// What completes steps elsewhere.
type Elsewhere = Sender<Box<dyn FnOnce() + Send>>;

/// splitmix64 (Steele, Lea, Flood 2014).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("a small number")
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    Error,
    Panic,
}

/// A step, or an op beside the replays; places are ports, or variables.
#[derive(Debug, Clone)]
struct Task {
    id: u64,
    accesses: Vec<(usize, AccessKind)>,
    kind: StepKind,
    end: End,
    always_run: bool,
    /// Whether a token ends it, from another thread.
    deferred: bool,
    /// Whether it pushes an op of its own, and whether it waits for that.
    nested: Option<bool>,
    spins: u32,
}

#[derive(Debug)]
enum Action {
    /// Which replay, and what is behind each port.
    Replay {
        replay: usize,
        bound: Vec<usize>,
        sequential: bool,
        priority: i32,
    },
    Op(Task),
    Delete(usize),
    Wait(usize),
}

/// Replays, and what is done with them.
#[derive(Debug)]
struct Program {
    variables: usize,
    replays: Vec<(usize, Vec<Task>)>,
    actions: Vec<Action>,
}

fn draw_task(numbers: &mut Numbers, places: usize, failures: bool) -> Task {
    let mut accesses: Vec<(usize, AccessKind)> = Vec::new();
    for _ in 0..=numbers.below(3) {
        let place = numbers.below(places);
        if accesses.iter().all(|&(other, _)| other != place) {
            accesses.push((place, KINDS[numbers.below(KINDS.len())]));
        }
    }
    let end = match numbers.below(24) {
        0 if failures => End::Error,
        1 if failures => End::Panic,
        _ => End::Done,
    };
    let kind = match numbers.below(8) {
        0 => StepKind::Native,
        1 => StepKind::Hosted,
        2 => StepKind::InOrder(InOrder::named("first")),
        _ => StepKind::Plain,
    };
    let deferred = kind != StepKind::Plain && numbers.one_in(3);
    let nested = (kind == StepKind::Native && numbers.one_in(3)).then(|| numbers.one_in(2));
    let (always_run, spins) = (numbers.one_in(8), if numbers.one_in(6) { 2000 } else { 0 });
    Task { id: numbers.next(), accesses, kind, end, always_run, deferred, nested, spins }
}

fn draw(seed: u64) -> Program {
    let mut numbers = Numbers(seed);
    let variables = 2 + numbers.below(7);
    let failures = numbers.one_in(2);
    let replays: Vec<_> = (0..=numbers.below(2))
        .map(|_| {
            let ports = 1 + numbers.below(variables);
            let steps = numbers.below(24);
            (ports, (0..steps).map(|_| draw_task(&mut numbers, ports, failures)).collect())
        })
        .collect();
    let actions = (0..4 + numbers.below(12)).map(|_| match numbers.below(8) {
        0 | 1 => Action::Op(Task { deferred: false, nested: None, ..draw_task(&mut numbers, variables, failures) }),
        2 => Action::Delete(numbers.below(variables)),
        3 => Action::Wait(numbers.below(variables)),
        _ => {
            let replay = numbers.below(replays.len());
            let mut bound: Vec<_> = (0..variables).collect();
            (1..variables).rev().for_each(|at| bound.swap(at, numbers.below(at + 1)));
            bound.truncate(replays[replay].0);
            let (sequential, priority) = (numbers.one_in(4), [0, 0, 0, 3, -1][numbers.below(5)]);
            Action::Replay { replay, bound, sequential, priority }
        }
    });
    let actions = actions.collect();
    Program { variables, replays, actions }
}

/// What a variable stands for when all has run, and whether its last version failed.
type Value = (u64, bool);

fn term(id: u64, seen: impl Iterator<Item = u64>) -> u64 {
    seen.fold(id | 1, |term, value| mix(term.wrapping_mul(31).wrapping_add(value)))
}

/// What comes of a task.
fn model(task: &Task, place: impl Fn(usize) -> usize, values: &mut [Value]) {
    let seen = || task.accesses.iter().filter(|(_, kind)| kind.sees_value()).map(|&(at, _)| place(at));
    let runs = task.always_run || seen().all(|at| !values[at].1);
    let done = runs && task.end == End::Done;
    let term = term(task.id, seen().map(|at| values[at].0));
    for &(at, kind) in task.accesses.iter().filter(|(_, kind)| kind.makes_version()) {
        let value = &mut values[place(at)];
        match (done, kind) {
            (false, _) => value.1 = true,
            (true, AccessKind::Overwrite) => *value = (term, false),
            (true, _) => value.0 = value.0.wrapping_mul(31).wrapping_add(term),
        }
    }
}

fn expected(program: &Program) -> Vec<Value> {
    let mut values = vec![(0, false); program.variables];
    for action in &program.actions {
        match action {
            Action::Op(task) => model(task, |at| at, &mut values),
            Action::Replay { replay, bound, .. } => {
                program.replays[*replay].1.iter().for_each(|task| model(task, |at| bound[at], &mut values));
            }
            Action::Delete(at) => values[*at] = (0, false),
            Action::Wait(_) => {}
        }
    }
    values
}

/// A value, and who is at it.
#[derive(Default)]
struct Place {
    value: UnsafeCell<u64>,
    users: AtomicI32,
}

// SAFETY: granted ops alone touch the value, which `users` checks.
unsafe impl Sync for Place {}

struct World {
    engine: Engine,
    elsewhere: Elsewhere,
    violations: AtomicU64,
}

/// What a push of a replay is bound to.
struct Bindings {
    world: Arc<World>,
    places: Vec<Arc<Place>>,
}

impl World {
    /// Does a task's work on these places.
    fn run(&self, task: &Task, places: &[Arc<Place>]) -> Result<(), Cause> {
        for &(at, kind) in &task.accesses {
            let (users, by) = (&places[at].users, if kind.is_exclusive() { -1000 } else { 1 });
            let before = users.fetch_add(by, Ordering::SeqCst);
            if before < 0 || (kind.is_exclusive() && before != 0) {
                self.violations.fetch_add(1, Ordering::SeqCst);
            }
        }
        (0..task.spins).for_each(|_| std::hint::spin_loop());
        if let Some(wait) = task.nested {
            let fresh = self.engine.new_variable(None);
            self.engine.op(|_: &mut OpContext<'_>| Ok(())).mutate(&fresh).push().expect("pushes inside ops go through");
            if wait {
                self.engine.wait_for_var(&fresh).expect("it does not fail");
            }
        }
        if task.end == End::Done {
            // SAFETY: checked by `users`.
            let read = |at: usize| unsafe { *places[at].value.get() };
            let seen = task.accesses.iter().filter(|(_, kind)| kind.sees_value());
            let term = term(task.id, seen.map(|&(at, _)| read(at)));
            for &(at, kind) in task.accesses.iter().filter(|(_, kind)| kind.makes_version()) {
                let value =
                    if kind == AccessKind::Overwrite { term } else { read(at).wrapping_mul(31).wrapping_add(term) };
                // SAFETY: as above.
                unsafe { *places[at].value.get() = value };
            }
        }
        for &(at, kind) in &task.accesses {
            places[at].users.fetch_sub(if kind.is_exclusive() { -1000 } else { 1 }, Ordering::SeqCst);
        }
        match task.end {
            End::Done => Ok(()),
            End::Error => Err(Cause::Native(1)),
            End::Panic => std::panic::resume_unwind(Box::new("drawn")),
        }
    }
}

impl Step<Bindings> for Task {
    fn run(&self, bindings: &Bindings, context: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        if !self.deferred || self.end == End::Panic {
            return bindings.world.run(self, &bindings.places);
        }
        let token = context.op().expect("it is no plain step").defer();
        let (task, world, places) = (self.clone(), Arc::clone(&bindings.world), bindings.places.clone());
        let complete = move || token.complete(world.run(&task, &places)).expect("a token used once");
        bindings.world.elsewhere.send(Box::new(complete)).expect("it listens");
        Ok(())
    }
}

/// A replay of these steps, with dependencies as their accesses say.
fn build(engine: &Engine, ports: usize, tasks: &[Task]) -> (Replay<Bindings>, Vec<PortId>) {
    let mut builder = ReplayBuilder::new();
    builder.name("drawn");
    let ids: Vec<_> = (0..ports).map(|_| builder.port()).collect();
    // Those whose failure is seen behind a port, and those that have read since.
    let mut writers = vec![Vec::new(); ports];
    let mut readers = vec![Vec::new(); ports];
    for task in tasks {
        let options = StepOptions { kind: task.kind, always_run: task.always_run, ..StepOptions::default() };
        let step = builder.step(task.clone(), &options);
        for &(at, kind) in &task.accesses {
            for &writer in &writers[at] {
                let after = if kind.sees_value() { builder.needs(step, writer) } else { builder.follows(step, writer) };
                after.expect("an earlier step");
            }
            if kind.makes_version() {
                readers[at].drain(..).for_each(|reader| builder.follows(step, reader).expect("an earlier step"));
                // A step that runs whatever failed does not make good what it mutates.
                if kind == AccessKind::Overwrite || !task.always_run {
                    writers[at].clear();
                }
                writers[at].push(step);
            } else {
                readers[at].push(step);
            }
            builder.uses(step, ids[at], kind).expect("there is the port");
        }
    }
    (engine.new_replay(builder).expect("a replay"), ids)
}

fn check(engine: &Engine, elsewhere: &Elsewhere, program: &Program) {
    let world = Arc::new(World { engine: engine.clone(), elsewhere: elsewhere.clone(), violations: AtomicU64::new(0) });
    let replays: Vec<_> = program.replays.iter().map(|(ports, tasks)| build(engine, *ports, tasks)).collect();
    let new = |_| (engine.new_variable(None), Arc::new(Place::default()));
    let mut variables: Vec<(Variable, Arc<Place>)> = (0..program.variables).map(new).collect();
    let finalized = Arc::new(AtomicU64::new(0));
    let mut deleted = 0;
    for action in &program.actions {
        match action {
            Action::Op(task) => push_op(engine, &world, task, &variables),
            Action::Replay { replay, bound, sequential, priority } => {
                let places = bound.iter().map(|&at| Arc::clone(&variables[at].1)).collect();
                let bindings = Arc::new(Bindings { world: Arc::clone(&world), places });
                let (replay, ports) = &replays[*replay];
                let bound: Vec<_> = ports.iter().zip(bound).map(|(&port, &at)| (port, &variables[at].0)).collect();
                let push = PushOptions { priority: *priority, ..PushOptions::default() };
                let options = ReplayOptions { push, sequential: *sequential };
                engine.push_replay(replay, &bound, bindings, &options).expect("an open engine");
            }
            Action::Delete(at) => {
                let finalized = Arc::clone(&finalized);
                let finalize = move |_: &mut OpContext<'_>| {
                    finalized.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                };
                engine.delete_variable(&variables[*at].0, finalize, None).expect("it is deleted once");
                variables[*at] = new(0);
                deleted += 1;
            }
            Action::Wait(at) => drop(engine.wait_for_var(&variables[*at].0)),
        }
    }
    drop(replays); // what is pending keeps what it needs
    while engine.stats().pending > 0 {
        drop(engine.wait_for_all());
    }
    drop(engine.take_failures());
    // SAFETY: nothing is pending.
    let values: Vec<Value> =
        variables.iter().map(|(it, place)| (unsafe { *place.value.get() }, it.has_failed())).collect();
    assert_eq!(values, expected(program), "values, and whether they failed");
    assert_eq!(world.violations.load(Ordering::SeqCst), 0, "accesses at the same time that must not be");
    assert_eq!(finalized.load(Ordering::SeqCst), deleted, "each finalizer runs once");
    for (variable, _) in &variables {
        assert_eq!(variable.version(), variable.completed_version());
    }
}

fn push_op(engine: &Engine, world: &Arc<World>, task: &Task, variables: &[(Variable, Arc<Place>)]) {
    let (ours, run) = (Arc::clone(world), task.clone());
    let places: Vec<_> = variables.iter().map(|(_, place)| Arc::clone(place)).collect();
    let mut accesses = weft_engine::Accesses::new(engine);
    for &(at, kind) in &task.accesses {
        accesses.add(&variables[at].0, kind).expect("a variable of this engine");
    }
    let options = PushOptions { always_run: task.always_run, ..PushOptions::default() };
    let payload = move |_: &mut OpContext<'_>| ours.run(&run, &places);
    engine.push(payload, &mut accesses, &options).expect("an open engine");
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

fn run(policy: Policy, workers: usize) {
    let name = format!("random replays, {policy}, {workers} workers");
    let watchdog = Watchdog::new(&name);
    let (elsewhere, jobs) = channel::<Box<dyn FnOnce() + Send>>();
    let completer = std::thread::spawn(move || jobs.into_iter().for_each(|job| job()));
    let engine =
        Engine::new(Settings { workers: Some(workers), policy, ..Settings::default() }).expect("valid settings");
    let (first, programs) = match number("WEFT_REPLAY_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("WEFT_REPLAY_PROGRAMS").unwrap_or(400)),
    };
    for seed in first..first + programs {
        watchdog.feed(format!("{name}, seed {seed}"));
        let program = draw(mix(seed + 1));
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&engine, &elsewhere, &program)));
        assert!(checked.is_ok(), "{name}, seed {seed}: {program:#?}");
    }
    engine.close().expect("failures were told");
    drop((engine, elsewhere));
    completer.join().expect("no panic elsewhere");
}

#[test]
fn one_worker() {
    run(Policy::WorkStealing, 1);
}

#[test]
fn two_workers() {
    run(Policy::WorkStealing, 2);
}

#[test]
fn eight_workers() {
    run(Policy::WorkStealing, 8);
}

#[test]
fn per_device() {
    run(Policy::PerDevice, 2);
}

#[test]
fn shuffled() {
    run(Policy::Shuffled(7), 1);
}

#[test]
fn serial() {
    run(Policy::Serial, 1);
}

/// Threads that push the same replay over the same variables, in whatever order.
#[test]
fn many_pushers() {
    const PUSHERS: usize = 4;
    const ROUNDS: u64 = 2_000;
    let _watchdog = Watchdog::new("many pushers of one replay");
    let engine = Engine::new(Settings { workers: Some(2), ..Settings::default() }).expect("valid settings");
    let mut builder = ReplayBuilder::<[Place; 2]>::new();
    let ports = [builder.port(), builder.port()];
    let steps = [0, 1, 0].map(|at: usize| {
        let add = move |places: &[Place; 2], _: &mut StepContext<'_, '_>| {
            assert_eq!(places[at].users.fetch_add(1, Ordering::SeqCst), 0);
            // SAFETY: checked by `users`.
            unsafe { *places[at].value.get() += 1 };
            places[at].users.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        };
        let step = builder.step(add, &StepOptions::default());
        builder.uses(step, ports[at], AccessKind::Mutate).expect("there is the port");
        step
    });
    builder.needs(steps[2], steps[0]).expect("an earlier step");
    let replay = engine.new_replay(builder).expect("a replay");
    let variables = [(); 2].map(|()| engine.new_variable(None));
    let places = Arc::new([Place::default(), Place::default()]);
    let start = Barrier::new(PUSHERS);
    std::thread::scope(|scope| {
        for _ in 0..PUSHERS {
            scope.spawn(|| {
                start.wait();
                let bound = [(ports[0], &variables[0]), (ports[1], &variables[1])];
                for _ in 0..ROUNDS {
                    let options = ReplayOptions::default();
                    engine.push_replay(&replay, &bound, Arc::clone(&places), &options).expect("an open engine");
                }
            });
        }
    });
    engine.wait_for_all().expect("no step fails");
    let total = PUSHERS as u64 * ROUNDS;
    // SAFETY: nothing is pending.
    assert_eq!(places.each_ref().map(|place| unsafe { *place.value.get() }), [2 * total, total]);
    assert_eq!(variables.each_ref().map(Variable::completed_version), [total; 2]);
}
