//! Random programs on every kind of engine, against what they do serially.
//!
//! `WEFT_ORACLE_OPS` sets how many random ops each engine runs, for long runs. A failure prints
//! the `WEFT_ORACLE_SEED` with which the same program comes first.

#![allow(clippy::disallowed_types)] // counts of the tests, not of the engine

mod machine;
mod model;
mod program;
#[path = "../watchdog/mod.rs"]
mod watchdog;

use machine::{Elsewhere, World};
use model::Model;
use program::Program;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::Cell;
use std::sync::mpsc::channel;
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use watchdog::Watchdog;
use weft_engine::{Engine, Policy, Settings};

/// Random ops for each engine unless the environment says otherwise.
const OPS: usize = 400_000;
/// Programs for each seed.
const BATCH: u32 = 32;
const SEED: u64 = 0x7765_6674; // "weft"

fn from_environment<T: std::str::FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {value:?}")))
}

/// Words of up to four threads, variables for each, and whether ops fail.
fn sources() -> impl Strategy<Value = (usize, bool, Vec<Vec<u64>>)> {
    (1..=24_usize, any::<bool>(), vec(vec(any::<u64>(), 0..300), 1..=4))
}

/// The payloads' panics are part of the programs.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload().downcast_ref::<&str>() != Some(&"oracle") {
                loud(panic);
            }
        }));
    });
}

fn elsewhere() -> (Elsewhere, JoinHandle<()>) {
    let (sender, receiver) = channel::<Box<dyn FnOnce() + Send>>();
    (sender, std::thread::spawn(move || receiver.into_iter().for_each(|completion| completion())))
}

fn check(name: &str, settings: Settings) {
    hush();
    let watchdog = Watchdog::new(name);
    let engine = Engine::new(settings).expect("valid settings");
    let (elsewhere, thread) = elsewhere();
    let wanted = from_environment("WEFT_ORACLE_OPS").unwrap_or(OPS);
    let mut seed = from_environment("WEFT_ORACLE_SEED").unwrap_or(SEED);
    let ops = Cell::new(0);
    while ops.get() < wanted {
        let mut seed_bytes = [0; 32];
        seed_bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let config = Config { cases: BATCH, failure_persistence: None, max_shrink_iters: 4096, ..Config::default() };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes);
        let outcome = TestRunner::new_with_rng(config, rng).run(&sources(), |(variables, failures, words)| {
            watchdog.feed(format!("{name}, WEFT_ORACLE_SEED={seed}"));
            let program = Arc::new(Program::decode(variables, failures, &words));
            let model = Model::of(&program);
            ops.set(ops.get() + program.ops.len());
            World::check(&engine, &elsewhere, &program, &model)
                .map_err(|wrong| TestCaseError::fail(format!("{wrong}\nin {:?}", program.threads)))
        });
        match outcome {
            Ok(()) => seed += 1,
            Err(TestError::Fail(wrong, least)) => {
                panic!("{name}, WEFT_ORACLE_SEED={seed}: {wrong}\nsource: {least:x?}")
            }
            Err(error) => panic!("{name}, WEFT_ORACLE_SEED={seed}: {error}"),
        }
    }
    engine.close().expect("all failures were taken");
    drop(elsewhere);
    thread.join().expect("completions do not panic"); // it holds variables until it has let its last one go
    assert_eq!(engine.stats().variables, 0, "every variable was freed");
}

fn settings(policy: Policy, workers: usize) -> Settings {
    Settings { policy, workers: Some(workers), ..Settings::default() }
}

#[test]
fn serial() {
    check("serial", settings(Policy::Serial, 1));
}

#[test]
fn one_worker() {
    check("one worker", settings(Policy::WorkStealing, 1));
}

#[test]
fn two_workers_and_little_room() {
    check("two workers and little room", Settings { max_pending_ops: 100, ..settings(Policy::WorkStealing, 2) });
}

#[test]
fn eight_workers() {
    check("eight workers", settings(Policy::WorkStealing, 8));
}

#[test]
fn shuffled() {
    check("shuffled", settings(Policy::Shuffled(7), 1));
}

#[test]
fn devices() {
    check("devices", settings(Policy::PerDevice, 2));
}
