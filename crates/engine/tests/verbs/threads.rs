//! Pushes from several threads: each is one step over all its variables.

use crate::{Log, Watchdog, nothing, stealing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use weft_engine::{AccessKind, Accesses, OpContext, PushOptions, Variable};

/// `x += y` beside `y += x`: grants taken one variable at a time would lock each other out.
#[test]
fn opposite_orders_do_not_lock_each_other_out() {
    const OPS: u64 = 20_000;
    let _watchdog = Watchdog::new("opposite orders do not lock each other out");
    let engine = stealing(2);
    let variables = [engine.new_variable(Some("x")), engine.new_variable(Some("y"))];
    let values = Arc::new([AtomicU64::new(1), AtomicU64::new(1)]);
    thread::scope(|scope| {
        for mine in 0..2 {
            let (engine, variables, values) = (&engine, &variables, &values);
            scope.spawn(move || {
                for _ in 0..OPS {
                    let values = Arc::clone(values);
                    let add = move |_: &mut OpContext<'_>| {
                        // Relaxed, and in two steps: the engine keeps the ops apart.
                        let sum = values[0].load(Ordering::Relaxed).wrapping_add(values[1].load(Ordering::Relaxed));
                        values[mine].store(sum, Ordering::Relaxed);
                        Ok(())
                    };
                    let (target, other) = (&variables[mine], &variables[1 - mine]);
                    // Each thread names its own variable first.
                    engine.op(add).mutate(target).read(other).push().expect("an open engine");
                }
            });
        }
    });
    engine.wait_for_all().expect("no op fails");
    assert_eq!(variables.map(|variable| variable.completed_version()), [OPS; 2]);
}

/// All mutate the same variables, named in different orders: they enter every queue in one order.
#[test]
fn pushes_enter_all_queues_in_one_order() {
    const PUSHERS: usize = 4;
    const OPS: usize = 3000;
    let _watchdog = Watchdog::new("pushes enter all queues in one order");
    let engine = stealing(2);
    let variables: Vec<Variable> = (0..6).map(|_| engine.new_variable(None)).collect();
    let logs: Vec<Log<(usize, usize)>> = variables.iter().map(|_| Log::default()).collect();
    thread::scope(|scope| {
        for pusher in 0..PUSHERS {
            let (engine, variables, logs) = (&engine, &variables, &logs);
            scope.spawn(move || {
                for at in 0..OPS {
                    let logs = logs.clone();
                    let note = move |_: &mut OpContext<'_>| {
                        logs.iter().for_each(|log| log.note((pusher, at)));
                        Ok(())
                    };
                    let mut accesses = Accesses::new(engine);
                    for step in 0..variables.len() {
                        let variable = &variables[(pusher + at + step) % variables.len()];
                        accesses.add(variable, AccessKind::Mutate).expect("a variable of this engine");
                    }
                    engine.push(note, &mut accesses, &PushOptions::default()).expect("an open engine");
                }
            });
        }
    });
    engine.wait_for_all().expect("no op fails");
    let first = logs[0].all();
    assert!(logs.iter().all(|log| log.all() == first));
    for pusher in 0..PUSHERS {
        let mine = first.iter().filter(|(by, _)| *by == pusher).map(|(_, at)| *at);
        assert!(mine.eq(0..OPS), "each thread's pushes keep their order");
    }
}

#[test]
fn four_pushers_on_their_own_variables() {
    const OPS: u64 = 50_000;
    let _watchdog = Watchdog::new("four pushers on their own variables");
    let engine = stealing(2);
    let waited = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let variable = engine.new_variable(None);
                for at in 1..=OPS {
                    engine.op(nothing).mutate(&variable).push().expect("an open engine");
                    if at % 5000 == 0 {
                        engine.wait_for_var(&variable).expect("no op fails");
                        assert_eq!(variable.completed_version(), at);
                        waited.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(waited.load(Ordering::Relaxed), 40);
    assert_eq!(engine.stats().completed, 4 * OPS);
}

/// Variables come and go on all threads while others wait, look and count.
#[test]
fn everything_at_once() {
    let _watchdog = Watchdog::new("everything at the same time");
    let engine = stealing(3);
    let shared = engine.new_variable(None);
    thread::scope(|scope| {
        for pusher in 0..4 {
            let (engine, shared) = (&engine, &shared);
            scope.spawn(move || {
                for at in 0..2000 {
                    let variable = engine.new_variable(Some("fleeting"));
                    engine.op(nothing).name("named").mutate(&variable).read(shared).push().expect("an open engine");
                    match (at + pusher) % 50 {
                        0 => engine.wait_for_var(&variable).expect("no op fails"),
                        1 => engine.wait_to_write(shared).expect("no op fails"),
                        2 => engine.wait_for_all().expect("no op fails"),
                        3 => engine.delete_variable(&variable, nothing, None).expect("it is deleted once"),
                        4 => assert!(engine.running().len() <= 3),
                        5 => assert!(engine.stats().pending <= 8000),
                        6 => engine.op(nothing).mutate(shared).priority(at % 3).push().expect("an open engine"),
                        _ => {}
                    }
                }
            });
        }
    });
    drop(shared);
    engine.close().expect("no op fails");
    assert_eq!(engine.stats().variables, 0);
}
