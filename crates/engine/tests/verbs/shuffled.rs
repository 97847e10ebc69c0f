//! The policy `shuffled`: orders that the dependencies allow, drawn with a seed.

use crate::{Answer, Log, Watchdog, engine};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use weft_engine::{
    AccessKind, Engine, OpContext, Payload, Policy, ReplayBuilder, ReplayOptions, StepContext, StepOptions, Variable,
};

/// A payload for the host.
struct Hosted(Log<u32>, u32);

impl Payload for Hosted {
    const HOSTED: bool = true;

    fn run(self, _: &mut OpContext<'_>) -> Answer {
        self.0.note(self.1);
        Ok(())
    }
}

/// A number of ops of both kinds, some of which push more, over a few variables, with a wait in the middle.
fn order(seed: u64) -> Vec<u32> {
    let (engine, log) = (engine(Policy::Shuffled(seed), 1), Log::default());
    let variables: Vec<Variable> = (0..5).map(|_| engine.new_variable(None)).collect();
    for at in 0..60_u32 {
        let (one, other) = (&variables[at as usize % 5], &variables[at as usize / 7 % 5]);
        if at % 4 == 3 {
            engine.op_of(Hosted(log.clone(), at)).read(one).push()
        } else if at % 10 == 0 {
            let (again, inner, variable) = (engine.clone(), log.clone(), other.clone());
            let op = move |_: &mut OpContext<'_>| {
                inner.note(at);
                for child in 0..3 {
                    let op = again.op(inner.noting(1000 + 10 * at + child));
                    op.mutate(&variable).push().expect("an open engine");
                }
                Ok(())
            };
            engine.op(op).mutate(one).push()
        } else {
            engine.op(log.noting(at)).read(other).mutate(one).push()
        }
        .expect("an open engine");
        if at == 30 {
            engine.wait_for_var(&variables[2]).expect("no op fails");
        }
    }
    engine.wait_for_all().expect("no op fails");
    engine.wait_for_all().expect("nor one that was pushed meanwhile");
    log.all()
}

#[test]
fn a_seed_names_an_order_of_one_pushing_thread() {
    let _watchdog = Watchdog::new("a seed names an order");
    let orders: Vec<_> = (0..10).map(order).collect();
    for (seed, first) in orders.iter().enumerate() {
        assert_eq!(first.len(), 60 + 6 * 3);
        assert_eq!(&order(seed as u64), first, "seed {seed}");
    }
    assert_eq!(orders.iter().collect::<BTreeSet<_>>().len(), 10, "ten seeds, ten orders");
}

/// Four ops, of which `d` needs `a`: half of the 24 orders.
#[test]
fn each_order_that_dependencies_allow_occurs() {
    let _watchdog = Watchdog::new("each order occurs");
    let mut found = BTreeSet::new();
    for seed in 0..200 {
        let (engine, log) = (engine(Policy::Shuffled(seed), 1), Log::default());
        let variable = engine.new_variable(None);
        engine.op(log.noting('a')).mutate(&variable).push().expect("an open engine");
        engine.op(log.noting('b')).push().expect("an open engine");
        engine.op(log.noting('c')).push().expect("an open engine");
        engine.op(log.noting('d')).read(&variable).push().expect("an open engine");
        engine.wait_for_all().expect("no op fails");
        found.insert(log.all().into_iter().collect::<String>());
    }
    let place = |order: &str, op| order.find(op);
    assert!(found.iter().all(|order| order.len() == 4 && place(order, 'a') < place(order, 'd')), "{found:?}");
    assert_eq!(found.len(), 12, "{found:?}");
}

/// The same of a replay's steps, which have no cells.
#[test]
fn each_order_of_a_replays_steps_occurs() {
    let _watchdog = Watchdog::new("each order of steps occurs");
    let mut found = BTreeSet::new();
    for seed in 0..200 {
        let (engine, log) = (engine(Policy::Shuffled(seed), 1), Log::default());
        let mut builder = ReplayBuilder::<Log<char>>::new();
        let port = builder.port();
        let steps = ['a', 'b', 'c', 'd'].map(|name| {
            let note = move |log: &Log<char>, _: &mut StepContext<'_, '_>| {
                log.note(name);
                Ok(())
            };
            builder.step(note, &StepOptions::default())
        });
        builder.needs(steps[3], steps[0]).expect("an earlier step");
        steps.into_iter().for_each(|step| builder.uses(step, port, AccessKind::Read).expect("there is the port"));
        let replay = engine.new_replay(builder).expect("a replay");
        let variable = engine.new_variable(None);
        let bindings = Arc::new(log.clone());
        let options = ReplayOptions::default();
        engine.push_replay(&replay, &[(port, &variable)], bindings, &options).expect("an open engine");
        engine.wait_for_all().expect("no step fails");
        found.insert(log.all().into_iter().collect::<String>());
    }
    assert!(found.iter().all(|order| order.len() == 4 && order.find('a') < order.find('d')), "{found:?}");
    assert_eq!(found.len(), 12, "{found:?}");
}

#[test]
fn one_op_runs_at_a_time() {
    let _watchdog = Watchdog::new("one op runs at a time");
    let engine = engine(Policy::Shuffled(1), 8);
    assert_eq!(engine.workers(), 1);
    let running = Arc::new(AtomicUsize::new(0));
    for _ in 0..1000 {
        let running = Arc::clone(&running);
        let op = move |_: &mut OpContext<'_>| {
            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        };
        engine.op(op).push().expect("an open engine");
    }
    engine.wait_for_all().expect("no op fails");
}

/// Ops are held back until somebody waits, but not for ever: this thread waits for a channel.
#[test]
fn what_nobody_waits_for_in_the_engine_runs_nevertheless() {
    let _watchdog = Watchdog::new("what nobody waits for runs");
    let engine = engine(Policy::Shuffled(2), 1);
    let (ran, has_run) = channel();
    for at in 0..10 {
        let ran = ran.clone();
        let op = move |_: &mut OpContext<'_>| ran.send(at).map_err(|error| weft_engine::Cause::Error(error.into()));
        engine.op(op).push().expect("an open engine");
    }
    let mut all: Vec<i32> = has_run.iter().take(10).collect();
    all.sort_unstable();
    assert_eq!(all, (0..10).collect::<Vec<_>>());
}

/// Of two ops each waits, inside, for what other ops do.
#[test]
fn ops_that_wait_do_not_hold_others_up() {
    fn waits(engine: &Engine, own: &Variable, awaited: &Variable) {
        let (again, awaited) = (engine.clone(), awaited.clone());
        let op = move |_: &mut OpContext<'_>| {
            again.wait_for_var(&awaited).map_err(|error| weft_engine::Cause::Error(error.into()))
        };
        engine.op(op).mutate(own).push().expect("an open engine");
    }
    let _watchdog = Watchdog::new("ops that wait");
    for seed in 0..50 {
        let engine = engine(Policy::Shuffled(seed), 1);
        let [a, b, c] = [(); 3].map(|()| engine.new_variable(None));
        waits(&engine, &a, &c);
        waits(&engine, &b, &a);
        engine.op(crate::nothing).mutate(&c).push().expect("an open engine");
        engine.wait_for_all().expect("no op fails");
    }
}
