//! Short steps, side by side: workers that wait for each other's steps.

use super::watchdog::Watchdog;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use weft_engine::{AccessKind, Engine, ReplayBuilder, ReplayOptions, Settings, StepContext, StepOptions};

const ROWS: usize = 400;
const RUNS: usize = 20;

/// A value for each cell of a grid, and the threads that have computed some.
struct Grid {
    values: Vec<AtomicU64>,
    threads: Mutex<HashSet<ThreadId>>,
}

/// Takes about a microsecond.
fn mixed(mut value: u64) -> u64 {
    for round in 0..400 {
        value = (value ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    }
    value
}

/// The cells of the row before that a cell needs.
fn needed(row: usize, column: usize, width: usize) -> Vec<usize> {
    let columns = column.saturating_sub(1)..(column + 2).min(width);
    if row == 0 { Vec::new() } else { columns.map(|column| (row - 1) * width + column).collect() }
}

fn value_of(cell: usize, values: impl Iterator<Item = u64>) -> u64 {
    mixed(values.fold(cell as u64, |sum, value| sum.rotate_left(7) ^ value))
}

fn check(width: usize, workers: usize) {
    let _watchdog = Watchdog::new(&format!("short steps, width {width}, {workers} workers"));
    let engine = Engine::new(Settings { workers: Some(workers), ..Settings::default() }).expect("valid settings");
    let mut builder = ReplayBuilder::<Grid>::new();
    let port = builder.port();
    let (mut steps, mut expected) = (Vec::new(), Vec::<u64>::new());
    for cell in 0..ROWS * width {
        let before = needed(cell / width, cell % width, width);
        expected.push(value_of(cell, before.iter().map(|at| expected[*at])));
        let reads = before.clone();
        let run = move |grid: &Grid, _: &mut StepContext<'_, '_>| {
            grid.threads.lock().expect("no step panics").insert(thread::current().id());
            // ORDERING: the engine's; a step that comes too early reads a zero.
            let seen = reads.iter().map(|at| grid.values[*at].load(Ordering::Relaxed));
            grid.values[cell].store(value_of(cell, seen), Ordering::Relaxed);
            Ok(())
        };
        let step = builder.step(run, &StepOptions::default());
        before.iter().for_each(|at| builder.needs(step, steps[*at]).expect("an earlier step"));
        builder.uses(step, port, AccessKind::Mutate).expect("there is the port");
        steps.push(step);
    }
    let replay = engine.new_replay(builder).expect("a replay");
    let variable = engine.new_variable(None);
    let mut threads = HashSet::new();
    let mut run = 0;
    // On a busy machine one worker may be alone for a while; the watchdog says if it always is.
    while run < RUNS || threads.len() == 1 {
        let values = (0..ROWS * width).map(|_| AtomicU64::new(0)).collect();
        let grid = Arc::new(Grid { values, threads: Mutex::default() });
        engine
            .push_replay(&replay, &[(port, &variable)], Arc::clone(&grid), &ReplayOptions::default())
            .expect("it is open");
        engine.wait_for_all().expect("no step fails");
        let found: Vec<_> = grid.values.iter().map(|value| value.load(Ordering::Relaxed)).collect();
        assert!(
            found == expected,
            "run {run}: cell {:?} differs",
            found.iter().zip(&expected).position(|(a, b)| a != b)
        );
        threads.extend(grid.threads.lock().expect("no step panics").drain());
        run += 1;
    }
}

#[test]
fn two_workers_in_turns() {
    check(2, 2);
}

#[test]
fn two_workers_at_a_row() {
    check(16, 2);
}

#[test]
fn four_workers_at_three_columns() {
    check(3, 4);
}

/// More workers than are given steps from hand to hand, and more than most machines run at once.
#[test]
fn twelve_workers_at_a_wide_row() {
    check(40, 12);
}
