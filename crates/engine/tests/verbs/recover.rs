//! The last good version of a variable becomes its value again.

use super::{Log, engine, failed_op, failing, gate, nothing, stealing};
use crate::watchdog::Watchdog;
use weft_engine::{Cause, Engine, EngineError, Policy, Recoverable, Variable};

fn left(engine: &Engine, variable: &Variable) -> Recoverable {
    engine.recoverable(variable).expect("its own variable")
}

#[test]
fn what_was_skipped_is_recovered() {
    let _watchdog = Watchdog::new("what was skipped is recovered");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 2), Log::default());
        let (gradient, weights) = (engine.new_variable(Some("gradient")), engine.new_variable(Some("weights")));
        assert!(matches!(left(&engine, &weights), Recoverable::Good { made: false }));
        engine.op(nothing).mutate(&weights).push().expect("an open engine");
        engine.op(failing).name("culprit").overwrite(&gradient).push().expect("an open engine");
        for _ in 0..2 {
            engine.op(log.noting("never")).read(&gradient).mutate(&weights).push().expect("an open engine");
        }
        assert_eq!(failed_op(engine.wait_for_var(&weights)), "op 'culprit'", "{policy}");
        assert!(matches!(left(&engine, &weights), Recoverable::Kept { made: true, .. }), "{policy}");
        assert!(matches!(left(&engine, &gradient), Recoverable::Spoilt(_)), "{policy}");

        engine.recover(&[&weights, &gradient]).expect("its own variables");
        engine.wait_for_var(&weights).expect("it is as it was");
        assert!(matches!(left(&engine, &weights), Recoverable::Good { made: true }), "{policy}");
        assert_eq!(failed_op(engine.wait_for_var(&gradient)), "op 'culprit'", "half of it may be written: {policy}");
        assert_eq!((weights.version(), weights.completed_version()), (3, 3), "no version was made: {policy}");

        engine.op(nothing).overwrite(&gradient).push().expect("an open engine");
        engine.op(log.noting("goes on")).read(&gradient).mutate(&weights).push().expect("an open engine");
        engine.wait_for_all().expect("the failure was told");
        assert_eq!(log.all(), ["goes on"], "{policy}");
    }
}

#[test]
fn what_ran_is_not() {
    let _watchdog = Watchdog::new("what ran is not");
    for policy in Policy::ALL {
        let engine = engine(policy, 1);
        let (bad, cleaned, remade) = (engine.new_variable(None), engine.new_variable(None), engine.new_variable(None));
        engine.op(failing).name("culprit").mutate(&bad).push().expect("an open engine");
        engine.op(nothing).read(&bad).mutate(&cleaned).mutate(&remade).push().expect("an open engine");
        // Clean-up that ran on a broken value has changed it.
        engine.op(nothing).mutate(&cleaned).always_run().push().expect("an open engine");
        // A good version begins anew.
        engine.op(nothing).overwrite(&remade).push().expect("an open engine");
        engine.op(nothing).read(&bad).mutate(&remade).push().expect("an open engine");
        assert_eq!(failed_op(engine.wait_for_all()), "op 'culprit'");
        assert!(matches!(left(&engine, &bad), Recoverable::Spoilt(_)), "{policy}");
        assert!(matches!(left(&engine, &cleaned), Recoverable::Spoilt(_)), "{policy}");
        assert!(matches!(left(&engine, &remade), Recoverable::Kept { made: true, .. }), "{policy}");
    }
}

#[test]
fn a_writer_that_runs_decides_first() {
    let _watchdog = Watchdog::new("a writer that runs decides first");
    let engine = stealing(1);
    let (bad, variable) = (engine.new_variable(None), engine.new_variable(None));
    engine.op(failing).mutate(&bad).push().expect("an open engine");
    engine.op(nothing).read(&bad).mutate(&variable).push().expect("an open engine");
    assert!(engine.wait_for_var(&variable).is_err());
    let (sender, receiver) = std::sync::mpsc::channel();
    let defer = move |context: &mut weft_engine::OpContext<'_>| {
        sender.send(context.defer()).expect("the test listens");
        Ok(())
    };
    engine.op(defer).overwrite(&variable).push().expect("an open engine");
    let token = receiver.recv().expect("it runs");
    assert!(matches!(left(&engine, &variable), Recoverable::Pending));
    engine.recover(&[&variable]).expect("its own variable");
    token.complete(Err(Cause::Native(3))).expect("a token used once");
    assert!(engine.wait_for_var(&variable).is_err(), "nothing was recovered while an op had it");
    assert!(matches!(left(&engine, &variable), Recoverable::Spoilt(_)));
}

#[test]
fn what_hands_on_tells_of_the_memory() {
    let _watchdog = Watchdog::new("what hands on tells of the memory");
    let engine = stealing(1);
    let hands_on = weft_engine::PushOptions { hands_on: true, ..weft_engine::PushOptions::default() };
    for (spoils, skips) in [(true, false), (false, true)] {
        let [root, whole, part] = [(); 3].map(|()| engine.new_variable(None));
        engine.op(failing).mutate(&root).push().expect("an open engine");
        let op = if spoils { engine.op(failing) } else { engine.op(failing).read(&root) };
        op.mutate(&whole).push().expect("an open engine");
        let mut accesses = weft_engine::Accesses::new(&engine);
        accesses.add(&whole, weft_engine::AccessKind::Read).expect("an access");
        accesses.add(&part, weft_engine::AccessKind::Mutate).expect("an access");
        engine.push_unlimited(nothing, &mut accesses, &hands_on).expect("an open engine");
        assert!(engine.wait_for_var(&part).is_err());
        assert_eq!(matches!(left(&engine, &part), Recoverable::Kept { .. }), skips);
    }
}

#[test]
fn another_engines_variable_is_refused() {
    let (one, other) = (stealing(1), stealing(1));
    let variable = other.new_variable(None);
    assert!(matches!(one.recover(&[&variable]), Err(EngineError::WrongEngine { .. })));
    assert!(matches!(one.recoverable(&variable), Err(EngineError::WrongEngine { .. })));
    other.recover(&[&variable]).expect("its own variable");
}

#[test]
fn pending_readers_are_no_hindrance() {
    let _watchdog = Watchdog::new("pending readers are no hindrance");
    let engine = stealing(2);
    let (bad, held, variable) = (engine.new_variable(None), engine.new_variable(None), engine.new_variable(None));
    engine.op(failing).mutate(&bad).push().expect("an open engine");
    engine.op(nothing).read(&bad).mutate(&variable).push().expect("an open engine");
    assert!(engine.wait_for_var(&variable).is_err());
    let gate = gate::shut(&engine, &held);
    engine.op(nothing).read(&held).read(&variable).push().expect("an open engine"); // has the variable, and waits
    engine.recover(&[&variable]).expect("its own variable");
    engine.wait_for_var(&variable).expect("it is as it was");
    gate.complete(Ok(())).expect("a token used once");
    engine.wait_for_all().expect("the failure was told");
}
