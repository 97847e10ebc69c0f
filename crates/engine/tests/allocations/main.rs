//! A replay allocates nothing once it has run.
//!
//! A program of its own: it counts every allocation of the process.

#![allow(clippy::disallowed_types)] // counts of the test, not of the engine

#[path = "../watchdog/mod.rs"]
mod watchdog;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use watchdog::Watchdog;
use weft_engine::{
    AccessKind, Engine, InOrder, PortId, ReplayBuilder, ReplayOptions, Settings, StepContext, StepKind, StepOptions,
    Variable,
};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Layers of steps of this kind, behind more ports than an op has room for in its cell.
fn allocations(kind: StepKind) -> u64 {
    const PORTS: usize = 20;
    const STEPS: usize = 400;
    let engine = Engine::new(Settings { workers: Some(2), ..Settings::default() }).expect("valid settings");
    let mut builder = ReplayBuilder::<AtomicU64>::new();
    let ports: Vec<_> = (0..PORTS).map(|_| builder.port()).collect();
    let mut steps = Vec::new();
    for at in 0..STEPS {
        let kind = if at % 8 == 0 { kind } else { StepKind::Plain };
        let count = |ran: &AtomicU64, _: &mut StepContext<'_, '_>| {
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let step = builder.step(count, &StepOptions { kind, ..StepOptions::default() });
        for earlier in [at.checked_sub(3), at.checked_sub(PORTS)].into_iter().flatten() {
            builder.needs(step, steps[earlier]).expect("an earlier step");
        }
        builder.uses(step, ports[at % PORTS], AccessKind::Mutate).expect("there is the port");
        steps.push(step);
    }
    let replay = engine.new_replay(builder).expect("a replay");
    let variables: Vec<Variable> = (0..PORTS).map(|_| engine.new_variable(None)).collect();
    let bound: Vec<(PortId, &Variable)> = ports.iter().copied().zip(&variables).collect();
    let ran = Arc::new(AtomicU64::new(0));
    let round = || {
        for _ in 0..3 {
            engine.push_replay(&replay, &bound, Arc::clone(&ran), &ReplayOptions::default()).expect("an open engine");
        }
        // A wait would make what it is woken by.
        while !variables.iter().all(Variable::is_ready) {
            std::thread::yield_now();
        }
    };
    (0..60).for_each(|_| round()); // instances, calls, what threads and lanes make once
    let fewest = (0..10).map(|_| {
        let before = ALLOCATIONS.load(Ordering::SeqCst);
        (0..5).for_each(|_| round());
        ALLOCATIONS.load(Ordering::SeqCst) - before
    });
    let fewest = fewest.min().unwrap_or(u64::MAX);
    engine.close().expect("no step fails");
    assert_eq!(ran.load(Ordering::SeqCst), (60 + 50) * 3 * STEPS as u64);
    fewest
}

#[test]
fn a_replay_allocates_nothing() {
    let _watchdog = Watchdog::new("a replay allocates nothing");
    for kind in [StepKind::Plain, StepKind::Native, StepKind::Hosted, StepKind::InOrder(InOrder::named("first"))] {
        assert_eq!(allocations(kind), 0, "{kind:?}");
    }
}
