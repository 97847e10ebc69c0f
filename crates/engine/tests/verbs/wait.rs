//! Waits: what they cover, what they need, and which could never end.

use crate::{Log, SHORT, Watchdog, engine, failed_op, failing, for_short, gate, nothing, occupy, stealing, waiting};
use std::sync::mpsc::channel;
use std::time::Instant;
use weft_engine::{Engine, EngineError, OpContext, Policy, Variable, Wait};

fn deadlocked(answer: Result<(), EngineError>) -> Vec<String> {
    match answer {
        Err(EngineError::Deadlock { ops, .. }) => ops,
        other => panic!("expected a deadlock, got {other:?}"),
    }
}

#[test]
fn a_finished_variable_needs_no_worker() {
    let _watchdog = Watchdog::new("a finished variable needs no worker");
    let engine = stealing(1);
    let (busy, done, never) = (engine.new_variable(None), engine.new_variable(None), engine.new_variable(None));
    engine.op(nothing).mutate(&done).push().expect("an open engine");
    engine.wait_for_var(&done).expect("no op fails");
    let release = occupy(&engine, &busy);
    for variable in [&done, &never] {
        engine.wait_for_var(variable).expect("nothing is pending");
        engine.wait_to_write(variable).expect("nothing is pending");
        assert!(variable.is_ready());
    }
    drop(release);
}

#[test]
fn a_wait_runs_out_of_time() {
    let _watchdog = Watchdog::new("a wait runs out of time");
    for policy in Policy::ALL {
        let engine = engine(policy, 2);
        let variable = engine.new_variable(Some("slow"));
        let gate = gate::shut(&engine, &variable);
        let start = Instant::now();
        let waits = [
            engine.wait_for_var_with(&variable, &mut for_short()),
            engine.wait_to_write_with(&variable, &mut for_short()),
            engine.wait_for_all_with(&mut for_short()),
        ];
        assert!(start.elapsed() >= 3 * SHORT);
        for wait in waits {
            assert!(matches!(&wait, Err(EngineError::Timeout { after, .. }) if *after == SHORT), "{wait:?}");
        }
        gate.complete(Ok(())).expect("a token used once");
        engine.wait_for_all().expect("no op fails");
        engine.wait_for_var_with(&variable, &mut for_short()).expect("it is finished");
    }
}

/// A wait for exclusive access that gives up leaves the queue as if it had never come.
#[test]
fn a_wait_that_gave_up_holds_nobody_up() {
    let _watchdog = Watchdog::new("a wait that gave up holds nobody up");
    let (engine, (hold, held)) = (stealing(2), channel::<()>());
    let variable = engine.new_variable(None);
    let reader = move |_: &mut OpContext<'_>| {
        let _ = held.recv();
        Ok(())
    };
    engine.op(reader).read(&variable).push().expect("an open engine");
    let (first, second) = (engine.clone(), variable.clone());
    let (begun, waiter) = waiting(move |wait| {
        wait.timeout = Some(10 * SHORT);
        first.wait_to_write_with(&second, wait)
    });
    begun.recv().expect("the wait begins");
    let (ran, has_run) = channel();
    let late = move |_: &mut OpContext<'_>| {
        ran.send(()).expect("the test waits for it");
        Ok(())
    };
    engine.op(late).read(&variable).push().expect("an open engine");
    let answer = waiter.join().expect("no panic");
    assert!(matches!(answer, Err(EngineError::Timeout { .. })), "{answer:?}");
    has_run.recv().expect("the late reader runs beside the first one");
    drop(hold);
    engine.wait_to_write(&variable).expect("no op fails");
}

#[test]
fn a_wait_ends_when_its_tick_says_so() {
    let _watchdog = Watchdog::new("a wait ends when its tick says so");
    let engine = stealing(1);
    let variable = engine.new_variable(None);
    let gate = gate::shut(&engine, &variable);
    let mut ticks = 0;
    let mut tick = || {
        ticks += 1;
        ticks < 3
    };
    let answer = engine.wait_for_var_with(&variable, &mut Wait { tick: Some(&mut tick), ..Wait::default() });
    assert!(matches!(answer, Err(EngineError::Interrupted)), "{answer:?}");
    assert_eq!(ticks, 3);
    gate.complete(Ok(())).expect("a token used once");
    engine.wait_for_var(&variable).expect("no op fails");
}

#[test]
fn only_a_wait_to_write_waits_for_reads() {
    let _watchdog = Watchdog::new("only a wait to write waits for reads");
    let (engine, (hold, held)) = (stealing(1), channel::<()>());
    let variable = engine.new_variable(None);
    let reader = move |_: &mut OpContext<'_>| {
        let _ = held.recv();
        Ok(())
    };
    engine.op(reader).read(&variable).push().expect("an open engine");
    engine.wait_for_var(&variable).expect("nothing is mutated");
    let answer = engine.wait_to_write_with(&variable, &mut for_short());
    assert!(matches!(answer, Err(EngineError::Timeout { .. })), "{answer:?}");
    drop(hold);
    engine.wait_to_write(&variable).expect("no op fails");
}

