//! Calls wait for one of their replay's instances only as long as others can end.

use super::gate;
use super::ports::{Log, engine, step};
use super::watchdog::Watchdog;
use std::sync::{Arc, Mutex, mpsc::channel};
use weft_engine::{
    AccessKind, Engine, EngineError, OpContext, PortId, PushOptions, Replay, ReplayBuilder, ReplayOptions, Settings,
    StepContext, StepKind, StepOptions, Variable,
};

/// One step that logs its name and mutates one port.
fn logging(engine: &Engine, instances: u32) -> (Replay<Log>, PortId) {
    let mut builder = ReplayBuilder::new();
    builder.instances(instances);
    let port = builder.port();
    let only = step(&mut builder, "only");
    builder.uses(only, port, AccessKind::Mutate).expect("there is the port");
    (engine.new_replay(builder).expect("a replay"), port)
}

fn push(engine: &Engine, (replay, port): &(Replay<Log>, PortId), variable: &Variable, log: &Arc<Log>) {
    engine
        .push_replay(replay, &[(*port, variable)], Arc::clone(log), &ReplayOptions::default())
        .expect("an open engine");
}

#[test]
fn calls_that_can_run_do_not_wait_for_those_that_cannot() {
    let _watchdog = Watchdog::new("calls that can run do not wait for those that cannot");
    for workers in [1, 4] {
        let engine = engine(workers);
        let replay = logging(&engine, 2);
        let (held, log) = (engine.new_variable(None), Arc::new(Log::default()));
        let gate = gate::shut(&engine, &held);
        for _ in 0..5 {
            push(&engine, &replay, &held, &log);
        }
        let free: Vec<_> = (0..20).map(|_| engine.new_variable(None)).collect();
        for variable in &free {
            push(&engine, &replay, variable, &log);
        }
        for variable in &free {
            engine.wait_for_var(variable).expect("no step fails");
        }
        gate.complete(Ok(())).expect("a token used once");
        engine.wait_for_all().expect("no step fails");
        assert_eq!(log.steps.lock().expect("no panic").len(), 25);
    }
}

#[test]
fn an_op_may_wait_for_a_call_behind_those_that_wait_for_it() {
    let _watchdog = Watchdog::new("an op may wait for a call behind those that wait for it");
    let engine = engine(2);
    let replay = logging(&engine, 2);
    let (held, free, log) = (engine.new_variable(None), engine.new_variable(None), Arc::new(Log::default()));
    let (sender, receiver) = channel::<()>();
    let (inner, waited_for) = (engine.clone(), free.clone());
    let wait = move |_: &mut OpContext<'_>| {
        receiver.recv().expect("the test says when");
        inner.wait_for_var(&waited_for).expect("no step fails, and nothing waits in a circle");
        Ok(())
    };
    engine.op(wait).mutate(&held).push().expect("an open engine");
    push(&engine, &replay, &held, &log);
    push(&engine, &replay, &held, &log);
    push(&engine, &replay, &free, &log);
    sender.send(()).expect("the op listens");
    engine.wait_for_all().expect("no step fails");
    assert_eq!(log.steps.lock().expect("no panic").len(), 3);
}

/// What a step of these waits for, and when.
struct Waits {
    engine: Engine,
    variable: Option<Variable>,
    told: Mutex<Option<std::sync::mpsc::Receiver<()>>>,
    refused: Mutex<bool>,
}

fn waiting(engine: &Engine) -> (Replay<Waits>, PortId) {
    let mut builder = ReplayBuilder::<Waits>::new();
    builder.instances(2);
    let port = builder.port();
    let body = |waits: &Waits, _: &mut StepContext<'_, '_>| {
        if let Some(told) = waits.told.lock().expect("no panic").take() {
            told.recv().expect("the test says when");
        }
        if let Some(variable) = &waits.variable {
            let refused = matches!(waits.engine.wait_for_var(variable), Err(EngineError::Deadlock { .. }));
            *waits.refused.lock().expect("no panic") = refused;
        }
        Ok(())
    };
    let step = builder.step(body, &StepOptions { kind: StepKind::Hosted, ..StepOptions::default() });
    builder.uses(step, port, AccessKind::Mutate).expect("there is the port");
    (engine.new_replay(builder).expect("a replay"), port)
}

#[test]
fn steps_may_wait_for_calls_that_have_no_instance_yet() {
    let _watchdog = Watchdog::new("steps may wait for calls that have no instance yet");
    let engine = engine(4);
    let (replay, port) = waiting(&engine);
    let variables: Vec<_> = (0..4).map(|_| engine.new_variable(None)).collect();
    let mut told = Vec::new();
    let mut bound = Vec::new();
    // The first two hold both instances and wait for the other two, the last of which is behind the third.
    for (at, waits_for) in [(0, Some(2)), (1, Some(3)), (2, None), (3, None)] {
        let (sender, receiver) = channel();
        told.push(sender);
        let waits = Arc::new(Waits {
            engine: engine.clone(),
            variable: waits_for.map(|other: usize| variables[other].clone()),
            told: Mutex::new(waits_for.map(|_| receiver)),
            refused: Mutex::new(false),
        });
        engine
            .push_replay(&replay, &[(port, &variables[at])], Arc::clone(&waits), &ReplayOptions::default())
            .expect("an open engine");
        bound.push(waits);
    }
    told[0].send(()).expect("the step listens");
    told[1].send(()).expect("the step listens");
    engine.wait_for_all().expect("no step fails");
    assert!(bound.iter().all(|waits| !*waits.refused.lock().expect("no panic")));
}

