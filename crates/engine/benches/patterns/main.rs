//! weft's row of table A: native no-op ops in five dependency patterns, one JSON line a run.
//!
//! `benches/peers` holds the same patterns for the peers; the digest shows that all ran the same
//! program in an order equal to the serial one.

mod program;
mod programs;

use program::{Program, State};
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Instant;
use weft_engine::{AccessKind, Accesses, Engine, NativeFunction, PushOptions, Settings, Variable};

struct Options {
    pattern: String,
    ops: usize,
    workers: usize,
    /// Whether the timed run is traced.
    trace: bool,
}

fn main() {
    let options = parse();
    let engine =
        Engine::new(Settings { workers: Some(options.workers), ..Settings::default() }).expect("valid settings");

    let small = Program::new(&options.pattern, options.ops.min(20_000));
    let state = Arc::new(State::new(&small));
    run(&engine, &small, |id| {
        let state = Arc::clone(&state);
        move |_: &mut weft_engine::OpContext<'_>| {
            state.step(id);
            Ok(())
        }
    });
    let digest = state.digest();
    let verified = digest == program::serial_digest(&small);

    let program = Program::new(&options.pattern, options.ops);
    // SAFETY: the function takes any argument from any thread.
    let no_op = |_| unsafe { NativeFunction::new(nothing, std::ptr::null_mut()) };
    run(&engine, &program, no_op);
    if options.trace {
        engine.start_trace(u64::MAX).expect("no trace so far");
    }
    let nanoseconds = run(&engine, &program, no_op);
    #[allow(clippy::cast_precision_loss)] // far below 2^52
    let per_op = nanoseconds as f64 / options.ops as f64;
    println!(
        "{{\"implementation\": \"weft\", \"pattern\": \"{}\", \"ops\": {}, \"workers\": {}, \"ns_per_op\": {per_op:.2}, \
         \"verified\": {verified}, \"verified_ops\": {}, \"digest\": \"{digest:016x}\"}}",
        options.pattern,
        options.ops,
        options.workers,
        small.ops.len(),
    );
    assert!(verified, "the ops ran in an order that gives other values than the serial one");
}

extern "C" fn nothing(_: *mut c_void) -> i32 {
    0
}

/// Pushes a program and waits for it. Answers how many nanoseconds both took.
fn run<P: weft_engine::Payload>(engine: &Engine, program: &Program, payload: impl Fn(usize) -> P) -> u128 {
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
    engine.wait_for_all().expect("no op fails");
    start.elapsed().as_nanos()
}

fn parse() -> Options {
    let mut options = Options { pattern: "chain".to_owned(), ops: 100_000, workers: 2, trace: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{flag} needs a value"));
        match flag.as_str() {
            "--json" | "--bench" => {} // the only output there is; what cargo adds
            "--pattern" => options.pattern = value(),
            "--ops" => options.ops = value().parse().expect("a number of ops"),
            "--trace" => options.trace = value() == "on",
            "--workers" => options.workers = value().parse().expect("a number of workers"),
            other => panic!("unknown flag: {other}"),
        }
    }
    options
}
