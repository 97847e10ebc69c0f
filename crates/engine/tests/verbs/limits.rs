//! Back-pressure: limits on pending ops and on the bytes they hold.

use crate::{Watchdog, gate, nothing};
use std::sync::mpsc::channel;
use std::thread;
use weft_engine::{CloseOptions, Engine, EngineError, OnLimit, OpContext, Policy, Settings, Variable};

fn limited(ops: u64, bytes: u64, on_limit: OnLimit) -> Engine {
    let limits = Settings { max_pending_ops: ops, max_pending_bytes: bytes, on_limit, ..Settings::default() };
    Engine::new(Settings { workers: Some(1), ..limits }).expect("valid settings")
}

fn push(engine: &Engine, variable: &Variable, bytes: u64) -> Result<(), EngineError> {
    engine.op(nothing).mutate(variable).bytes(bytes).push()
}

#[test]
fn a_push_over_the_limit_is_refused_where_asked_to() {
    let _watchdog = Watchdog::new("a push over the limit is refused where asked to");
    let engine = limited(4, u64::MAX, OnLimit::Raise);
    let variable = engine.new_variable(None);
    for _ in 0..3 {
        let gate = gate::shut(&engine, &variable);
        (0..3).for_each(|_| push(&engine, &variable, 0).expect("there is room for four"));
        let refused = push(&engine, &variable, 0);
        assert!(matches!(refused, Err(EngineError::PendingLimit { pending: 5, limit: 4, unit: "ops" })), "{refused:?}");
        gate.complete(Ok(())).expect("a token used once");
        engine.wait_for_all().expect("no op fails");
    }
    assert_eq!((variable.version(), variable.completed_version()), (12, 12));
}

#[test]
fn bytes_are_limited_too() {
    let _watchdog = Watchdog::new("bytes are limited too");
    let engine = limited(1000, 100, OnLimit::Raise);
    let variable = engine.new_variable(None);
    for _ in 0..3 {
        push(&engine, &variable, 1000).expect("an op that is too large alone may run alone");
        engine.wait_for_all().expect("no op fails");
        let gate = gate::shut(&engine, &variable);
        push(&engine, &variable, 60).expect("there is room");
        push(&engine, &variable, 40).expect("there is room");
        let refused = push(&engine, &variable, 1);
        assert!(
            matches!(refused, Err(EngineError::PendingLimit { pending: 101, limit: 100, unit: "bytes" })),
            "{refused:?}"
        );
        push(&engine, &variable, 0).expect("it holds none");
        assert_eq!(engine.stats().pending_bytes, 100);
        gate.complete(Ok(())).expect("a token used once");
        engine.wait_for_all().expect("no op fails");
        assert_eq!(engine.stats().pending_bytes, 0);
    }
}

/// What was dropped is not pending, even if the engine has not got round to it.
#[test]
fn dropped_variables_take_no_room() {
    let _watchdog = Watchdog::new("dropped variables take no room");
    let engine = limited(4, u64::MAX, OnLimit::Raise);
    for _ in 0..100 {
        drop(engine.new_variable(None));
    }
    let variable = engine.new_variable(None);
    let gate = gate::shut(&engine, &variable);
    for _ in 0..3 {
        push(&engine, &engine.new_variable(None), 0).expect("three ops are pending at most");
    }
    gate.complete(Ok(())).expect("a token used once");
    engine.wait_for_all().expect("no op fails");
}

#[test]
fn a_push_over_the_limit_waits_for_room() {
    let _watchdog = Watchdog::new("a push over the limit waits for room");
    for (ops, bytes) in [(1, u64::MAX), (8, u64::MAX), (1000, 8)] {
        let engine = limited(ops, bytes, OnLimit::Block);
        let variable = engine.new_variable(None);
        let gate = gate::shut(&engine, &variable);
        let (pushed, has_pushed) = channel();
        let pusher = {
            let (engine, variable) = (engine.clone(), variable.clone());
            thread::spawn(move || {
                for _ in 0..100 {
                    push(&engine, &variable, 1).expect("an open engine");
                    pushed.send(()).expect("the test listens");
                }
            })
        };
        // The gate is an op, and holds no bytes.
        let room = if bytes == 8 { 8 } else { ops - 1 };
        (0..room).for_each(|_| has_pushed.recv().expect("there is room"));
        assert!(has_pushed.recv_timeout(crate::SHORT).is_err(), "there is no more than {room}");
        gate.complete(Ok(())).expect("a token used once");
        pusher.join().expect("no panic");
        engine.wait_for_all().expect("no op fails");
        assert_eq!(variable.completed_version(), 101);
    }
}

#[test]
fn all_who_wait_for_room_get_it() {
    let _watchdog = Watchdog::new("all who wait for room get it");
    let engine = limited(2, 100, OnLimit::Block);
    let variable = engine.new_variable(None);
    thread::scope(|scope| {
        for pusher in 0..4 {
            let (engine, variable) = (&engine, &variable);
            scope.spawn(move || {
                (0..2000).for_each(|at| push(engine, variable, (at * pusher) % 60).expect("an open engine"));
            });
        }
    });
    engine.wait_for_all().expect("no op fails");
    assert_eq!(variable.completed_version(), 8000);
}

#[test]
fn pushes_inside_ops_are_exempt() {
    let _watchdog = Watchdog::new("pushes inside ops are exempt");
    for on_limit in [OnLimit::Block, OnLimit::Raise] {
        let engine = limited(2, 10, on_limit);
        let variable = engine.new_variable(None);
        let (inside, mine) = (engine.clone(), variable.clone());
        let op = move |_: &mut OpContext<'_>| {
            (0..100).for_each(|_| push(&inside, &mine, 5).expect("inside an op there is no limit"));
            Ok(())
        };
        engine.op(op).mutate(&variable).push().expect("there is room");
        engine.close().expect("no op fails");
        assert_eq!(variable.completed_version(), 101);
    }
}

#[test]
fn who_waits_for_room_hears_of_the_close() {
    let _watchdog = Watchdog::new("who waits for room hears of the close");
    let engine = limited(1, u64::MAX, OnLimit::Block);
    let variable = engine.new_variable(None);
    let gate = gate::shut(&engine, &variable);
    let inside = engine.clone();
    let (begun, wait) = crate::waiting(move |wait| inside.wait_for_room(0, wait.tick.take()));
    begun.recv().expect("the wait begins");
    let closed = engine.close_with(CloseOptions { timeout: Some(crate::SHORT), ..CloseOptions::default() });
    assert!(matches!(closed, Err(EngineError::Timeout { .. })), "{closed:?}");
    let answer = wait.join().expect("no panic");
    assert!(matches!(answer, Err(EngineError::Closed { .. })), "{answer:?}");
    gate.complete(Ok(())).expect("a token used once");
    engine.close().expect("no op fails");
}

#[test]
fn settings_are_checked() {
    let wrong = [
        Settings { workers: Some(0), ..Settings::default() },
        Settings { workers: Some(Settings::MAX_WORKERS + 1), ..Settings::default() },
        Settings { max_pending_ops: 0, ..Settings::default() },
        Settings { max_pending_bytes: 0, ..Settings::default() },
    ];
    for settings in wrong {
        assert!(matches!(Engine::new(settings), Err(EngineError::InvalidArgument(_))));
    }
    let right = Settings { workers: Some(1), max_pending_ops: 1, max_pending_bytes: 1, ..Settings::default() };
    assert_eq!(Engine::new(right).expect("valid settings").policy(), Policy::WorkStealing);
}