#[test]
fn a_wait_for_all_covers_what_came_before() {
    let _watchdog = Watchdog::new("a wait for all covers what came before");
    let engine = stealing(2);
    let variables = [engine.new_variable(None), engine.new_variable(None)];
    let before = gate::shut(&engine, &variables[0]);
    let waiter = engine.clone();
    let (begun, wait) = waiting(move |wait| waiter.wait_for_all_with(wait));
    begun.recv().expect("the wait begins");
    let after = gate::shut(&engine, &variables[1]);
    before.complete(Ok(())).expect("a token used once");
    wait.join().expect("no panic").expect("no op fails");
    assert_eq!(engine.stats().pending, 1);
    after.complete(Ok(())).expect("a token used once");
    engine.wait_for_all().expect("no op fails");
}

/// Many waits at the same time, each told of its own variable.
#[test]
fn each_waiter_hears_of_its_own_variable() {
    let _watchdog = Watchdog::new("each waiter hears of its own variable");
    let engine = stealing(2);
    let waits: Vec<_> = (0..8)
        .map(|_| {
            let variable = engine.new_variable(None);
            let gate = gate::shut(&engine, &variable);
            let engine = engine.clone();
            let (begun, wait) = waiting(move |wait| engine.wait_for_var_with(&variable, wait));
            begun.recv().expect("the wait begins");
            (gate, wait)
        })
        .collect();
    for (gate, wait) in waits.into_iter().rev() {
        assert!(!wait.is_finished());
        gate.complete(Ok(())).expect("a token used once");
        wait.join().expect("no panic").expect("no op fails");
    }
}

/// The answer must reach a waiter though no worker is free to register its wait.
#[test]
fn a_wait_behind_many_pushes_needs_no_worker() {
    let _watchdog = Watchdog::new("a wait behind many pushes needs no worker");
    let engine = stealing(1);
    let (awaited, busy) = (engine.new_variable(None), engine.new_variable(None));
    let gate = gate::shut(&engine, &awaited);
    let release = occupy(&engine, &busy);
    for _ in 0..1500 {
        engine.op(nothing).mutate(&busy).push().expect("an open engine");
    }
    let (waiter, variable) = (engine.clone(), awaited.clone());
    let (begun, wait) = waiting(move |wait| waiter.wait_for_var_with(&variable, wait));
    begun.recv().expect("the wait begins");
    gate.complete(Ok(())).expect("a token used once");
    wait.join().expect("no panic").expect("no op fails");
    drop(release);
}

/// Pushes an op that pushes one that ... `depth` times, each waiting for the next.
fn nest(engine: &Engine, variable: &Variable, depth: u32, log: &Log<u32>) {
    let captured = (engine.clone(), log.clone());
    let op = move |_: &mut OpContext<'_>| {
        let (engine, log) = &captured;
        if depth > 0 {
            let inner = engine.new_variable(None);
            nest(engine, &inner, depth - 1, log);
            engine.wait_for_var(&inner).expect("no op fails");
        }
        log.note(depth);
        Ok(())
    };
    engine.op(op).mutate(variable).push().expect("an open engine");
}

#[test]
fn an_op_may_wait_for_another_with_one_worker() {
    let _watchdog = Watchdog::new("an op may wait for another with one worker");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 1), Log::default());
        let variable = engine.new_variable(None);
        for _ in 0..3 {
            nest(&engine, &variable, 100, &log);
        }
        engine.wait_for_var(&variable).expect("no op fails");
        assert!(log.all().into_iter().eq((0..=100).chain(0..=100).chain(0..=100)), "{policy}");
        // The workers that stood in are gone, or at rest: the engine goes on as before.
        engine.op(nothing).mutate(&variable).push().expect("an open engine");
        engine.close().expect("no op fails");
    }
}

#[test]
fn an_op_must_not_wait_for_itself() {
    let _watchdog = Watchdog::new("an op must not wait for itself");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 1), Log::default());
        let (mutated, read) = (engine.new_variable(Some("mine")), engine.new_variable(None));
        let (inner, held, noted) = (engine.clone(), [mutated.clone(), read.clone()], log.clone());
        let op = move |_: &mut OpContext<'_>| {
            for variable in &held {
                noted.note(deadlocked(inner.wait_for_var(variable)));
                noted.note(deadlocked(inner.wait_to_write(variable)));
            }
            noted.note(deadlocked(inner.wait_for_all()));
            noted.note(deadlocked(inner.close()));
            Ok(())
        };
        engine.op(op).name("narcissus").mutate(&mutated).read(&read).push().expect("an open engine");
        engine.wait_for_all().expect("the op itself goes on");
        assert_eq!(log.all().len(), 6, "{policy}");
        assert!(log.all().iter().flatten().all(|op| op == "op 'narcissus'"), "{policy}: {:?}", log.all());
        engine.close().expect("no op fails");
    }
}

