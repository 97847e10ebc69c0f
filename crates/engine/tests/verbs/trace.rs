//! Tracing: what is recorded, what is not, and when it ends.

use super::gate::shut;
use super::{Watchdog, cancel, engine, failing, for_short, nothing, occupy, stealing};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use weft_engine::trace::{Kind, Note, Outcome, RecordedOp, Recording};
use weft_engine::{AccessKind, Accesses, Engine, EngineError, OpContext, Policy, PushOptions, Settings, Variable};

const ALL: u64 = u64::MAX;

fn named<'a>(recording: &'a Recording, name: &str) -> Vec<&'a RecordedOp> {
    recording.ops.iter().filter(|op| recording.names[op.name as usize] == name).collect()
}

fn one<'a>(recording: &'a Recording, name: &str) -> &'a RecordedOp {
    match named(recording, name)[..] {
        [op] => op,
        ref ops => panic!("{} ops are called {name}", ops.len()),
    }
}

fn accesses(recording: &Recording, op: usize) -> Vec<(u64, AccessKind, u64)> {
    let of_op = recording.accesses.iter().filter(|access| access.op == op);
    of_op.map(|it| (recording.variables[it.variable as usize].number, it.kind, it.version)).collect()
}

fn assert_ran(op: &RecordedOp) {
    assert!(0 < op.pushed && op.pushed <= op.ready && op.ready <= op.started, "{op:?}");
    assert!(op.started <= op.ended && op.ended <= op.settled, "{op:?}");
    assert!(matches!(op.outcome, Outcome::Done | Outcome::Failed), "{op:?}");
    assert!(op.worker.is_some(), "{op:?}");
}

#[test]
fn an_op_is_recorded_from_push_to_settled() {
    let _watchdog = Watchdog::new("an_op_is_recorded_from_push_to_settled");
    for policy in Policy::ALL {
        let engine = engine(policy, 2);
        let (x, y) = (engine.new_variable(Some("x")), engine.new_variable_of(800));
        engine.op(nothing).mutate(&x).name("before").push().expect("an open engine");
        engine.start_trace(ALL).expect("no trace so far");
        let inside = engine.clone();
        let outer = move |_: &mut OpContext<'_>| {
            inside.op(nothing).name("inner").push().expect("an open engine");
            Ok(())
        };
        engine.op(outer).read(&x).overwrite(&y).name("outer").bytes(7).push().expect("an open engine");
        engine.op(nothing).mutate(&y).read(&x).name("next").priority(-3).push().expect("an open engine");
        engine.wait_for_all().expect("no op fails");
        engine.wait_for_all().expect("nor one that was pushed meanwhile");
        let recording = engine.stop_trace().expect("a trace");

        let names = |op: &RecordedOp| recording.names[op.name as usize].clone();
        let ops: Vec<_> = recording.ops.iter().filter(|op| op.kind != Kind::Wait).map(names).collect();
        let expected = if policy == Policy::Serial { ["outer", "inner", "next"] } else { ["outer", "next", "inner"] };
        assert!(ops == expected || ops == ["outer", "inner", "next"], "{policy}: {ops:?}");
        ["outer", "inner", "next"].iter().for_each(|name| assert_ran(one(&recording, name)));
        let index = |name| recording.ops.iter().position(|op| names(op) == name).expect("recorded");
        assert_eq!(one(&recording, "inner").parent, Some(index("outer")), "{policy}");
        assert_eq!((one(&recording, "outer").bytes, one(&recording, "next").priority), (7, -3), "{policy}");
        let outer = [(x.number(), AccessKind::Read, 1), (y.number(), AccessKind::Overwrite, 1)];
        assert_eq!(accesses(&recording, index("outer")), outer, "{policy}");
        let next = [(y.number(), AccessKind::Mutate, 2), (x.number(), AccessKind::Read, 1)];
        assert_eq!(accesses(&recording, index("next")), next, "{policy}");
        let bytes: Vec<_> = recording.variables.iter().map(|it| (it.name.as_deref(), it.bytes)).collect();
        assert_eq!(bytes, [(Some("x"), 0), (None, 800)], "{policy}");
        assert!(recording.ops.iter().all(|op| op.settled <= recording.duration), "{policy}");
        assert_eq!((recording.dropped, recording.errors.len()), (0, 0), "{policy}");
        engine.close().expect("no op fails");
    }
}

