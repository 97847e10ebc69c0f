//! Ports are granted and left one by one.

use super::gate;
use super::watchdog::Watchdog;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use weft_engine::{
    AccessKind, Engine, Policy, Replay, ReplayBuilder, ReplayOptions, Settings, StepContext, StepId, StepOptions,
};

/// What the steps of these tests are bound to: a log, and who wants to hear of each step.
#[derive(Default)]
pub(super) struct Log {
    pub(super) steps: Mutex<Vec<&'static str>>,
    pub(super) heard: Option<Sender<&'static str>>,
}

pub(super) fn engine(workers: usize) -> Engine {
    Engine::new(Settings { workers: Some(workers), ..Settings::default() }).expect("valid settings")
}

/// Adds a step that logs its name.
pub(super) fn step(builder: &mut ReplayBuilder<Log>, name: &'static str) -> StepId {
    let log = move |log: &Log, _: &mut StepContext<'_, '_>| {
        log.steps.lock().expect("no panic").push(name);
        if let Some(heard) = &log.heard {
            heard.send(name).expect("the test listens");
        }
        Ok(())
    };
    builder.step(log, &StepOptions { name: Some(name), ..StepOptions::default() })
}

#[test]
fn steps_run_in_their_order() {
    let _watchdog = Watchdog::new("steps run in their order");
    for policy in Policy::ALL {
        let engine = Engine::new(Settings { workers: Some(2), policy, ..Settings::default() }).expect("valid settings");
        let mut builder = ReplayBuilder::<Log>::new();
        let port = builder.port();
        let (a, b, c, d) =
            (step(&mut builder, "a"), step(&mut builder, "b"), step(&mut builder, "c"), step(&mut builder, "d"));
        for (later, earlier) in [(b, a), (c, a), (d, b), (d, c)] {
            builder.needs(later, earlier).expect("an earlier step");
        }
        builder.uses(d, port, AccessKind::Mutate).expect("there is the port");
        let replay = engine.new_replay(builder).expect("a replay");
        let variable = engine.new_variable(None);
        for round in 1..=10 {
            let log = Arc::new(Log::default());
            engine
                .push_replay(&replay, &[(port, &variable)], Arc::clone(&log), &ReplayOptions::default())
                .expect("an open engine");
            engine.wait_for_var(&variable).expect("no step fails");
            let steps = log.steps.lock().expect("no panic").clone();
            assert!(steps == ["a", "b", "c", "d"] || steps == ["a", "c", "b", "d"], "{steps:?}");
            assert_eq!(variable.completed_version(), round);
        }
        engine.close().expect("no step fails");
    }
}

/// Three layers, each of which mutates its own port.
fn layers(engine: &Engine) -> (Replay<Log>, [weft_engine::PortId; 3]) {
    let mut builder = ReplayBuilder::<Log>::new();
    builder.instances(2);
    let ports = [(); 3].map(|()| builder.port());
    let steps = ["first", "second", "third"].map(|name| step(&mut builder, name));
    for at in 0..3 {
        builder.uses(steps[at], ports[at], AccessKind::Mutate).expect("there is the port");
        if at > 0 {
            builder.needs(steps[at], steps[at - 1]).expect("an earlier step");
        }
    }
    (engine.new_replay(builder).expect("a replay"), ports)
}

#[test]
fn a_step_waits_only_for_its_ports() {
    let _watchdog = Watchdog::new("a step waits only for its ports");
    let engine = engine(2);
    let (replay, ports) = layers(&engine);
    let variables = [(); 3].map(|()| engine.new_variable(None));
    let gate = gate::shut(&engine, &variables[2]);
    let (sender, receiver) = channel();
    let log = Arc::new(Log { heard: Some(sender), ..Log::default() });
    let bound = [(ports[0], &variables[0]), (ports[1], &variables[1]), (ports[2], &variables[2])];
    engine.push_replay(&replay, &bound, Arc::clone(&log), &ReplayOptions::default()).expect("an open engine");
    assert_eq!(receiver.recv(), Ok("first"));
    assert_eq!(receiver.recv(), Ok("second"));
    // Both ports are left although the replay goes on.
    engine.wait_for_var(&variables[0]).expect("no step fails");
    engine.wait_for_var(&variables[1]).expect("no step fails");
    assert!(!variables[2].is_ready());
    gate.complete(Ok(())).expect("a token used once");
    assert_eq!(receiver.recv(), Ok("third"));
    engine.close().expect("no step fails");
}

#[test]
fn two_replays_overlap_layer_by_layer() {
    let _watchdog = Watchdog::new("two replays overlap layer by layer");
    let engine = engine(2);
    let (replay, ports) = layers(&engine);
    let variables = [(); 3].map(|()| engine.new_variable(None));
    let gate = gate::shut(&engine, &variables[2]);
    let bound = [(ports[0], &variables[0]), (ports[1], &variables[1]), (ports[2], &variables[2])];
    let push = || {
        let (sender, receiver) = channel();
        let log = Arc::new(Log { heard: Some(sender), ..Log::default() });
        engine.push_replay(&replay, &bound, log, &ReplayOptions::default()).expect("an open engine");
        receiver
    };
    let (first, second, third) = (push(), push(), push());
    // The second one goes as far as the first has gone.
    for receiver in [&first, &second] {
        assert_eq!(receiver.recv(), Ok("first"));
        assert_eq!(receiver.recv(), Ok("second"));
    }
    engine.op(|_: &mut weft_engine::OpContext<'_>| Ok(())).name("flush").push().expect("an open engine");
    // The third has no instance, and its caller did not wait.
    assert!(third.try_recv().is_err());
    gate.complete(Ok(())).expect("a token used once");
    for name in ["first", "second", "third"] {
        assert_eq!(third.recv(), Ok(name));
    }
    assert_eq!((first.recv(), second.recv()), (Ok("third"), Ok("third")));
    engine.close().expect("no step fails");
    assert_eq!(variables.each_ref().map(weft_engine::Variable::completed_version), [3, 3, 4]);
}
