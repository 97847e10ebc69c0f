//! Replays of no-ops in the patterns of `patterns`, built before and run again: `cargo bench --bench replays`.
//!
//! With `--pattern` and `--ops` one of them is verified and timed, and told as one JSON line; `benches/peers/taskflow.cpp`
//! does the same. Variables lie inside the replay, as the nodes' edges do there; `--ports on` puts each behind a port.

mod graph;
#[path = "../patterns/program.rs"]
mod program;
#[path = "../patterns/programs.rs"]
mod programs;

use divan::{Bencher, counter::ItemsCount};
use program::{Program, State};
use std::sync::Arc;
use std::time::Instant;
use weft_engine::{Engine, PortId, Replay, ReplayOptions, Settings, Variable};

/// What the steps do: nothing, or what shows their order.
type Work = Option<State>;

/// A replay that can be run.
struct Ready {
    engine: Engine,
    replay: Replay<Work>,
    ports: Vec<PortId>,
    variables: Vec<Variable>,
}

impl Ready {
    fn new(program: &Program, workers: usize, ports: bool) -> Self {
        let engine = Engine::new(Settings { workers: Some(workers), ..Settings::default() }).expect("valid settings");
        let (replay, ports) = graph::replay(&engine, program, ports, |work: &Work, id| {
            if let Some(state) = work {
                state.step(id);
            }
        });
        let variables = ports.iter().map(|_| engine.new_variable(None)).collect();
        Self { engine, replay, ports, variables }
    }

    fn run(&self, bound: &[(PortId, &Variable)], work: &Arc<Work>) {
        let options = ReplayOptions::default();
        self.engine.push_replay(&self.replay, bound, Arc::clone(work), &options).expect("an open engine");
        self.engine.wait_for_all().expect("no step fails");
    }

    fn bound(&self) -> Vec<(PortId, &Variable)> {
        self.ports.iter().copied().zip(&self.variables).collect()
    }
}

const PATTERNS: [&str; 5] = ["chain", "independent", "fan", "random", "stencil"];

#[divan::bench(args = PATTERNS, consts = [1_000, 100_000])]
fn noop<const OPS: usize>(bencher: Bencher<'_, '_>, pattern: &str) {
    let ready = Ready::new(&Program::new(pattern, OPS), 2, false);
    let (bound, work) = (ready.bound(), Arc::new(None));
    bencher.counter(ItemsCount::new(OPS)).bench_local(|| ready.run(&bound, &work));
}

/// The same on the caller's thread, without the engine: the floor.
#[divan::bench(args = PATTERNS, consts = [1_000, 100_000])]
fn inline<const OPS: usize>(bencher: Bencher<'_, '_>, pattern: &str) {
    let ready = Ready::new(&Program::new(pattern, OPS), 2, false);
    bencher.counter(ItemsCount::new(OPS)).bench_local(|| ready.replay.run_inline(&None));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |flag: &str| arguments.iter().position(|it| it == flag).map(|at| arguments[at + 1].clone());
    let Some(pattern) = value("--pattern") else { return divan::main() };
    let number = |flag, default| value(flag).map_or(default, |value| value.parse().expect("a number"));
    let (ops, workers) = (number("--ops", 100_000), number("--workers", 2));
    let ports = value("--ports").is_some_and(|value| value == "on");
    line(&pattern, ops, workers, ports);
}

/// Verifies and times one.
fn line(pattern: &str, ops: usize, workers: usize, ports: bool) {
    let small = Program::new(pattern, ops.min(20_000));
    let ready = Ready::new(&small, workers, ports);
    let bound = ready.bound();
    let mut verified = true;
    for _ in 0..3 {
        let work = Arc::new(Some(State::new(&small)));
        ready.run(&bound, &work);
        verified &= work.as_ref().as_ref().map(State::digest) == Some(program::serial_digest(&small));
    }
    let program = Program::new(pattern, ops);
    let ready = Ready::new(&program, workers, ports);
    let (bound, work) = (ready.bound(), Arc::new(None));
    let runs = if ops < 10_000 { 50 } else { 5 };
    let time = |_| {
        let start = Instant::now();
        ready.run(&bound, &work);
        start.elapsed().as_nanos()
    };
    (0..3).map(time).for_each(|_| {});
    let best = (0..runs).map(time).min().unwrap_or_default();
    #[allow(clippy::cast_precision_loss)] // far below 2^52
    let per_op = best as f64 / ops as f64;
    println!(
        "{{\"implementation\": \"weft replay\", \"pattern\": \"{pattern}\", \"ops\": {ops}, \"workers\": {workers}, \
         \"ns_per_op\": {per_op:.2}, \"verified\": {verified}}}"
    );
    assert!(verified, "the steps ran in an order that gives other values than the serial one");
}
