//! Chains go on where they are: the op that another one makes ready goes next, within bounds.

use crate::{Answer, Watchdog, engine, occupy};
use std::sync::mpsc::{Sender, channel};
use weft_engine::{Engine, OpContext, Policy, Variable};

fn sending<T: Send + 'static>(sender: &Sender<T>, item: T) -> impl FnOnce(&mut OpContext<'_>) -> Answer + use<T> {
    let sender = sender.clone();
    move |_: &mut OpContext<'_>| {
        sender.send(item).expect("the test listens");
        Ok(())
    }
}

/// The order in which one worker runs what `push` pushes while that worker is busy. Nobody waits for
/// the engine meanwhile, for a waiting thread would help.
fn order<T: Send + 'static>(policy: Policy, push: impl FnOnce(&Engine, Sender<T>)) -> Vec<T> {
    let (engine, (ran, has_run)) = (engine(policy, 1), channel());
    let release = occupy(&engine, &engine.new_variable(None));
    push(&engine, ran);
    drop(release);
    let order = has_run.iter().collect();
    engine.wait_for_all().expect("no op fails");
    order
}

/// Chains over many variables, pushed layer by layer, run one after the other: what an op has made is
/// still in the cache when the next one reads it.
#[test]
fn chains_run_depth_first() {
    const LAYERS: usize = 5;
    const VARIABLES: usize = 50;
    let _watchdog = Watchdog::new("chains run depth first");
    for policy in [Policy::WorkStealing, Policy::PerDevice] {
        let order = order(policy, |engine, ran| {
            let variables: Vec<Variable> = (0..VARIABLES).map(|_| engine.new_variable(None)).collect();
            for layer in 0..LAYERS {
                for (at, variable) in variables.iter().enumerate() {
                    engine.op(sending(&ran, (at, layer))).mutate(variable).push().expect("an open engine");
                }
            }
        });
        let expected = (0..VARIABLES).flat_map(|at| (0..LAYERS).map(move |layer| (at, layer)));
        assert!(order.iter().copied().eq(expected), "{policy}: {order:?}");
    }
}

/// The first of those that an op makes ready goes next; the others queue up.
#[test]
fn one_successor_goes_next() {
    let _watchdog = Watchdog::new("one successor goes next");
    let order = order(Policy::WorkStealing, |engine, ran| {
        let chain = engine.new_variable(None);
        engine.op(sending(&ran, "head")).mutate(&chain).push().expect("an open engine");
        engine.op(sending(&ran, "older")).push().expect("an open engine");
        engine.op(sending(&ran, "first")).read(&chain).push().expect("an open engine");
        engine.op(sending(&ran, "second")).read(&chain).push().expect("an open engine");
    });
    assert_eq!(order, ["head", "first", "older", "second"]);
}

/// So many links of a chain go ahead of what is ready, and no more.
#[test]
fn a_long_chain_starves_nobody() {
    let _watchdog = Watchdog::new("a long chain starves nobody");
    let order = order(Policy::WorkStealing, |engine, ran| {
        let [chain, other] = [(); 2].map(|()| engine.new_variable(None));
        for at in 0..1000 {
            engine.op(sending(&ran, "chain")).mutate(&chain).push().expect("an open engine");
            if at == 0 {
                (0..100).for_each(|_| {
                    engine.op(sending(&ran, "other")).mutate(&other).push().expect("an open engine");
                });
            }
        }
    });
    // They take turns: a first link, and 64 that it and its successors make ready.
    let changes: Vec<_> = (1..order.len()).filter(|&at| order[at] != order[at - 1]).collect();
    assert_eq!(changes, [65, 130, 195, 230]);
}

/// Ops that take less than a turn are settled several at a time. Still none waits for a long one behind it: that one lasts until
/// what the short one makes ready has run.
#[test]
fn short_ops_are_settled_beside_a_long_one() {
    const SHORT_OPS: usize = 400;
    let _watchdog = Watchdog::new("short ops are settled beside a long one");
    let engine = engine(Policy::WorkStealing, 2);
    let others: Vec<Variable> = (0..SHORT_OPS).map(|_| engine.new_variable(None)).collect();
    for round in 0..300 {
        let made = engine.new_variable(None);
        let (open, opened) = channel::<()>();
        for (at, other) in others.iter().enumerate() {
            engine.op(|_: &mut OpContext<'_>| Ok(())).mutate(other).push().expect("an open engine");
            if at == SHORT_OPS - 1 - round % 40 {
                engine.op(|_: &mut OpContext<'_>| Ok(())).mutate(&made).push().expect("an open engine");
            }
        }
        let lasts = move |_: &mut OpContext<'_>| {
            opened.recv().expect("what the short one makes ready runs");
            Ok(())
        };
        engine.op(lasts).push().expect("an open engine");
        engine.op(sending(&open, ())).read(&made).push().expect("an open engine");
        engine.wait_for_all().expect("no op fails");
    }
}