#[test]
fn what_failed_and_what_did_not_run_say_why() {
    let _watchdog = Watchdog::new("what_failed_and_what_did_not_run_say_why");
    let engine = stealing(1);
    let (x, y) = (engine.new_variable(None), engine.new_variable(None));
    engine.start_trace(ALL).expect("no trace so far");
    engine.op(failing).mutate(&x).name("culprit").push().expect("an open engine");
    engine.op(nothing).read(&x).name("victim").push().expect("an open engine");
    let release = occupy(&engine, &y);
    engine.op(nothing).mutate(&y).name("dropped").push().expect("an open engine");
    let dropped = || engine.read_trace().map(|recording| one(&recording, "dropped").outcome);
    cancel(&engine, release);
    assert_eq!(dropped().expect("a trace"), Outcome::Cancelled);
    let recording = engine.stop_trace().expect("a closed engine can still be read");
    let outcome = |name| one(&recording, name).outcome;
    assert_eq!((outcome("culprit"), outcome("victim")), (Outcome::Failed, Outcome::Skipped));
    let reasons: Vec<_> = recording.errors.iter().map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(reasons, ["on purpose", "skipped, as op 'culprit' failed"]);
    assert_ran(one(&recording, "culprit"));
    let victim = one(&recording, "victim");
    assert_eq!((victim.started, victim.ended, victim.worker), (0, 0, None));
    assert!(victim.settled > 0);
}

#[test]
fn what_is_pending_has_not_happened() {
    let _watchdog = Watchdog::new("what_is_pending_has_not_happened");
    let engine = stealing(1);
    let variable = engine.new_variable(None);
    engine.start_trace(ALL).expect("no trace so far");
    let release = occupy(&engine, &variable);
    engine.op(nothing).mutate(&variable).name("waiting").push().expect("an open engine");
    let recording = engine.stop_trace().expect("a trace");
    let (running, waiting) = (one(&recording, "occupant"), one(&recording, "waiting"));
    assert!(running.pushed > 0 && running.ready > 0 && running.started > 0 && running.worker.is_some(), "{running:?}");
    assert_eq!((running.ended, running.settled, running.outcome), (0, 0, Outcome::Pending));
    assert!(waiting.pushed > 0);
    assert_eq!((waiting.ready, waiting.started, waiting.worker), (0, 0, None));
    // What is left of one trace is not taken for a part of the next one.
    engine.start_trace(ALL).expect("the other one was stopped");
    drop(release);
    engine.wait_for_all().expect("no op fails");
    engine.op(nothing).name("new").push().expect("an open engine");
    engine.wait_for_all().expect("no op fails");
    let recording = engine.stop_trace().expect("a trace");
    let ops: Vec<_> = recording.ops.iter().filter(|op| op.kind != Kind::Wait).collect();
    assert_eq!(ops.len(), 1);
    assert_ran(one(&recording, "new"));
}

#[test]
fn an_asynchronous_op_ends_with_its_token() {
    let _watchdog = Watchdog::new("an_asynchronous_op_ends_with_its_token");
    let engine = stealing(1);
    let variable = engine.new_variable(None);
    engine.start_trace(ALL).expect("no trace so far");
    let token = shut(&engine, &variable);
    engine.op(nothing).name("meanwhile").push().expect("an open engine");
    while one(&engine.read_trace().expect("a trace"), "meanwhile").outcome == Outcome::Pending {
        thread::yield_now();
    }
    token.complete(Ok(())).expect("unused");
    engine.wait_for_all().expect("no op fails");
    let recording = engine.stop_trace().expect("a trace");
    let (gate, meanwhile) = (one(&recording, "gate"), one(&recording, "meanwhile"));
    assert_ran(gate);
    assert!(gate.ended > meanwhile.ended);
}

#[test]
fn waits_are_recorded() {
    let _watchdog = Watchdog::new("waits_are_recorded");
    let engine = stealing(1);
    let variable = engine.new_variable(None);
    engine.start_trace(ALL).expect("no trace so far");
    let release = occupy(&engine, &variable);
    let answer = engine.wait_for_var_with(&variable, &mut for_short());
    assert!(matches!(answer, Err(EngineError::Timeout { .. })), "{answer:?}");
    drop(release);
    engine.wait_to_write(&variable).expect("no op fails");
    engine.op(failing).mutate(&variable).push().expect("an open engine");
    engine.wait_to_write(&variable).expect_err("the op fails");
    engine.wait_for_all().expect("told already");
    let recording = engine.stop_trace().expect("a trace");
    let outcomes = |name| named(&recording, name).iter().map(|op| (op.kind, op.outcome)).collect::<Vec<_>>();
    assert_eq!(outcomes("wait_for_var"), [(Kind::Wait, Outcome::Cancelled)]);
    assert_eq!(outcomes("wait_to_write"), [(Kind::Wait, Outcome::Done), (Kind::Wait, Outcome::Failed)]);
    assert_eq!(outcomes("wait_for_all"), [(Kind::Wait, Outcome::Done)]);
    let wait = one(&recording, "wait_for_var");
    assert!(wait.started == wait.pushed && wait.ended > wait.started && wait.worker.is_none(), "{wait:?}");
}