/// Two running ops wait for each other's variables: the second to ask is refused.
#[test]
fn a_cycle_of_two_is_refused() {
    let _watchdog = Watchdog::new("a cycle of two is refused");
    let (engine, log) = (stealing(2), Log::default());
    let variables = [engine.new_variable(Some("a")), engine.new_variable(Some("b"))];
    let meeting = std::sync::Arc::new(std::sync::Barrier::new(2));
    for (name, mine, other) in [("left", 0, 1), ("right", 1, 0)] {
        let (engine_inside, awaited) = (engine.clone(), variables[other].clone());
        let (meeting, noted) = (meeting.clone(), log.clone());
        let op = move |_: &mut OpContext<'_>| {
            meeting.wait();
            if let Err(EngineError::Deadlock { ops, .. }) = engine_inside.wait_for_var(&awaited) {
                noted.note(ops);
            }
            Ok(())
        };
        engine.op(op).name(name).mutate(&variables[mine]).push().expect("an open engine");
    }
    engine.wait_for_all().expect("the ops themselves go on");
    let refused = log.all();
    assert_eq!(refused.len(), 1, "one of the two waits");
    for op in ["op 'left'", "op 'right'"] {
        assert!(refused[0].iter().any(|named| named == op), "{op} in {refused:?}");
    }
}

/// An op waits for a variable that a queued op will hold, which waits for that op.
#[test]
fn a_cycle_through_a_queued_op_is_refused() {
    let _watchdog = Watchdog::new("a cycle through a queued op is refused");
    let (engine, log) = (stealing(2), Log::default());
    let (held, wanted) = (engine.new_variable(None), engine.new_variable(None));
    let (go, gone) = channel::<()>();
    let (inside, awaited, noted) = (engine.clone(), wanted.clone(), log.clone());
    let asker = move |_: &mut OpContext<'_>| {
        let _ = gone.recv();
        noted.note(deadlocked(inside.wait_for_var(&awaited)));
        Ok(())
    };
    engine.op(asker).name("asker").mutate(&held).push().expect("an open engine");
    engine.op(nothing).name("between").mutate(&held).mutate(&wanted).push().expect("an open engine");
    drop(go);
    engine.wait_for_all().expect("the ops themselves go on");
    let ops = log.all().remove(0);
    assert_eq!(ops.first(), ops.last());
    assert!(["op 'asker'", "op 'between'"].iter().all(|op| ops.iter().any(|named| named == op)), "{ops:?}");
}

/// As before, but the queued op only reads what is waited for, and so holds no reader up.
#[test]
fn a_wait_beside_a_queued_read_is_no_cycle() {
    let _watchdog = Watchdog::new("a wait beside a queued read is no cycle");
    let (engine, log) = (stealing(2), Log::default());
    let (held, wanted) = (engine.new_variable(None), engine.new_variable(None));
    let gate = gate::shut(&engine, &wanted);
    let (go, gone) = channel::<()>();
    let (inside, awaited, noted) = (engine.clone(), wanted.clone(), log.clone());
    let (waits, is_waiting) = channel();
    let asker = move |_: &mut OpContext<'_>| {
        let _ = gone.recv();
        let mut tick = || {
            let _ = waits.send(()); // heard once, called again and again
            true
        };
        let answer = inside.wait_for_var_with(&awaited, &mut Wait { tick: Some(&mut tick), ..Wait::default() });
        noted.note(answer.map_or_else(|error| error.to_string(), |()| "done".to_owned()));
        Ok(())
    };
    engine.op(asker).mutate(&held).push().expect("an open engine");
    engine.op(nothing).mutate(&held).read(&wanted).push().expect("an open engine");
    drop(go);
    is_waiting.recv().expect("the op waits, and is not refused");
    gate.complete(Ok(())).expect("a token used once");
    engine.wait_for_all().expect("no op fails");
    assert_eq!(log.all(), ["done"]);
}

#[test]
fn a_wait_inside_an_op_raises_what_failed() {
    let _watchdog = Watchdog::new("a wait inside an op raises what failed");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 1), Log::default());
        let variable = engine.new_variable(None);
        let (inside, noted) = (engine.clone(), log.clone());
        let op = move |_: &mut OpContext<'_>| {
            let inner = inside.new_variable(None);
            inside.op(failing).name("inner").mutate(&inner).push().expect("an open engine");
            noted.note(failed_op(inside.wait_for_var(&inner)));
            Ok(())
        };
        engine.op(op).mutate(&variable).push().expect("an open engine");
        engine.wait_for_all().expect("the failure was told inside");
        assert_eq!(log.all(), ["op 'inner'"], "{policy}");
    }
}