#[test]
fn a_step_that_waits_for_what_waits_for_it_is_refused_as_an_op_is() {
    let _watchdog = Watchdog::new("a step that waits for what waits for it is refused as an op is");
    let engine = engine(2);
    let (replay, port) = waiting(&engine);
    let (own, other) = (engine.new_variable(None), engine.new_variable(None));
    let (sender, receiver) = channel();
    let waits = Arc::new(Waits {
        engine: engine.clone(),
        variable: Some(other.clone()),
        told: Mutex::new(Some(receiver)),
        refused: Mutex::new(false),
    });
    engine
        .push_replay(&replay, &[(port, &own)], Arc::clone(&waits), &ReplayOptions::default())
        .expect("an open engine");
    engine.op(|_: &mut OpContext<'_>| Ok(())).read(&own).mutate(&other).push().expect("an open engine");
    sender.send(()).expect("the step listens");
    engine.wait_for_all().expect("no step fails");
    assert!(*waits.refused.lock().expect("no panic"));
}

#[test]
fn of_calls_that_lack_an_instance_alone_the_urgent_one_goes_first() {
    let _watchdog = Watchdog::new("of calls that lack an instance alone the urgent one goes first");
    let engine = Engine::new(Settings { workers: Some(1), ..Settings::default() }).expect("valid settings");
    let mut builder = ReplayBuilder::<(usize, Arc<Mutex<Vec<usize>>>)>::new();
    builder.instances(1);
    let port = builder.port();
    let body = |(number, order): &(usize, Arc<Mutex<Vec<usize>>>), _: &mut StepContext<'_, '_>| {
        order.lock().expect("no panic").push(*number);
        Ok(())
    };
    let only = builder.step(body, &StepOptions::default());
    builder.uses(only, port, AccessKind::Mutate).expect("there is the port");
    let replay = engine.new_replay(builder).expect("a replay");
    let order = Arc::new(Mutex::new(Vec::new()));
    let gate = engine.new_variable(None);
    // The only worker is busy while they are pushed.
    let (entered, entering) = channel();
    let (leave, left) = channel::<()>();
    let busy = move |_: &mut OpContext<'_>| {
        entered.send(()).expect("the test listens");
        left.recv().expect("the test says when");
        Ok(())
    };
    engine.op(busy).mutate(&gate).push().expect("an open engine");
    entering.recv().expect("the op begins");
    for (number, priority) in [(0, 0), (1, 0), (2, 5), (3, 0), (4, 9)] {
        let variable = engine.new_variable(None);
        let options = ReplayOptions { push: PushOptions { priority, ..PushOptions::default() }, sequential: false };
        engine
            .push_replay(&replay, &[(port, &variable)], Arc::new((number, Arc::clone(&order))), &options)
            .expect("an open engine");
    }
    leave.send(()).expect("the op listens");
    engine.wait_for_all().expect("no step fails");
    assert_eq!(*order.lock().expect("no panic"), [0, 4, 2, 1, 3]);
}

/// What pushes share is one's at a time, unless more instances are asked for.
#[test]
fn a_push_begins_when_the_one_before_has_ended() {
    let _watchdog = Watchdog::new("a push begins when the one before has ended");
    for limit in [None, Some(2)] {
        let engine = engine(2);
        let mut builder = ReplayBuilder::new();
        if let Some(limit) = limit {
            builder.instances(limit);
        }
        let [early, late] = [(); 2].map(|()| builder.port());
        let (first, second) = (step(&mut builder, "first"), step(&mut builder, "second"));
        builder.needs(second, first).expect("an earlier step");
        builder.uses(first, early, AccessKind::Mutate).expect("there is the port");
        builder.uses(second, late, AccessKind::Mutate).expect("there is the port");
        let replay = engine.new_replay(builder).expect("a replay");
        let variables = [(); 2].map(|()| engine.new_variable(None));
        let gate = super::gate::shut(&engine, &variables[1]);
        let (log, bound) = (Arc::new(Log::default()), [(early, &variables[0]), (late, &variables[1])]);
        for _ in 0..2 {
            engine.push_replay(&replay, &bound, Arc::clone(&log), &ReplayOptions::default()).expect("an open engine");
        }
        if limit.is_some() {
            engine.wait_for_var(&variables[0]).expect("the second push has begun");
        }
        gate.complete(Ok(())).expect("a token used once");
        engine.wait_for_all().expect("no step fails");
        let expected = if limit.is_some() {
            ["first", "first", "second", "second"]
        } else {
            ["first", "second", "first", "second"]
        };
        assert_eq!(*log.steps.lock().expect("no panic"), expected);
    }
}
