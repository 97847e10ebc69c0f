//! Queues whose worker lends its place: who waits carries the ops out, and leaves them when it is called away.

use crate::{Answer, Log, SHORT, Watchdog, nothing, stealing};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use weft_engine::{Completion, Engine, EngineError, InOrder, OpContext, Payload, Variable, Wait, is_called_away};

/// Rounds after which one that depends on who is quicker has gone each way.
const ROUNDS: usize = 1000;

struct Lent<F>(F);

impl<F: FnOnce(&mut OpContext<'_>) -> Answer + Send + 'static> Payload for Lent<F> {
    fn queue(&self) -> Option<InOrder> {
        Some(InOrder::lent("toy:lent"))
    }

    fn run(self, context: &mut OpContext<'_>) -> Answer {
        (self.0)(context)
    }
}

/// An engine whose queue has a worker by now, and a variable.
fn begun() -> (Engine, Variable) {
    let engine = stealing(2);
    let variable = engine.new_variable(None);
    engine.op_of(Lent(nothing)).mutate(&variable).push().expect("an open engine");
    engine.wait_for_all().expect("no op fails");
    (engine, variable)
}

#[test]
fn who_waits_takes_the_place_of_a_worker_that_sleeps() {
    let _watchdog = Watchdog::new("who waits takes the place of a worker that sleeps");
    let (engine, variable) = begun();
    let threads = Log::<ThreadId>::default();
    for round in 0..ROUNDS {
        let noted = threads.clone();
        let body = move |_: &mut OpContext<'_>| {
            noted.note(thread::current().id());
            Ok(())
        };
        engine.op_of(Lent(body)).mutate(&variable).push().expect("an open engine");
        if round % 2 == 0 { engine.wait_for_var(&variable) } else { engine.wait_for_all() }.expect("no op fails");
        assert_eq!(threads.all().len(), round + 1);
    }
    assert!(threads.all().contains(&thread::current().id()), "the worker was always quicker");
}

#[test]
fn they_keep_their_order_whoever_waits() {
    let _watchdog = Watchdog::new("they keep their order whoever waits");
    let (engine, variable) = begun();
    let log = Log::default();
    let pushing = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..ROUNDS / 3 {
                    let mut next = pushing.lock().expect("no pusher panics");
                    let (log, at) = (log.clone(), *next);
                    let body = move |_: &mut OpContext<'_>| {
                        log.note(at);
                        Ok(())
                    };
                    engine.op_of(Lent(body)).mutate(&variable).push().expect("an open engine");
                    *next += 1;
                    drop(next);
                    engine.wait_for_var(&variable).expect("no op fails");
                }
            });
        }
    });
    assert!(log.all().into_iter().eq(0..ROUNDS / 3 * 3));
}

/// What is left of an op, for the worker.
fn rest(end: Completion, released: Arc<AtomicBool>, log: Log<ThreadId>) -> impl Payload {
    Lent(move |_: &mut OpContext<'_>| {
        while !released.load(Ordering::Acquire) {
            thread::yield_now();
        }
        log.note(thread::current().id());
        end.complete(Ok(())).expect("the only end");
        Ok(())
    })
}

/// A wait that runs out, or an op that says that it is long, leaves the op to the worker: the wait is over in time.
#[test]
fn who_is_called_away_leaves_the_rest_to_the_worker() {
    let _watchdog = Watchdog::new("who is called away leaves the rest to the worker");
    for long in [false, true] {
        let (engine, variable) = begun();
        let log = Log::<ThreadId>::default();
        let mut rounds = 0;
        while log.all().is_empty() {
            rounds += 1;
            assert!(rounds < ROUNDS, "the worker was always quicker");
            let released = Arc::new(AtomicBool::new(false));
            let (own, theirs, log) = (Arc::clone(&released), engine.downgrade(), log.clone());
            let body = move |context: &mut OpContext<'_>| {
                while !own.load(Ordering::Acquire) {
                    if is_called_away(long) {
                        let engine = theirs.upgrade().expect("the test has one");
                        let rest = rest(context.defer(), Arc::clone(&own), log);
                        engine.op_of(rest).always_run().push().expect("from inside of an op");
                        return Ok(());
                    }
                    thread::yield_now();
                }
                Ok(())
            };
            engine.op_of(Lent(body)).mutate(&variable).push().expect("an open engine");
            let mut wait = Wait { timeout: Some(SHORT), ..Wait::default() };
            let outcome = engine.wait_for_var_with(&variable, &mut wait);
            assert!(matches!(outcome, Err(EngineError::Timeout { .. })), "{outcome:?}");
            released.store(true, Ordering::Release);
            engine.wait_for_var(&variable).expect("no op fails");
        }
    }
}
