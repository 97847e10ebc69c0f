//! Errors live with the version: who inherits them, who clears them, who is told.

use crate::{Log, Watchdog, engine, failed_op, failing, gate, nothing, stealing};
use std::collections::BTreeSet;
use std::sync::Arc;
use weft_engine::{Cause, EngineError, OpContext, Policy};

#[test]
fn a_failed_version_raises_at_every_wait() {
    let _watchdog = Watchdog::new("a failed version raises at every wait");
    for policy in Policy::ALL {
        let engine = engine(policy, 2);
        let variable = engine.new_variable(None);
        engine.op(failing).name("culprit").mutate(&variable).push().expect("an open engine");
        for _ in 0..3 {
            assert_eq!(failed_op(engine.wait_for_var(&variable)), "op 'culprit'", "{policy}");
            assert_eq!(failed_op(engine.wait_to_write(&variable)), "op 'culprit'", "{policy}");
        }
        assert!(variable.is_ready());
        let failure = engine.failure(&variable).expect("it failed");
        let line = failure.pushed_at().expect("the compiler knows it").line();
        assert_eq!(failure.to_string(), format!("op 'culprit' ({}:{line}): on purpose", file!()));
        assert!(Arc::ptr_eq(&failure, &engine.failure(&variable).expect("it failed")), "the same one each time");
        engine.wait_for_all().expect("it was told");
    }
}

#[test]
fn failures_pass_from_op_to_op() {
    let _watchdog = Watchdog::new("failures pass from op to op");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 2), Log::default());
        let [bad, copied, read, mended, apart] = [(); 5].map(|()| engine.new_variable(None));
        engine.op(failing).name("root").mutate(&bad).push().expect("an open engine");
        // Skipped: they see what failed.
        engine.op(log.noting("copies")).read(&bad).overwrite(&copied).push().expect("an open engine");
        engine.op(log.noting("goes on")).mutate(&copied).push().expect("an open engine");
        engine.op(log.noting("reads both")).read(&read).read(&copied).push().expect("an open engine");
        // Run: they see nothing that failed.
        engine.op(log.noting("reads")).read(&read).push().expect("an open engine");
        engine.op(log.noting("apart")).mutate(&apart).push().expect("an open engine");
        engine.op(failing).name("another").mutate(&mended).push().expect("an open engine");
        engine.op(log.noting("mends")).overwrite(&mended).push().expect("an open engine");
        engine.op(log.noting("uses")).read(&mended).push().expect("an open engine");
        assert_eq!(failed_op(engine.wait_for_var(&copied)), "op 'root'", "{policy}");
        for whole in [&read, &mended, &apart] {
            engine.wait_to_write(whole).expect("it is whole");
        }
        let ran: BTreeSet<_> = log.all().into_iter().collect();
        assert_eq!(ran, BTreeSet::from(["apart", "mends", "reads", "uses"]), "{policy}");
        assert_eq!((copied.version(), copied.completed_version()), (2, 2), "skipped mutations count");
        let stats = engine.stats();
        assert_eq!((stats.failed, stats.skipped), (2, 3), "{policy}");
        // The mended failure was never told.
        assert_eq!(failed_op(engine.wait_for_all()), "op 'another'", "{policy}");
    }
}

/// Of several failures an op inherits the first that it named, at any number of accesses.
#[test]
fn the_first_failure_named_is_inherited() {
    let _watchdog = Watchdog::new("the first failure named is inherited");
    let engine = stealing(2);
    for (count, spoiled) in [(3, [1, 2]), (40, [11, 30]), (40, [30, 11])] {
        let variables: Vec<_> = (0..count).map(|_| engine.new_variable(None)).collect();
        for at in spoiled {
            engine.op(failing).name(&at.to_string()).mutate(&variables[at]).push().expect("an open engine");
        }
        let target = engine.new_variable(None);
        let mut heir = engine.op(nothing).overwrite(&target).read(&variables[spoiled[0]]);
        for variable in &variables {
            heir = heir.read(variable);
        }
        heir.push().expect("an open engine");
        assert_eq!(failed_op(engine.wait_for_var(&target)), format!("op '{}'", spoiled[0]));
    }
    drop(engine.take_failures());
}

#[test]
fn some_ops_run_whatever_failed() {
    let _watchdog = Watchdog::new("some ops run whatever failed");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 2), Log::default());
        let variable = engine.new_variable(None);
        engine.op(failing).name("culprit").mutate(&variable).push().expect("an open engine");
        engine.op(log.noting("reads")).read(&variable).always_run().push().expect("an open engine");
        engine.op(log.noting("mutates")).mutate(&variable).always_run().push().expect("an open engine");
        engine.op(log.noting("skipped")).mutate(&variable).push().expect("an open engine");
        // Clean-up that saw the broken value does not make it whole.
        assert_eq!(failed_op(engine.wait_for_var(&variable)), "op 'culprit'");
        assert_eq!(log.all(), ["reads", "mutates"], "{policy}");
    }
}

