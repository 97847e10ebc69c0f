//! Two engines in one process have nothing to do with each other.

use crate::{Watchdog, engine, failed_op, failing, gate, nothing, occupy, stealing};
use weft_engine::{AccessKind, Accesses, EngineError, OpContext, Policy, Settings};

#[test]
fn a_variable_belongs_to_one_engine() {
    let _watchdog = Watchdog::new("a variable belongs to one engine");
    let named = |name: &str| Settings { name: Some(name.to_owned()), workers: Some(1), ..Settings::default() };
    let [warp, weft] = ["warp", "weft"].map(|name| weft_engine::Engine::new(named(name)).expect("valid settings"));
    let variable = warp.new_variable(Some("thread"));
    let answers = [
        weft.op(nothing).read(&variable).push(),
        weft.wait_for_var(&variable),
        weft.wait_to_write(&variable),
        weft.delete_variable(&variable, nothing, None),
        Accesses::new(&weft).add(&variable, AccessKind::Mutate),
        weft.new_operator(nothing, &[(&variable, AccessKind::Read)], &weft_engine::PushOptions::default()).map(drop),
    ];
    for answer in answers {
        let Err(EngineError::WrongEngine { variable, owner, engine }) = answer else { panic!("{answer:?}") };
        assert_eq!((variable.as_str(), owner.as_str(), engine.as_str()), ("'thread'", "warp", "weft"));
    }
    assert!(warp.owns(&variable) && !weft.owns(&variable) && !warp.is_same(&weft));
    warp.op(nothing).mutate(&variable).push().expect("an open engine");
    warp.wait_for_var(&variable).expect("no op fails");
}

#[test]
fn one_goes_on_while_the_other_is_busy_failed_or_closed() {
    let _watchdog = Watchdog::new("one goes on while the other is busy, failed or closed");
    let [left, right] = [stealing(1), stealing(1)];
    let (busy, free) = (left.new_variable(None), right.new_variable(None));
    let release = occupy(&left, &busy);
    left.op(failing).name("culprit").push().expect("an open engine");
    right.op(nothing).mutate(&free).push().expect("an open engine");
    right.wait_for_var(&free).expect("no op fails");
    right.wait_for_all().expect("the other's failures are not ours");
    right.close().expect("no op fails");
    drop(release);
    assert_eq!(failed_op(left.wait_for_all()), "op 'culprit'");
    left.op(nothing).mutate(&busy).push().expect("an open engine");
    left.close().expect("no op fails");
}

/// Inside an op of one engine, the other may be pushed to, waited for, and closed.
#[test]
fn an_op_of_one_may_use_the_other() {
    let _watchdog = Watchdog::new("an op of one may use the other");
    for outer in Policy::ALL {
        for inner in Policy::ALL {
            let [left, right] = [engine(outer, 1), engine(inner, 1)];
            let (mine, theirs) = (left.new_variable(None), right.new_variable(None));
            let (other, variable) = (right.clone(), theirs.clone());
            let op = move |_: &mut OpContext<'_>| {
                for _ in 0..100 {
                    other.op(nothing).mutate(&variable).push().expect("an open engine");
                }
                other.wait_for_var(&variable).expect("no op fails");
                other.wait_for_all().expect("no op fails");
                other.close().expect("no op fails");
                Ok(())
            };
            left.op(op).mutate(&mine).push().expect("an open engine");
            left.wait_for_var(&mine).expect("the op waits for the other engine");
            assert_eq!(theirs.completed_version(), 100, "{outer} {inner}");
        }
    }
}

/// A token of one engine, used by an op of the other.
#[test]
fn an_op_of_one_may_complete_an_op_of_the_other() {
    let _watchdog = Watchdog::new("an op of one may complete an op of the other");
    let [left, right] = [stealing(1), stealing(1)];
    let (mine, theirs) = (left.new_variable(None), right.new_variable(None));
    let gate = gate::shut(&right, &theirs);
    left.op(nothing).mutate(&mine).push().expect("an open engine");
    let complete = move |_: &mut OpContext<'_>| {
        gate.complete(Ok(())).expect("a token used once");
        Ok(())
    };
    left.op(complete).mutate(&mine).push().expect("an open engine");
    right.wait_for_var(&theirs).expect("no op fails");
    left.wait_for_all().expect("no op fails");
}
