//! Deletion is the last access.

use crate::{Log, Watchdog, engine, failed_op, failing, gate, nothing, stealing};
use weft_engine::{EngineError, OnLimit, OpContext, Policy, Settings};

#[test]
fn the_finalizer_runs_once_and_last() {
    let _watchdog = Watchdog::new("the finalizer runs once and last");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 4), Log::default());
        let (variable, other) = (engine.new_variable(None), engine.new_variable(None));
        let gate = gate::shut(&engine, &variable);
        for _ in 0..20 {
            engine.op(log.noting("reads")).read(&variable).push().expect("an open engine");
        }
        engine.op(log.noting("mutates")).mutate(&variable).mutate(&other).push().expect("an open engine");
        engine.delete_variable(&variable, log.noting("finalizes"), None).expect("it is deleted once");
        assert!(variable.is_deleted());
        gate.complete(Ok(())).expect("a token used once");
        engine.wait_for_all().expect("no op fails");
        let mut expected = vec!["reads"; 20];
        expected.extend(["mutates", "finalizes"]);
        assert_eq!(log.all(), expected, "{policy}");
        assert_eq!((variable.version(), variable.completed_version()), (2, 2), "a deletion makes no version");
    }
}

#[test]
fn a_deleted_variable_is_of_no_use() {
    let _watchdog = Watchdog::new("a deleted variable is of no use");
    let engine = stealing(1);
    let variable = engine.new_variable(Some("gone"));
    let clone = variable.clone();
    engine.delete_variable(&variable, nothing, None).expect("it is deleted once");
    let answers = [
        engine.op(nothing).read(&clone).push(),
        engine.op(nothing).mutate(&clone).push(),
        engine.wait_for_var(&clone),
        engine.wait_to_write(&clone),
        engine.delete_variable(&clone, nothing, None),
    ];
    for answer in answers {
        let Err(EngineError::VariableDeleted { variable }) = answer else { panic!("{answer:?}") };
        assert_eq!(variable, "'gone'");
    }
    engine.wait_for_all().expect("no op fails");
}

#[test]
fn a_failed_variable_is_finalized() {
    let _watchdog = Watchdog::new("a failed variable is finalized");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 1), Log::default());
        let variable = engine.new_variable(None);
        engine.op(failing).name("culprit").mutate(&variable).push().expect("an open engine");
        engine.delete_variable(&variable, log.noting(()), None).expect("it is deleted once");
        assert_eq!(failed_op(engine.wait_for_all()), "op 'culprit'");
        assert_eq!(log.all().len(), 1, "{policy}");
    }
}

#[test]
fn a_failing_finalizer_is_told_of() {
    let _watchdog = Watchdog::new("a failing finalizer is told of");
    let engine = stealing(1);
    let variable = engine.new_variable(None);
    engine.delete_variable(&variable, failing, Some("finalizer")).expect("it is deleted once");
    assert_eq!(failed_op(engine.wait_for_all()), "op 'finalizer'");
}

/// The op goes on with what it holds; the finalizer comes after it.
#[test]
fn an_op_may_delete_its_own_variable() {
    let _watchdog = Watchdog::new("an op may delete its own variable");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 2), Log::default());
        let variable = engine.new_variable(None);
        let (inside, mine, noted) = (engine.clone(), variable.clone(), log.clone());
        let op = move |_: &mut OpContext<'_>| {
            inside.delete_variable(&mine, noted.noting("finalizes"), None).expect("it is deleted once");
            noted.note("goes on");
            Ok(())
        };
        engine.op(op).mutate(&variable).push().expect("an open engine");
        engine.close().expect("no op fails");
        assert_eq!(log.all(), ["goes on", "finalizes"], "{policy}");
    }
}

/// A deletion that is refused leaves the variable as it was; a full engine refuses none.
#[test]
fn a_deletion_happens_or_does_not() {
    let _watchdog = Watchdog::new("a deletion happens or does not");
    let settings = Settings { workers: Some(1), max_pending_ops: 1, on_limit: OnLimit::Raise, ..Settings::default() };
    let (engine, log) = (weft_engine::Engine::new(settings).expect("valid settings"), Log::default());
    let (busy, variable) = (engine.new_variable(None), engine.new_variable(None));
    let gate = gate::shut(&engine, &busy);
    assert!(matches!(engine.op(nothing).push(), Err(EngineError::PendingLimit { .. })));
    engine.delete_variable(&variable, log.noting(()), None).expect("no limit holds a deletion up");
    gate.complete(Ok(())).expect("a token used once");
    let kept = engine.new_variable(None);
    engine.close().expect("no op fails");
    assert_eq!(log.all().len(), 1);
    assert!(matches!(engine.delete_variable(&kept, nothing, None), Err(EngineError::Closed { .. })));
    assert!(!kept.is_deleted());
}

/// Dropping the last handle frees the variable, after its last op.
#[test]
fn variables_are_freed() {
    let _watchdog = Watchdog::new("variables are freed");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 2), Log::default());
        let variables: Vec<_> = (0..100).map(|_| engine.new_variable(None)).collect();
        let gates: Vec<_> = variables.iter().map(|variable| gate::shut(&engine, variable)).collect();
        for (at, variable) in variables.into_iter().enumerate() {
            if at % 3 == 0 {
                engine.delete_variable(&variable, log.noting("finalizes"), None).expect("it is deleted once");
            } else if at % 3 == 1 {
                engine.op(log.noting("reads")).read(&variable).push().expect("an open engine");
            }
        }
        assert_eq!(engine.stats().variables, 100, "{policy}: they are in use");
        gates.into_iter().for_each(|gate| gate.complete(Ok(())).expect("a token used once"));
        engine.wait_for_all().expect("no op fails");
        assert_eq!((log.all().len(), engine.stats().variables), (67, 0), "{policy}");
    }
}
