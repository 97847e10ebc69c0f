//! Queues by name, as of ops that put work on a device's streams: in the order of their pushes, on a worker of their own.

use crate::{Answer, Log, Watchdog, engine, occupy, stealing};
use std::sync::mpsc::{Receiver, channel};
use weft_engine::{Engine, InOrder, OpContext, Payload, Policy, Variable, aside};

/// A payload that issues on a device.
struct Issue<F>(InOrder, F);

impl<F: FnOnce() + Send + 'static> Payload for Issue<F> {
    fn queue(&self) -> Option<InOrder> {
        Some(self.0)
    }

    fn run(self, _: &mut OpContext<'_>) -> Answer {
        (self.1)();
        Ok(())
    }
}

fn noting(log: &Log<usize>, at: usize) -> Issue<impl FnOnce() + Send + 'static> {
    let log = log.clone();
    Issue(InOrder::named("toy:0"), move || log.note(at))
}

/// Keeps the worker of a device's lane busy until the answered channel is dropped.
fn hold(engine: &Engine) -> std::sync::mpsc::Sender<()> {
    let (began, begins) = channel();
    let (release, released): (_, Receiver<()>) = channel();
    let body = move || {
        began.send(()).expect("the test waits");
        let _ = released.recv();
    };
    engine.op_of(Issue(InOrder::named("toy:0"), body)).push().expect("an open engine");
    begins.recv().expect("it begins");
    release
}

const MANY: usize = 300;

/// Chains whose links are ready long after ops that were pushed behind them.
#[test]
fn they_go_in_the_order_of_their_pushes() {
    let _watchdog = Watchdog::new("they go in the order of their pushes");
    for policy in [Policy::WorkStealing, Policy::PerDevice] {
        let (engine, log) = (engine(policy, 3), Log::default());
        let held = hold(&engine);
        let chains: Vec<Variable> = (0..7).map(|_| engine.new_variable(None)).collect();
        for at in 0..MANY {
            let op = engine.op_of(noting(&log, at));
            let op = if at % 3 == 0 { op } else { op.mutate(&chains[at % 7]) };
            op.push().expect("an open engine");
        }
        drop(held);
        engine.wait_for_all().expect("no op fails");
        assert!(log.all().into_iter().eq(0..MANY), "{policy}: {:?}", log.all());
    }
}

#[test]
fn those_of_one_priority_do_too() {
    let _watchdog = Watchdog::new("those of one priority do too");
    let (engine, log) = (stealing(2), Log::default());
    let held = hold(&engine);
    let chains: Vec<Variable> = (0..5).map(|_| engine.new_variable(None)).collect();
    for at in 0..MANY {
        // Those of a chain have one priority, so none is lifted.
        let priority = i32::try_from(at % 5 % 2).expect("small");
        let op = engine.op_of(noting(&log, at)).priority(priority);
        let op = if at % 3 == 0 { op } else { op.mutate(&chains[at % 5]) };
        op.push().expect("an open engine");
    }
    drop(held);
    engine.wait_for_all().expect("no op fails");
    let (urgent, others): (Vec<_>, Vec<_>) = log.all().into_iter().partition(|at| at % 5 % 2 == 1);
    assert!(urgent.is_sorted() && others.is_sorted(), "{:?}", log.all());
    assert_eq!(log.all()[..urgent.len()], urgent, "they go first");
}

/// Every worker for what does not issue is busy.
#[test]
fn ops_of_the_host_do_not_hold_them_up() {
    let _watchdog = Watchdog::new("ops of the host do not hold them up");
    for policy in [Policy::WorkStealing, Policy::PerDevice] {
        let engine = engine(policy, 1);
        let (blocked, own) = (engine.new_variable(None), engine.new_variable(None));
        let release = occupy(&engine, &blocked);
        for name in ["toy:0", "toy:1", "toy:15"] {
            engine.op_of(Issue(InOrder::named(name), || {})).mutate(&own).push().expect("an open engine");
        }
        engine.wait_for_var(&own).expect("no op fails");
        assert!(!blocked.is_ready());
        drop(release);
        engine.wait_for_all().expect("no op fails");
    }
}