#[test]
fn a_wait_for_all_raises_each_failure_once() {
    let _watchdog = Watchdog::new("a wait for all raises each failure once");
    for policy in Policy::ALL {
        let engine = engine(policy, 2);
        let variables: Vec<_> = (0..5).map(|_| engine.new_variable(None)).collect();
        for (at, variable) in variables.iter().enumerate() {
            engine.op(failing).name(&at.to_string()).mutate(variable).push().expect("an open engine");
            engine.op(nothing).mutate(variable).push().expect("an open engine"); // skipped: no failure of its own
        }
        assert!(engine.wait_for_var(&variables[2]).is_err());
        let Err(EngineError::ManyFailed(failures)) = engine.wait_for_all() else { panic!("four were not told") };
        let told: BTreeSet<_> = failures.iter().map(|failure| failure.op().to_owned()).collect();
        assert_eq!(told, BTreeSet::from(["op '0'", "op '1'", "op '3'", "op '4'"].map(str::to_owned)), "{policy}");
        engine.wait_for_all().expect("all were told");
        engine.op(failing).name("alone").push().expect("an open engine");
        assert_eq!(failed_op(engine.wait_for_all()), "op 'alone'", "{policy}");
        assert!(engine.wait_for_var(&variables[0]).is_err(), "the version is failed still");
    }
}

/// A failure is told though thousands came before it and were told at their waits.
#[test]
fn no_failure_is_forgotten_among_many() {
    let _watchdog = Watchdog::new("no failure is forgotten among many");
    let engine = stealing(1);
    for round in 0..1000 {
        let variable = engine.new_variable(None);
        let name = round.to_string();
        engine.op(failing).name(&name).mutate(&variable).push().expect("an open engine");
        if round % 100 != 0 {
            assert!(engine.wait_for_var(&variable).is_err());
        }
    }
    let Err(EngineError::ManyFailed(failures)) = engine.wait_for_all() else { panic!("ten were not told") };
    assert_eq!(failures.len(), 10);
}

#[test]
fn a_failed_read_spoils_nothing() {
    let _watchdog = Watchdog::new("a failed read spoils nothing");
    let engine = stealing(1);
    let (read, written) = (engine.new_variable(None), engine.new_variable(None));
    engine.op(failing).read(&read).mutate(&written).push().expect("an open engine");
    assert!(engine.wait_for_var(&written).is_err());
    engine.wait_to_write(&read).expect("it was only read");
}

#[test]
fn panics_are_failures() {
    let _watchdog = Watchdog::new("panics are failures");
    for policy in Policy::ALL {
        let engine = engine(policy, 1);
        let texts: [(&str, fn(&mut OpContext<'_>) -> crate::Answer); 3] = [
            ("as said", |_| std::panic::resume_unwind(Box::new("as said"))),
            ("as formatted", |_| std::panic::resume_unwind(Box::new("as formatted".to_owned()))),
            ("with something that is no text", |_| std::panic::resume_unwind(Box::new(7))),
        ];
        for (text, payload) in texts {
            let variable = engine.new_variable(None);
            engine.op(payload).mutate(&variable).push().expect("an open engine");
            let Err(EngineError::Failed(failure)) = engine.wait_for_var(&variable) else { panic!("it panicked") };
            assert!(matches!(failure.cause(), Cause::Panic(said) if said == text), "{policy}: {failure}");
        }
        engine.close().expect("every failure was told");
    }
}

/// A payload that was skipped is dropped unrun; a panic in that ends nobody else's work.
#[test]
fn skipped_payloads_are_dropped() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                std::panic::resume_unwind(Box::new("in a drop"));
            }
        }
    }
    let _watchdog = Watchdog::new("skipped payloads are dropped");
    for policy in Policy::ALL {
        let (engine, held) = (engine(policy, 1), Arc::new(()));
        let variable = engine.new_variable(None);
        let gate = gate::shut(&engine, &variable);
        for _ in 0..10 {
            let (panics, holds) = (Panics, Arc::clone(&held));
            let payload = move |_: &mut OpContext<'_>| {
                drop((holds, panics));
                Ok(())
            };
            engine.op(payload).mutate(&variable).push().expect("an open engine");
        }
        gate.complete(Err(Cause::Error("on purpose".into()))).expect("a token used once");
        assert_eq!(failed_op(engine.wait_for_var(&variable)), "op 'gate'");
        engine.op(nothing).overwrite(&variable).push().expect("an open engine");
        engine.close().expect("every failure was told");
        assert_eq!(Arc::strong_count(&held), 1, "{policy}");
    }
}
