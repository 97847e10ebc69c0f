//! Pushes of replays, good and bad.

use super::ports::{Log, engine, step};
use super::watchdog::Watchdog;
use std::cell::Cell;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use weft_engine::{
    AccessKind, Engine, EngineError, Host, InOrder, OpContext, Policy, PortId, PushOptions, Replay, ReplayBuilder,
    ReplayOptions, Settings, StepContext, StepId, StepKind, StepOptions, trace::Kind,
};

/// One step that mutates one port.
fn single(engine: &Engine) -> (Replay<Log>, PortId) {
    let mut builder = ReplayBuilder::new();
    let port = builder.port();
    let only = step(&mut builder, "only");
    builder.uses(only, port, AccessKind::Mutate).expect("there is the port");
    (engine.new_replay(builder).expect("a replay"), port)
}

#[test]
fn bad_pushes_change_nothing() {
    let _watchdog = Watchdog::new("bad pushes change nothing");
    let (engine, other) = (engine(1), engine(1));
    let mut builder = ReplayBuilder::new();
    let ports = [builder.port(), builder.port(), builder.port()];
    let all = step(&mut builder, "all");
    for (port, kind) in ports.into_iter().zip([AccessKind::Mutate, AccessKind::Read, AccessKind::Read]) {
        builder.uses(all, port, kind).expect("there is the port");
    }
    let replay = engine.new_replay(builder).expect("a replay");
    let (x, y, foreign, gone) = (
        engine.new_variable(Some("x")),
        engine.new_variable(None),
        other.new_variable(None),
        engine.new_variable(None),
    );
    engine.delete_variable(&gone, |_: &mut OpContext<'_>| Ok(()), None).expect("it is deleted once");
    engine.wait_for_all().expect("the finalizer does not fail");
    let push = |engine: &Engine, bound: &[(PortId, &weft_engine::Variable)]| {
        engine.push_replay(&replay, bound, Arc::new(Log::default()), &ReplayOptions::default())
    };
    let clash = push(&engine, &[(ports[0], &x), (ports[1], &x)]).expect_err("one of them mutates it");
    assert!(clash.to_string().contains("'x' is behind ports 0 and 1"), "{clash}");
    assert!(matches!(push(&engine, &[(ports[0], &foreign)]), Err(EngineError::WrongEngine { .. })));
    assert!(matches!(push(&engine, &[(ports[0], &gone)]), Err(EngineError::VariableDeleted { .. })));
    assert!(matches!(push(&other, &[(ports[0], &foreign)]), Err(EngineError::WrongEngine { .. })));
    let many: Vec<_> = (0..20).map(|_| engine.new_variable(None)).collect();
    let mut bound: Vec<_> = many.iter().map(|variable| (ports[1], variable)).collect();
    bound.extend([(ports[0], &many[3])]);
    assert!(matches!(push(&engine, &bound), Err(EngineError::InvalidArgument(_))));
    assert_eq!((x.version(), many[3].version(), engine.stats().pending), (0, 0, 0));
    // Their twins: two ports read one variable, and a port has many behind it.
    push(&engine, &[(ports[0], &x), (ports[1], &y), (ports[2], &y), (ports[1], &many[0])]).expect("nothing clashes");
    bound.pop();
    push(&engine, &bound).expect("nothing clashes");
    engine.wait_for_all().expect("no step fails");
    assert_eq!(x.completed_version(), 1);
}

#[test]
fn steps_come_after_earlier_ones() {
    let mut builder = ReplayBuilder::<Log>::new();
    let (a, b) = (step(&mut builder, "a"), step(&mut builder, "b"));
    let port = builder.port();
    for wrong in [builder.needs(a, b), builder.follows(a, a), builder.uses(a, port, AccessKind::Exclusive)] {
        assert!(matches!(wrong, Err(EngineError::InvalidArgument(_))));
    }
    builder.needs(b, a).expect("an earlier step");
    assert_eq!(builder.len(), 2);
}

#[test]
fn pushes_beyond_the_instances_do_not_wait() {
    let _watchdog = Watchdog::new("pushes beyond the instances do not wait");
    let engine = engine(2);
    let (replay, port) = single(&engine);
    let variable = engine.new_variable(None);
    let gate = super::gate::shut(&engine, &variable);
    let log = Arc::new(Log::default());
    for _ in 0..100 {
        engine
            .push_replay(&replay, &[(port, &variable)], Arc::clone(&log), &ReplayOptions::default())
            .expect("it is open");
    }
    drop(replay);
    assert_eq!(engine.stats().pending, 101);
    gate.complete(Ok(())).expect("a token used once");
    engine.wait_for_var(&variable).expect("no step fails");
    assert_eq!(log.steps.lock().expect("no panic").len(), 100);
}

/// A replay that pushes itself and waits for that, to this depth.
struct Depth {
    engine: Engine,
    replay: Mutex<Option<(Replay<Self>, PortId)>>,
    left: usize,
    instances: Mutex<Vec<usize>>,
}

#[test]
fn a_replay_inside_itself_has_an_instance_of_its_own() {
    let _watchdog = Watchdog::new("a replay inside itself has an instance of its own");
    let engine = engine(1);
    let mut builder = ReplayBuilder::<Depth>::new();
    let port = builder.port();
    let recurse = |depth: &Depth, context: &mut StepContext<'_, '_>| {
        depth.instances.lock().expect("no panic").extend(context.instance());
        let (replay, port) = depth.replay.lock().expect("no panic").clone().expect("it is there");
        let left = depth.left;
        if left > 0 {
            let fresh = depth.engine.new_variable(None);
            let inner = Depth {
                engine: depth.engine.clone(),
                replay: Mutex::new(Some((replay.clone(), port))),
                left: left - 1,
                instances: Mutex::default(),
            };
            let inner = Arc::new(inner);
            let pushed =
                depth.engine.push_replay(&replay, &[(port, &fresh)], Arc::clone(&inner), &ReplayOptions::default());
            pushed.and_then(|()| depth.engine.wait_for_var(&fresh)).expect("it ends");
            depth.instances.lock().expect("no panic").append(&mut inner.instances.lock().expect("no panic"));
        }
        Ok(())
    };
    let step = builder.step(recurse, &StepOptions { kind: StepKind::Native, ..StepOptions::default() });
    builder.uses(step, port, AccessKind::Mutate).expect("there is the port");
    let replay = engine.new_replay(builder).expect("a replay");
    let variable = engine.new_variable(None);
    for _ in 0..3 {
        let depth = Arc::new(Depth {
            engine: engine.clone(),
            replay: Mutex::new(Some((replay.clone(), port))),
            left: 5,
            instances: Mutex::default(),
        });
        engine
            .push_replay(&replay, &[(port, &variable)], Arc::clone(&depth), &ReplayOptions::default())
            .expect("it is open");
        engine.wait_for_var(&variable).expect("no step fails");
        let mut instances = depth.instances.lock().expect("no panic").clone();
        instances.sort_unstable();
        instances.dedup();
        assert_eq!(instances.len(), 6, "each has its own");
    }
}

#[test]
fn a_step_that_waits_for_its_own_port_is_told() {
    let _watchdog = Watchdog::new("a step that waits for its own port is told");
    let engine = engine(2);
    let (sender, receiver) = channel();
    let mut builder = ReplayBuilder::<(Engine, weft_engine::Variable)>::new();
    let port = builder.port();
    let waits = move |(engine, variable): &(Engine, weft_engine::Variable), _: &mut StepContext<'_, '_>| {
        sender.send(engine.wait_for_var(variable)).expect("the test listens");
        Ok(())
    };
    let step = builder.step(waits, &StepOptions { kind: StepKind::Native, ..StepOptions::default() });
    builder.uses(step, port, AccessKind::Mutate).expect("there is the port");
    let replay = engine.new_replay(builder).expect("a replay");
    let variable = engine.new_variable(None);
    let bindings = Arc::new((engine.clone(), variable.clone()));
    engine.push_replay(&replay, &[(port, &variable)], bindings, &ReplayOptions::default()).expect("an open engine");
    assert!(matches!(receiver.recv(), Ok(Err(EngineError::Deadlock { .. }))));
    engine.wait_for_var(&variable).expect("the step goes on");
}

thread_local! { static INSIDE: Cell<bool> = const { Cell::new(false) } }

struct Inside;

impl Host for Inside {
    fn enter(&self, batch: &mut dyn FnMut()) {
        INSIDE.set(true);
        batch();
        INSIDE.set(false);
    }
}

#[test]
fn hosted_steps_run_inside_the_host() {
    let _watchdog = Watchdog::new("hosted steps run inside the host");
    for policy in Policy::ALL {
        let settings = Settings { workers: Some(2), policy, host: Arc::new(Inside), ..Settings::default() };
        let engine = Engine::new(settings).expect("valid settings");
        let mut builder = ReplayBuilder::<Mutex<Vec<bool>>>::new();
        let port = builder.port();
        let mut last: Option<StepId> = None;
        for kind in [
            StepKind::Plain,
            StepKind::Hosted,
            StepKind::Native,
            StepKind::Hosted,
            StepKind::InOrder(InOrder::named("second")),
        ] {
            let look = |seen: &Mutex<Vec<bool>>, context: &mut StepContext<'_, '_>| {
                assert!(context.op().is_none_or(|op| op.host().is::<Inside>()));
                seen.lock().expect("no panic").push(INSIDE.get());
                Ok(())
            };
            let step = builder.step(look, &StepOptions { kind, ..StepOptions::default() });
            last.replace(step).map_or(Ok(()), |last| builder.needs(step, last)).expect("an earlier step");
            builder.uses(step, port, AccessKind::Mutate).expect("there is the port");
        }
        let replay = engine.new_replay(builder).expect("a replay");
        let (variable, seen) = (engine.new_variable(None), Arc::new(Mutex::default()));
        engine
            .push_replay(&replay, &[(port, &variable)], Arc::clone(&seen), &ReplayOptions::default())
            .expect("it is open");
        engine.wait_for_var(&variable).expect("no step fails");
        assert_eq!(*seen.lock().expect("no panic"), [false, true, false, true, false], "{policy}");
    }
}

#[test]
fn a_sequential_replay_keeps_the_recorded_order() {
    let _watchdog = Watchdog::new("a sequential replay keeps the recorded order");
    let engine = engine(4);
    let mut builder = ReplayBuilder::<Mutex<Vec<usize>>>::new();
    let port = builder.port();
    for at in 0..100_usize {
        let kind = [StepKind::Plain, StepKind::Plain, StepKind::Native, StepKind::Hosted][at % 4];
        let log = move |log: &Mutex<Vec<usize>>, _: &mut StepContext<'_, '_>| {
            log.lock().expect("no panic").push(at);
            Ok(())
        };
        let step = builder.step(log, &StepOptions { kind, ..StepOptions::default() });
        builder.uses(step, port, AccessKind::Read).expect("there is the port");
    }
    let replay = engine.new_replay(builder).expect("a replay");
    let variable = engine.new_variable(None);
    for sequential in [true, false, true] {
        let log = Arc::new(Mutex::default());
        let options = ReplayOptions { sequential, ..ReplayOptions::default() };
        engine.push_replay(&replay, &[(port, &variable)], Arc::clone(&log), &options).expect("an open engine");
        engine.wait_for_all().expect("no step fails");
        let mut order = log.lock().expect("no panic").clone();
        if !sequential {
            order.sort_unstable();
        }
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn inline_runs_tell_what_failed() {
    let engine = engine(1);
    let mut builder = ReplayBuilder::<Log>::new();
    let ports = [builder.port(), builder.port()];
    let fails = |_: &Log, _: &mut StepContext<'_, '_>| Err(weft_engine::Cause::Native(1));
    let (first, bad) = (step(&mut builder, "first"), builder.step(fails, &StepOptions::default()));
    let last = step(&mut builder, "last");
    builder.needs(last, bad).expect("an earlier step");
    builder.uses(first, ports[0], AccessKind::Mutate).expect("there is the port");
    builder.uses(last, ports[1], AccessKind::Mutate).expect("there is the port");
    let replay = engine.new_replay(builder).expect("a replay");
    let log = Log::default();
    let failures = replay.run_inline(&log).expect("all steps are plain");
    assert_eq!(*log.steps.lock().expect("no panic"), ["first"]);
    assert_eq!((failures.steps.len(), failures.ports.len()), (1, 1));
    assert_eq!(failures.ports[0].port, ports[1]);

    // Of a step the member that needs what has failed is left out, and what needs that one.
    let mut builder = ReplayBuilder::<Log>::new();
    let ports = [builder.port(), builder.port()];
    let (bad, team) = (builder.step(fails, &StepOptions::default()), step(&mut builder, "team"));
    let members = [(); 2].map(|()| builder.member(team, None).expect("the last step"));
    builder.needs(members[1], bad).expect("an earlier step");
    for (member, port) in members.into_iter().zip(ports) {
        builder.uses(member, port, AccessKind::Mutate).expect("there is the port");
    }
    let replay = engine.new_replay(builder).expect("a replay");
    let log = Log::default();
    let failures = replay.run_inline(&log).expect("all steps are plain");
    assert_eq!(*log.steps.lock().expect("no panic"), ["team"]);
    assert_eq!(failures.ports.iter().map(|failure| failure.port).collect::<Vec<_>>(), [ports[1]]);

    let mut builder = ReplayBuilder::<Log>::new();
    builder.step(
        |_: &Log, _: &mut StepContext<'_, '_>| Ok(()),
        &StepOptions { kind: StepKind::Hosted, ..StepOptions::default() },
    );
    let hosted = engine.new_replay(builder).expect("a replay");
    assert!(!hosted.is_plain());
    assert!(matches!(hosted.run_inline(&log), Err(EngineError::InvalidArgument(_))));
}

#[test]
fn a_trace_shows_the_steps() {
    let _watchdog = Watchdog::new("a trace shows the steps");
    let engine = engine(2);
    let mut builder = ReplayBuilder::<Log>::new();
    builder.name("program");
    let port = builder.port();
    let (plain, unnamed) = (
        step(&mut builder, "plain"),
        builder.step(
            |_: &Log, _: &mut StepContext<'_, '_>| Ok(()),
            &StepOptions { kind: StepKind::Hosted, ..StepOptions::default() },
        ),
    );
    builder.needs(unnamed, plain).expect("an earlier step");
    builder.uses(unnamed, port, AccessKind::Mutate).expect("there is the port");
    let replay = engine.new_replay(builder).expect("a replay");
    let variable = engine.new_variable(Some("x"));
    engine.start_trace(u64::MAX).expect("no trace so far");
    engine.push_replay(&replay, &[(port, &variable)], Arc::default(), &ReplayOptions::default()).expect("it is open");
    engine.wait_for_all().expect("no step fails");
    let recording = engine.stop_trace().expect("there is a trace");
    let name = |op: &weft_engine::trace::RecordedOp| recording.names[op.name as usize].clone();
    let find = |wanted: &str| recording.ops.iter().position(|op| name(op) == wanted).expect("it is there");
    let (whole, first, second) = (find("program"), find("plain"), find("program[1]"));
    let [whole_op, first, second] = [whole, first, second].map(|at| &recording.ops[at]);
    assert_eq!((first.parent, second.parent), (Some(whole), Some(whole)));
    assert_eq!((first.kind, second.kind), (Kind::Native, Kind::Callable));
    assert!(first.ended <= second.started && whole_op.started <= first.started && second.ended <= whole_op.ended);
    assert!(first.worker.is_some() && second.worker.is_some());
    assert!(recording.accesses.iter().any(|access| access.op == whole && access.version == 1));
}

#[test]
fn a_priority_goes_first() {
    let _watchdog = Watchdog::new("a priority goes first");
    let engine = engine(1);
    let (replay, port) = single(&engine);
    let blocker = engine.new_variable(None);
    let (begun, begins) = channel();
    let (go, goes) = channel::<()>();
    let hold = move |_: &mut OpContext<'_>| {
        begun.send(()).expect("the test listens");
        goes.recv().expect("the test goes on");
        Ok(())
    };
    engine.op(hold).mutate(&blocker).push().expect("an open engine");
    begins.recv().expect("it begins");
    let (sender, receiver) = channel();
    let variables = [engine.new_variable(None), engine.new_variable(None)];
    let low = sender.clone();
    engine
        .op(move |_: &mut OpContext<'_>| low.send("low").map_err(|error| weft_engine::Cause::Error(error.into())))
        .mutate(&variables[0])
        .push()
        .expect("it is open");
    let log = Arc::new(Log { heard: Some(sender), ..Log::default() });
    let push = PushOptions { priority: 5, ..PushOptions::default() };
    let options = ReplayOptions { push, ..ReplayOptions::default() };
    engine.push_replay(&replay, &[(port, &variables[1])], log, &options).expect("an open engine");
    go.send(()).expect("it waits");
    assert_eq!((receiver.recv(), receiver.recv()), (Ok("only"), Ok("low")));
    engine.wait_for_all().expect("no step fails");
}