#[test]
fn what_exceeds_the_limit_is_counted() {
    let _watchdog = Watchdog::new("what_exceeds_the_limit_is_counted");
    let engine = stealing(2);
    let variable = engine.new_variable(None);
    engine.start_trace(100).expect("no trace so far");
    for _ in 0..150 {
        engine.op(nothing).mutate(&variable).name("op").push().expect("an open engine");
    }
    engine.wait_for_all().expect("no op fails");
    let recording = engine.stop_trace().expect("a trace");
    assert_eq!((recording.ops.len(), recording.dropped), (100, 51)); // the wait is one of them
    assert_eq!(variable.completed_version(), 150);
    recording.ops.iter().for_each(assert_ran);
    let versions: Vec<_> = recording.accesses.iter().map(|access| access.version).collect();
    assert_eq!(versions, (1..=100).collect::<Vec<_>>());
}

/// A sample leaves ops alone when it is full, those that run at their push, too, and a trace behind it has its own.
#[test]
fn a_sample_is_over_when_it_is_full() {
    let _watchdog = Watchdog::new("a_sample_is_over_when_it_is_full");
    let engine = stealing(2);
    let variable = engine.new_variable(None);
    let push = || engine.op(nothing).mutate(&variable).name("op").push().expect("an open engine");
    engine.start_sample(100).expect("no trace so far");
    (0..100).for_each(|_| push());
    assert!(engine.is_traced(), "nothing was refused");
    push();
    assert!(!engine.is_traced());
    assert!(matches!(engine.start_trace(ALL), Err(EngineError::Traced { .. })), "it is not stopped yet");
    (0..50).for_each(|_| push());
    engine.wait_for_all().expect("no op fails");
    let recording = engine.stop_trace().expect("a trace");
    assert_eq!((recording.ops.len(), recording.dropped), (100, 1)); // the first of them that found no room
    recording.ops.iter().for_each(assert_ran);
    engine.start_sample(64).expect("the other one was stopped");
    for _ in 0..65 {
        let span = engine.start_span().expect("a trace with room");
        engine.record_run(Note::default(), span);
    }
    assert!(engine.start_span().is_none(), "the last one found no room");
    assert_eq!(engine.stop_trace().expect("a trace").ops.len(), 64);
    engine.start_trace(ALL).expect("the other one was stopped");
    push();
    engine.wait_for_all().expect("no op fails");
    assert_eq!(engine.stop_trace().expect("a trace").ops.len(), 2);
}

#[test]
fn one_trace_at_a_time() {
    let engine = stealing(1);
    assert!(matches!(engine.stop_trace(), Err(EngineError::NotTraced { .. })));
    assert!(matches!(engine.read_trace(), Err(EngineError::NotTraced { .. })));
    engine.start_trace(ALL).expect("no trace so far");
    assert!(matches!(engine.start_trace(ALL), Err(EngineError::Traced { .. })));
    assert!(engine.is_traced());
    engine.stop_trace().expect("a trace");
    assert!(!engine.is_traced());
    engine.start_trace(ALL).expect("the other one was stopped");
    // Another engine has its own.
    stealing(1).start_trace(ALL).expect("no trace of this one");
}

#[test]
fn an_op_of_any_number_of_accesses_is_recorded() {
    let engine = stealing(1);
    let variables: Vec<Variable> = (0..70_000).map(|_| engine.new_variable(None)).collect();
    engine.start_trace(ALL).expect("no trace so far");
    let mut accesses = Accesses::new(&engine);
    variables.iter().for_each(|it| accesses.add(it, AccessKind::Read).expect("a variable of this engine"));
    engine.push(nothing, &mut accesses, &PushOptions::default()).expect("an open engine");
    engine.op(nothing).name("after").push().expect("an open engine");
    engine.wait_for_all().expect("no op fails");
    let recording = engine.stop_trace().expect("a trace");
    assert_eq!(recording.accesses.len(), variables.len());
    assert_ran(one(&recording, "after"));
}

