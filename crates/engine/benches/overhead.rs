//! What the engine adds to a call, beside the call itself: `cargo bench --bench overhead`.

// The floors are measured on the bare thing.
#![allow(clippy::disallowed_types)]

use divan::{Bencher, black_box};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use weft_engine::{AccessKind, Accesses, Engine, NativeFunction, Policy, PushOptions, Settings, Variable};

fn main() {
    divan::main();
}

extern "C" fn nothing(_: *mut c_void) -> i32 {
    0
}

fn no_op() -> NativeFunction {
    // SAFETY: the function takes any argument from any thread.
    unsafe { NativeFunction::new(nothing, std::ptr::null_mut()) }
}

fn engine(policy: Policy) -> Engine {
    Engine::new(Settings { workers: Some(1), policy, ..Settings::default() }).expect("valid settings")
}

fn push(engine: &Engine, variable: &Variable) {
    let mut accesses = Accesses::new(engine);
    accesses.add(variable, AccessKind::Mutate).expect("a variable of this engine");
    engine.push(no_op(), &mut accesses, &PushOptions::default()).expect("an open engine");
}

/// The floor of everything: a call through a pointer.
#[divan::bench]
fn plain_call(bencher: Bencher<'_, '_>) {
    let payload = black_box(no_op());
    bencher.bench_local(|| payload.call());
}

/// The floor of a push: one atomic read-modify-write nobody contends for.
#[divan::bench]
fn one_atomic(bencher: Bencher<'_, '_>) {
    let counter = AtomicU64::new(0);
    bencher.bench_local(|| black_box(&counter).fetch_add(1, Ordering::AcqRel));
}

/// A push of a no-op and the wait for it.
#[divan::bench]
fn push_and_wait(bencher: Bencher<'_, '_>) {
    let engine = engine(Policy::WorkStealing);
    let variable = engine.new_variable(None);
    bencher.bench_local(|| {
        push(&engine, &variable);
        engine.wait_for_var(&variable)
    });
}

/// The same where the pushing thread runs the op.
#[divan::bench]
fn push_serial(bencher: Bencher<'_, '_>) {
    let engine = engine(Policy::Serial);
    let variable = engine.new_variable(None);
    bencher.bench_local(|| push(&engine, &variable));
}

/// A wait for a variable that is finished.
#[divan::bench]
fn wait_for_finished(bencher: Bencher<'_, '_>) {
    let engine = engine(Policy::WorkStealing);
    let variable = engine.new_variable(None);
    bencher.bench_local(|| engine.wait_for_var(&variable));
}

/// A chain of pushes, per op, with the wait at its end.
#[divan::bench(args = [1_000, 100_000])]
fn chain(bencher: Bencher<'_, '_>, ops: usize) {
    let engine = engine(Policy::WorkStealing);
    let variable = engine.new_variable(None);
    bencher.counter(divan::counter::ItemsCount::new(ops)).bench_local(|| {
        (0..ops).for_each(|_| push(&engine, &variable));
        engine.wait_for_all()
    });
}

/// A variable made and dropped.
#[divan::bench]
fn variable(bencher: Bencher<'_, '_>) {
    let engine = engine(Policy::WorkStealing);
    bencher.bench_local(|| engine.new_variable(None));
}
