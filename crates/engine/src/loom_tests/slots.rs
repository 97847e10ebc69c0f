//! Instances of a replay: each goes to one call at a time, no call waits while one is free, none is lost.

use super::replay::{Shared, expect_run, spawn};
use super::{One, push};
use crate::sched::PullNothing;
use std::sync::Arc;

/// Two threads push, and one instance may be made. One of them brings it; the call of the other one waits for it, or gets the
/// reserve if it is there first.
#[test]
fn pushers_make_as_many_as_the_limit() {
    loom::model(|| {
        let shared = Shared::new(true, 1);
        let other = spawn(&shared, |shared| {
            let (call, _) = shared.call(0, false);
            shared.enter(call, 0);
        });
        let (call, bindings) = shared.call(0, false);
        shared.enter(call, 0);
        shared.work();
        other.join().unwrap();
        shared.work();
        shared.expect_settled(2);
        expect_run(&bindings);
        let (usual, others) = shared.plan.instances_made();
        assert!(usual == 1 && others <= 1, "{usual} and {others}");
    });
}

/// A push that brings the only instance is refused, while another one relies on it.
#[test]
fn what_a_refused_push_has_brought_goes_to_who_waits() {
    loom::model(|| {
        let shared = Shared::new(true, 1);
        let other = spawn(&shared, |shared| {
            let (call, _) = shared.call(0, false);
            let mut turn = shared.registrar.turn();
            turn.catch_up();
            let (tracker, seat) = turn.parts();
            tracker.take_gift(seat, &call);
            turn.catch_up();
            drop(turn);
            call.dispose();
        });
        let (call, bindings) = shared.call(0, false);
        shared.enter(call, 0);
        shared.work();
        other.join().unwrap();
        shared.work();
        shared.expect_settled(1);
        expect_run(&bindings);
    });
}

/// Two threads push from inside ops, and one instance for such is left from before: who counts on it finds it, and nobody
/// else does.
#[test]
fn a_spare_instance_for_calls_inside_ops_is_taken_once() {
    loom::model(|| {
        let shared = Shared::new(true, 1);
        let (call, first) = shared.call(0, true);
        shared.enter(call, 0);
        shared.work();
        expect_run(&first);
        let other = spawn(&shared, |shared| {
            let (call, _) = shared.call(0, true);
            shared.enter(call, 0);
        });
        let (call, second) = shared.call(0, true);
        shared.enter(call, 0);
        shared.work();
        other.join().unwrap();
        shared.work();
        shared.expect_settled(3);
        expect_run(&second);
        let (usual, others) = shared.plan.instances_made();
        assert!(usual == 0 && others <= 2, "{usual} and {others}");
    });
}

/// A call inside an op ends while another one is pushed there: the instance is counted when it can be had.
#[test]
fn an_instance_for_calls_inside_ops_comes_back_meanwhile() {
    loom::model(|| {
        let shared = Shared::new(true, 1);
        let (call, first) = shared.call(0, true);
        shared.enter(call, 0);
        let other = spawn(&shared, Shared::work);
        let (call, second) = shared.call(0, true);
        shared.enter(call, 0);
        shared.work();
        other.join().unwrap();
        shared.work();
        shared.expect_settled(2);
        expect_run(&first);
        expect_run(&second);
    });
}

/// The only instance is that of a call that waits for an op. A call that waits for nothing gets the reserve, before the op
/// has ended.
#[test]
fn a_ready_call_does_not_wait_for_the_accesses_of_others() {
    loom::model(|| {
        let shared = Shared::new(true, 1);
        push(&shared.registrar, &[&shared.variables[1]]);
        let mut pull = One::default();
        shared.registrar.drive(None, &mut pull);
        let writer = pull.0.expect("nothing holds it up");
        let (call, blocked) = shared.call(2, false);
        shared.enter(call, 2);
        let other = spawn(&shared, Shared::work);
        let (call, ready) = shared.call(0, false);
        shared.enter(call, 0);
        shared.work();
        other.join().unwrap();
        shared.work();
        expect_run(&ready);
        shared.registrar.drive(Some(writer), &mut PullNothing { register: false });
        shared.work();
        shared.expect_settled(3);
        expect_run(&blocked);
        assert_eq!(shared.plan.instances_made(), (1, 1));
    });
}

/// As above, but the op ends while the other call is pushed: whichever gets the instance first, both run, and what they
/// have been bound to is dropped.
#[test]
fn a_blocked_call_becomes_ready_meanwhile() {
    loom::model(|| {
        let shared = Shared::new(true, 1);
        push(&shared.registrar, &[&shared.variables[1]]);
        let mut pull = One::default();
        shared.registrar.drive(None, &mut pull);
        let writer = pull.0.expect("nothing holds it up");
        let (call, blocked) = shared.call(2, false);
        shared.enter(call, 2);
        let (call, ready) = shared.call(0, false);
        let other = spawn(&shared, move |shared| shared.enter(call, 0));
        shared.registrar.drive(Some(writer), &mut PullNothing { register: false });
        shared.work();
        other.join().unwrap();
        shared.work();
        shared.expect_settled(3);
        for bindings in [blocked, ready] {
            expect_run(&bindings);
            assert_eq!(Arc::strong_count(&bindings), 1);
        }
    });
}
