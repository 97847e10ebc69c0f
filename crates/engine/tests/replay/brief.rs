//! Steps so short that no second worker pays, or that only a trial tells: they are run in their recorded order or are shared, and nobody
//! can tell by their results.

use super::gate;
use super::watchdog::Watchdog;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use weft_engine::{
    AccessKind, Cause, Completion, Engine, PortId, Replay, ReplayBuilder, ReplayOptions, Settings, StepContext, StepId,
    StepOptions, Variable,
};

const STEPS: usize = 32;
/// Runs after which the times of steps are known, and more.
const RUNS: usize = 200;

/// When each step was run, from 1; those that are to fail have their bit set.
#[derive(Default)]
struct Course {
    clock: AtomicU32,
    ran_at: [AtomicU32; STEPS],
    failing: u32,
    /// How long each takes, in rounds of `mixed`.
    length: u64,
    /// An op that holds a port, until a step ends it.
    held: Mutex<Option<Completion>>,
}

impl Course {
    fn ran_at(&self) -> Vec<u32> {
        // ORDERING: the run has ended.
        self.ran_at.iter().map(|at| at.load(Ordering::Relaxed)).collect()
    }
}

fn step(builder: &mut ReplayBuilder<Course>, at: usize) -> StepId {
    let run = move |course: &Course, _: &mut StepContext<'_, '_>| {
        std::hint::black_box((0..course.length).fold(1, |product, _| std::hint::black_box(mixed(product))));
        // ORDERING: counts of the test's.
        course.ran_at[at].store(course.clock.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        if course.failing >> at & 1 == 1 { Err(Cause::Native(7)) } else { Ok(()) }
    };
    builder.step(run, &StepOptions::default())
}

fn engine() -> Engine {
    Engine::new(Settings { workers: Some(2), ..Settings::default() }).expect("valid settings")
}

fn run(engine: &Engine, replay: &Replay<Course>, bound: &[(PortId, &Variable)], course: Course) -> Arc<Course> {
    let course = Arc::new(course);
    engine.push_replay(replay, bound, Arc::clone(&course), &ReplayOptions::default()).expect("an open engine");
    course
}

/// The step of the shortest way is recorded first, and is taken last where two workers may come. Whether the port is free when a call
/// begins, or granted later, makes no difference.
#[test]
fn they_go_in_their_recorded_order() {
    for waits in [false, true] {
        let _watchdog = Watchdog::new(&format!("short steps go in their recorded order; the port waits: {waits}"));
        let engine = engine();
        let mut builder = ReplayBuilder::new();
        let port = builder.port();
        let (first, mut before) = (step(&mut builder, 0), step(&mut builder, 1));
        for root in [first, before] {
            builder.uses(root, port, AccessKind::Read).expect("there is the port");
        }
        for at in 2..STEPS {
            let next = step(&mut builder, at);
            builder.needs(next, before).expect("an earlier step");
            before = next;
        }
        let replay = engine.new_replay(builder).expect("a replay");
        let variable = engine.new_variable(None);
        let recorded: Vec<u32> = (1..).take(STEPS).collect();
        // On a busy machine steps look long for a while; the watchdog says if they always do.
        loop {
            let held = waits.then(|| gate::shut(&engine, &variable));
            let course = run(&engine, &replay, &[(port, &variable)], Course::default());
            if let Some(held) = held {
                held.complete(Ok(())).expect("once");
            }
            engine.wait_for_all().expect("no step fails");
            if course.ran_at() == recorded {
                break;
            }
        }
    }
}

/// splitmix64 (Steele, Lea, Flood 2014).
fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Random graphs: whatever fails, what needs it is skipped, and so is what needs that; all else runs.
#[test]
fn a_failure_skips_what_needs_it_and_nothing_else() {
    let _watchdog = Watchdog::new("a failure of a short step skips what needs it");
    // Far below a microsecond, about one, and a hundred.
    for (seed, length) in (0..20).flat_map(|seed| [(seed, 0), (seed, 100)]).chain([(20, 10_000)]) {
        let engine = engine();
        let mut builder = ReplayBuilder::new();
        let ports: Vec<_> = (0..4).map(|_| builder.port()).collect();
        let (mut steps, mut needed, mut last) = (Vec::new(), [0_u32; STEPS], [None; 4]);
        for (at, needed) in needed.iter_mut().enumerate() {
            let next = step(&mut builder, at);
            for before in (0..at).filter(|before| mixed(seed << 32 | (at << 8 | before) as u64).is_multiple_of(16)) {
                builder.needs(next, steps[before]).expect("an earlier step");
                *needed |= 1 << before;
            }
            let port = (mixed(seed << 32 | 1 << 20 | at as u64) % 8) as usize;
            if port < ports.len() {
                builder.uses(next, ports[port], AccessKind::Overwrite).expect("there is the port");
                if let Some(before) = last[port].replace(at) {
                    builder.follows(next, steps[before]).expect("an earlier step");
                }
            }
            steps.push(next);
        }
        let replay = engine.new_replay(builder).expect("a replay");
        let variables: Vec<_> = ports.iter().map(|_| engine.new_variable(None)).collect();
        let bound: Vec<_> = ports.iter().copied().zip(&variables).collect();
        for round in 0..RUNS {
            // The last few runs fail, one of them in nothing.
            let failing = if round + 16 < RUNS {
                0
            } else {
                1_u32.checked_shl((mixed(seed ^ round as u64) % 40) as u32).unwrap_or(0)
            };
            let mut fails = 0_u32;
            let expected: Vec<bool> = (0..STEPS)
                .map(|at| {
                    let runs = needed[at] & fails == 0;
                    fails |= u32::from(!runs || failing >> at & 1 == 1) << at;
                    runs
                })
                .collect();
            let course = run(&engine, &replay, &bound, Course { failing, length, ..Course::default() });
            for (variable, last) in variables.iter().zip(last) {
                let outcome = engine.wait_for_var(variable);
                let failed = last.is_some_and(|last| fails >> last & 1 == 1);
                assert_eq!(outcome.is_err(), failed, "seed {seed}, run {round}: {outcome:?}");
            }
            let _ = engine.wait_for_all(); // a failure that no port shows
            let ran: Vec<bool> = course.ran_at().into_iter().map(|at| at > 0).collect();
            assert_eq!(ran, expected, "seed {seed}, length {length}, run {round}, failing {failing:b}");
        }
    }
}

/// A step that waits for a port holds up none that does not, as the port may be granted for what that one does.
#[test]
fn a_port_that_is_not_granted_holds_up_nothing_else() {
    let _watchdog = Watchdog::new("a port that is not granted holds up nothing else");
    let engine = engine();
    let mut builder = ReplayBuilder::<Course>::new();
    let port = builder.port();
    let first = step(&mut builder, 0);
    builder.uses(first, port, AccessKind::Mutate).expect("there is the port");
    let ends = |course: &Course, _: &mut StepContext<'_, '_>| {
        let held = course.held.lock().expect("no panic").take();
        held.map_or(Ok(()), |held| held.complete(Ok(())).map_err(|_| Cause::Native(1)))
    };
    builder.step(ends, &StepOptions::default());
    let replay = engine.new_replay(builder).expect("a replay");
    let variable = engine.new_variable(None);
    for round in 0..RUNS {
        let held = Mutex::new((round % 8 == 7).then(|| gate::shut(&engine, &variable)));
        let course = run(&engine, &replay, &[(port, &variable)], Course { held, ..Course::default() });
        engine.wait_for_all().expect("no step fails");
        assert_eq!(course.ran_at()[0], 1);
    }
}