/// Traces start, are read and stop while threads push; every op that is kept is whole.
#[test]
fn traces_begin_and_end_while_threads_push() {
    const PUSHERS: usize = 4;
    let _watchdog = Watchdog::new("traces_begin_and_end_while_threads_push");
    for policy in Policy::ALL {
        let settings = Settings { policy, workers: Some(2), max_pending_ops: 512, ..Settings::default() };
        let engine = Engine::new(settings).expect("valid settings");
        let (shared, stop) = (engine.new_variable(Some("shared")), Arc::new(AtomicBool::new(false)));
        let push = |engine: &Engine, own: &Variable, name: &str| {
            let op = engine.op(nothing).read(own).mutate(&shared).name(name);
            op.push().expect("an open engine");
            engine.op(nothing).mutate(own).push().expect("an open engine");
        };
        thread::scope(|scope| {
            for pusher in 0..PUSHERS {
                let (engine, stop, push) = (&engine, Arc::clone(&stop), &push);
                scope.spawn(move || {
                    let own = engine.new_variable(None);
                    let name = format!("pusher {pusher}");
                    while !stop.load(Ordering::Relaxed) {
                        push(engine, &own, &name);
                    }
                });
            }
            let _stop = StopAtEnd(&stop);
            for round in 0..20 {
                match round % 3 {
                    0 => engine.start_trace(5000),
                    1 => engine.start_trace(50),
                    _ => engine.start_sample(50),
                }
                .expect("no trace so far");
                check(&engine.read_trace().expect("a trace"));
                thread::yield_now();
                check(&engine.stop_trace().expect("a trace"));
            }
        });
        engine.wait_for_all().expect("no op fails");
        engine.close().expect("no op fails");
    }
}

/// Tells pushers to stop, even if the test fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn check(recording: &Recording) {
    let tickets = recording.ops.iter().map(|op| op.number).filter(|&number| number < u64::MAX);
    assert!(tickets.collect::<Vec<_>>().is_sorted_by(|a, b| a < b));
    let mut made = std::collections::HashMap::new();
    for access in &recording.accesses {
        let version = made.entry(access.variable).or_insert(access.version - u64::from(access.kind.makes_version()));
        *version += u64::from(access.kind.makes_version());
        assert_eq!(access.version, *version, "versions go up one by one");
    }
    for op in recording.ops.iter().filter(|op| op.kind != Kind::Wait) {
        let times = [op.pushed, op.ready, op.started, op.ended, op.settled];
        let happened: Vec<_> = times.into_iter().filter(|&time| time > 0).collect();
        assert!(happened.is_sorted() && times[..happened.len()] == happened[..], "{op:?}");
        assert!(op.pusher < u16::try_from(recording.threads.len()).expect("few threads"));
    }
}

#[test]
fn a_wait_for_room_is_recorded() {
    let _watchdog = Watchdog::new("a_wait_for_room_is_recorded");
    let settings = Settings { workers: Some(1), max_pending_ops: 1, ..Settings::default() };
    let engine = Engine::new(settings).expect("valid settings");
    let variable = engine.new_variable(None);
    engine.start_trace(ALL).expect("no trace so far");
    let release = occupy(&engine, &variable);
    let pusher = engine.clone();
    let pushing = thread::spawn(move || pusher.op(nothing).name("late").push());
    while engine.stall_report().waiting.is_empty() {
        thread::yield_now();
    }
    drop(release);
    pushing.join().expect("no panic").expect("an open engine");
    engine.wait_for_all().expect("no op fails");
    let recording = engine.stop_trace().expect("a trace");
    let (wait, late) = (one(&recording, "wait for room"), one(&recording, "late"));
    assert_eq!((wait.kind, wait.number, wait.worker), (Kind::Wait, u64::MAX, None));
    assert!(wait.started < wait.ended && wait.ended <= late.pushed);
}

/// It runs untimed, so there is nothing to be told of it when it ends in the next trace.
#[test]
fn an_op_that_outlasts_its_trace_is_in_no_other() {
    let _watchdog = Watchdog::new("an_op_that_outlasts_its_trace_is_in_no_other");
    let engine = stealing(1);
    let variable = engine.new_variable(None);
    let release = occupy(&engine, &variable);
    engine.start_trace(ALL).expect("no trace so far");
    let (sender, receiver) = channel();
    let late = move |context: &mut OpContext<'_>| {
        sender.send(context.defer()).expect("the test waits for it");
        Ok(())
    };
    engine.op(late).mutate(&variable).name("late").push().expect("an open engine");
    let first = engine.stop_trace().expect("a trace");
    assert_eq!(one(&first, "late").outcome, Outcome::Pending);
    drop(release);
    let token = receiver.recv().expect("it starts");
    engine.start_trace(ALL).expect("no other trace");
    token.complete(Ok(())).expect("a token used once");
    engine.wait_for_var(&variable).expect("no op fails");
    assert!(named(&engine.stop_trace().expect("a trace"), "late").is_empty());
}
