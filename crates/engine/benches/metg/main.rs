//! weft's rows of `benches/metg.py`: a grid of tasks that compute for as long as wanted, pushed one by one or replayed.
//!
//! The grid comes from a file (`weft.bench.metg.patterns.write`); the C++ peers read the same one, and call the same function
//! of the C library.

#[path = "../replays/graph.rs"]
mod graph;
mod grid;
#[path = "../patterns/program.rs"]
mod program;

use grid::{COLUMNS, Kernel};
use program::{Program, State};
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Instant;
use weft_engine::{
    AccessKind, Accesses, Engine, NativeFunction, OpContext, Payload, PushOptions, ReplayOptions, Settings, Variable,
};

struct Options {
    program: String,
    workers: usize,
    /// Of the kernel, in digits.
    lengths: Vec<usize>,
    /// The best of so many is told.
    runs: usize,
    /// Whether the grid is built before and run again.
    again: bool,
}

/// What a task does: a step that shows the order, or so many digits.
enum Work {
    Step(State<COLUMNS>),
    Read(Kernel, usize),
}

fn main() {
    let options = parse();
    let program = grid::read(&options.program);
    let engine =
        Engine::new(Settings { workers: Some(options.workers), ..Settings::default() }).expect("valid settings");
    let (digest, times) =
        if options.again { replayed(&engine, &program, &options) } else { pushed(&engine, &program, &options) };
    let verified = digest == program::serial_digest(&program);
    #[allow(clippy::cast_precision_loss)] // far below 2^52
    let per_op: Vec<String> =
        times.iter().map(|&time| format!("{:.2}", time as f64 / program.ops.len() as f64)).collect();
    println!("{{\"verified\": {verified}, \"digest\": \"{digest:016x}\", \"ns_per_op\": [{}]}}", per_op.join(", "));
    assert!(verified, "the tasks ran in an order that gives other values than the serial one");
}

/// The digest, and the least nanoseconds for each length.
fn pushed(engine: &Engine, program: &Program<COLUMNS>, options: &Options) -> (u64, Vec<u128>) {
    let state = Arc::new(State::new(program));
    push(engine, program, |id| {
        let state = Arc::clone(&state);
        move |_: &mut OpContext<'_>| {
            state.step(id);
            Ok(())
        }
    });
    let kernel = Kernel::new(options.lengths.iter().copied().max().unwrap_or_default());
    let time = |&length: &usize| {
        let data = kernel.data(length).cast_mut().cast::<c_void>();
        // SAFETY: the function reads the text up to its end, which outlives the wait.
        best(options.runs, || push(engine, program, |_| unsafe { NativeFunction::new(read_digits, data) }))
    };
    (state.digest(), options.lengths.iter().map(time).collect())
}

extern "C" fn read_digits(data: *mut c_void) -> i32 {
    // SAFETY: whoever made the native function says that this is a text of digits.
    unsafe { grid::atoi(data.cast_const().cast()) }
}

/// Pushes the tasks and waits for them. Answers how many nanoseconds both took.
fn push<P: Payload>(engine: &Engine, program: &Program<COLUMNS>, payload: impl Fn(usize) -> P) -> u128 {
    let variables: Vec<Variable> = (0..program.variables).map(|_| engine.new_variable(None)).collect();
    let options = PushOptions::default();
    let start = Instant::now();
    for (id, op) in program.ops.iter().enumerate() {
        let mut accesses = Accesses::new(engine);
        for &read in &op.reads[..op.read_count] {
            accesses.add(&variables[read], AccessKind::Read).expect("a variable of this engine");
        }
        if let Some(target) = op.mutates {
            accesses.add(&variables[target], AccessKind::Mutate).expect("a variable of this engine");
        }
        engine.push(payload(id), &mut accesses, &options).expect("an open engine");
    }
    engine.wait_for_all().expect("no task fails");
    start.elapsed().as_nanos()
}

/// As `pushed`, of replays that were built before: one for each length, as a step is expected to take what it took in its
/// first runs.
fn replayed(engine: &Engine, program: &Program<COLUMNS>, options: &Options) -> (u64, Vec<u128>) {
    let variable = engine.new_variable(None);
    let runs = |work: Work| {
        let (replay, ports) = graph::replay(engine, program, false, |work: &Work, id| match work {
            Work::Step(state) => state.step(id),
            Work::Read(kernel, length) => kernel.run(*length),
        });
        let (work, variable) = (Arc::new(work), variable.clone());
        let run = {
            let work = Arc::clone(&work);
            move || {
                let (bound, start) = ([(ports[0], &variable)], Instant::now());
                engine
                    .push_replay(&replay, &bound, Arc::clone(&work), &ReplayOptions::default())
                    .expect("an open engine");
                engine.wait_for_all().expect("no task fails");
                start.elapsed().as_nanos()
            }
        };
        (work, run)
    };
    let (work, run) = runs(Work::Step(State::new(program)));
    run();
    let Work::Step(state) = &*work else { unreachable!("it was made two lines above") };
    let time = |&length: &usize| {
        let (_, run) = runs(Work::Read(Kernel::new(length), length));
        run(); // its steps are timed twice
        best(options.runs, run)
    };
    (state.digest(), options.lengths.iter().map(time).collect())
}

fn best(runs: usize, run: impl Fn() -> u128) -> u128 {
    run(); // a first one, for caches and for what is expected of a step
    (0..runs).map(|_| run()).min().unwrap_or_default()
}

fn parse() -> Options {
    let mut options = Options { program: String::new(), workers: 2, lengths: vec![8], runs: 3, again: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{flag} needs a value"));
        match flag.as_str() {
            "--json" | "--bench" => {} // the only output there is; what cargo adds
            "--program" => options.program = value(),
            "--workers" => options.workers = value().parse().expect("a number of workers"),
            "--lengths" => {
                options.lengths = value().split(',').map(|it| it.parse().expect("a number of digits")).collect();
            }
            "--runs" => options.runs = value().parse().expect("a number of runs"),
            "--again" => options.again = value() == "on",
            other => panic!("unknown flag: {other}"),
        }
    }
    options
}