/// What is long for the worker is not for those behind it; afterwards one worker issues again.
#[test]
fn one_that_steps_aside_lets_others_go_on() {
    let _watchdog = Watchdog::new("one that steps aside lets others go on");
    let (engine, log) = (stealing(2), Log::default());
    for round in 0..50 {
        let ((behind, comes), noted) = (channel(), log.clone());
        let long = move || {
            aside(|| comes.recv()).expect("the op behind it is issued meanwhile");
            noted.note(round);
        };
        engine.op_of(Issue(InOrder::named("toy:0"), long)).push().expect("an open engine");
        engine
            .op_of(Issue(InOrder::named("toy:0"), move || behind.send(()).expect("it waits")))
            .push()
            .expect("an open engine");
        engine.wait_for_all().expect("no op fails");
    }
    assert!(log.all().into_iter().eq(0..50));
    // None of the others takes part any more: the order is strict.
    let (held, order) = (hold(&engine), Log::default());
    for at in 0..MANY {
        engine.op_of(noting(&order, at)).push().expect("an open engine");
    }
    drop(held);
    engine.wait_for_all().expect("no op fails");
    assert!(order.all().into_iter().eq(0..MANY), "{:?}", order.all());
}

/// As many as other lanes have workers; the next one has to wait, and nothing hangs.
#[test]
fn so_many_step_aside_at_most() {
    let _watchdog = Watchdog::new("so many step aside at most");
    let engine = stealing(2);
    let (began, begins) = channel();
    let releases: Vec<_> = (0..3)
        .map(|at| {
            let (release, released): (_, Receiver<()>) = channel();
            let began = began.clone();
            let long = move || {
                aside(|| {
                    began.send(at).expect("the test waits");
                    let _ = released.recv();
                });
            };
            engine.op_of(Issue(InOrder::named("toy:0"), long)).push().expect("an open engine");
            release
        })
        .collect();
    engine
        .op_of(Issue(InOrder::named("toy:0"), move || began.send(3).expect("the test waits")))
        .push()
        .expect("an open engine");
    let mut first: Vec<_> = (0..3).map(|_| begins.recv().expect("it begins")).collect();
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2], "the third one is not aside, and keeps the fourth waiting");
    assert!(begins.try_recv().is_err());
    drop(releases);
    assert_eq!(begins.recv(), Ok(3));
    engine.wait_for_all().expect("no op fails");
}

/// More queues than an engine has lanes for them.
#[test]
fn queues_that_share_a_worker_keep_their_order() {
    const QUEUES: usize = 100;
    let _watchdog = Watchdog::new("queues that share a worker keep their order");
    let queues: Vec<InOrder> = (0..QUEUES).map(|at| InOrder::named(&format!("shared:{at}"))).collect();
    for policy in [Policy::WorkStealing, Policy::PerDevice] {
        let (engine, log) = (engine(policy, 3), Log::default());
        let variable = engine.new_variable(None);
        let gate = crate::gate::shut(&engine, &variable);
        for at in 0..20 * QUEUES {
            let log = log.clone();
            engine
                .op_of(Issue(queues[at % QUEUES], move || log.note(at)))
                .read(&variable)
                .push()
                .expect("an open engine");
        }
        gate.complete(Ok(())).expect("a token used once");
        engine.wait_for_all().expect("no op fails");
        let all = log.all();
        for queue in 0..QUEUES {
            let mine = all.iter().copied().filter(|at| at % QUEUES == queue);
            assert!(mine.eq((0..20).map(|round| round * QUEUES + queue)), "{policy}: queue {queue}");
        }
    }
}

/// A worker that was woken to register a wait would take the processor from the op that is waited for.
#[test]
#[cfg(target_os = "linux")]
fn a_wait_for_a_queue_wakes_no_other_worker() {
    let _watchdog = Watchdog::new("a wait for a queue wakes no other worker");
    let defaults = weft_engine::Settings::default();
    let settings = weft_engine::Settings { workers: Some(2), name: Some("lone".to_owned()), ..defaults };
    let engine = Engine::new(settings).expect("valid settings");
    let variable = engine.new_variable(None);
    for _ in 0..20 {
        engine.op_of(Issue(InOrder::named("toy:0"), || {})).mutate(&variable).push().expect("an open engine");
        engine.wait_for_var(&variable).expect("no op fails");
        assert!(variable.is_ready());
    }
    let names = std::fs::read_dir("/proc/self/task").expect("Linux has it");
    let names: Vec<String> =
        names.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok()).collect();
    assert!(names.iter().any(|name| name.starts_with("lone-")), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("lone-0.")), "{names:?}");
}
