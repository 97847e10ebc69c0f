//! Pushing: what runs, in which order, and what a refused push leaves.

use crate::{Answer, Log, Watchdog, engine, gate, nothing, occupy, stealing};
use std::ffi::c_void;
use std::sync::{Arc, Barrier};
use weft_engine::{
    AccessKind, Accesses, Cause, Engine, EngineError, NativeFunction, OpContext, Payload, Policy, PushOptions, Variable,
};

#[test]
fn payloads_of_every_size_and_kind_run() {
    struct Hosted(Log<u64>);
    impl Payload for Hosted {
        const HOSTED: bool = true;

        fn run(self, _: &mut OpContext<'_>) -> Answer {
            self.0.note(4);
            Ok(())
        }
    }
    extern "C" fn store(data: *mut c_void) -> i32 {
        // SAFETY: the test passes a place for a number.
        unsafe { *data.cast::<u64>() = 5 };
        0
    }
    #[repr(align(64))]
    struct Aligned(u64);

    let _watchdog = Watchdog::new("payloads of every size and kind run");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 2), Log::default());
        let variable = engine.new_variable(None);
        engine.op(log.noting(1)).mutate(&variable).push().expect("an open engine");
        let (noted, large) = (log.clone(), [2_u64; 100]);
        let boxed = move |_: &mut OpContext<'_>| {
            noted.note(large[99]);
            Ok(())
        };
        engine.op(boxed).mutate(&variable).push().expect("an open engine");
        let (noted, aligned) = (log.clone(), Aligned(3));
        let aligned = move |_: &mut OpContext<'_>| {
            let whole = &aligned;
            assert_eq!((&raw const *whole).addr() % 64, 0);
            noted.note(whole.0);
            Ok(())
        };
        engine.op(aligned).mutate(&variable).push().expect("an open engine");
        engine.op_of(Hosted(log.clone())).mutate(&variable).push().expect("an open engine");
        let mut stored = 0_u64;
        // SAFETY: the place lives until the wait is over, and nobody else looks before.
        let native = unsafe { NativeFunction::new(store, (&raw mut stored).cast()) };
        engine.op_of(native).mutate(&variable).push().expect("an open engine");
        engine.wait_for_var(&variable).expect("no op fails");
        log.note(stored);
        assert_eq!(log.all(), [1, 2, 3, 4, 5], "{policy}");
    }
}

#[test]
fn accesses_are_granted_first_come_first_served() {
    let _watchdog = Watchdog::new("accesses are granted first come first served");
    let (engine, log) = (stealing(4), Log::default());
    let variable = engine.new_variable(None);
    let gate = gate::shut(&engine, &variable);
    // A reader behind a queued mutation must not overtake it.
    for round in 0..50 {
        engine.op(log.noting((round, "mutates"))).mutate(&variable).push().expect("an open engine");
        engine.op(log.noting((round, "reads"))).read(&variable).push().expect("an open engine");
    }
    gate.complete(Ok(())).expect("a token used once");
    engine.wait_to_write(&variable).expect("no op fails");
    let expected: Vec<_> = (0..50).flat_map(|round| [(round, "mutates"), (round, "reads")]).collect();
    assert_eq!(log.all(), expected);
}

#[test]
fn reads_run_at_once() {
    let _watchdog = Watchdog::new("reads run side by side");
    let (engine, meeting) = (stealing(3), Arc::new(Barrier::new(3)));
    let variable = engine.new_variable(None);
    for _ in 0..3 {
        let meeting = Arc::clone(&meeting);
        let meet = move |_: &mut OpContext<'_>| {
            meeting.wait(); // for all three
            Ok(())
        };
        engine.op(meet).read(&variable).push().expect("an open engine");
    }
    engine.wait_to_write(&variable).expect("no op fails");
}

#[test]
fn a_variable_named_twice_is_one_access() {
    use AccessKind::{Mutate, Overwrite, Read};
    let _watchdog = Watchdog::new("a variable named twice is one access");
    let engine = stealing(2);
    // A failure shows whether the merged access sees the old value.
    let cases: [(&[AccessKind], u64, bool); 6] = [
        (&[Read, Read], 0, true),
        (&[Read, Mutate], 1, true),
        (&[Mutate, Mutate, Read], 1, true),
        (&[Overwrite, Overwrite], 1, false),
        (&[Overwrite, Read], 1, true),
        (&[Mutate, Overwrite], 1, true),
    ];
    for (kinds, versions, sees) in cases {
        let variable = engine.new_variable(None);
        engine.op(crate::failing).name("first").mutate(&variable).push().expect("an open engine");
        let mut accesses = Accesses::new(&engine);
        for &kind in kinds {
            accesses.add(&variable, kind).expect("a variable of this engine");
        }
        engine.push(nothing, &mut accesses, &PushOptions::default()).expect("an open engine");
        let seen = engine.wait_to_write(&variable).is_err();
        let cleared = kinds.iter().all(|&kind| kind == Overwrite);
        assert_eq!((variable.version(), variable.completed_version()), (1 + versions, 1 + versions), "{kinds:?}");
        assert_eq!((seen, cleared), (sees, !sees), "{kinds:?}");
    }
    assert_eq!(engine.stats().skipped, 5);
}

/// Few accesses lie in the op, more elsewhere, and many are merged another way.
#[test]
fn an_op_may_have_any_number_of_accesses() {
    let _watchdog = Watchdog::new("an op may have any number of accesses");
    let engine = stealing(2);
    for count in [0, 1, 3, 4, 5, 16, 17, 18, 100] {
        let variables: Vec<Variable> = (0..count).map(|_| engine.new_variable(None)).collect();
        let gates: Vec<_> = variables.iter().map(|variable| gate::shut(&engine, variable)).collect();
        let log = Log::default();
        let mut accesses = Accesses::new(&engine);
        // Each is named twice, the second time in another order.
        for variable in variables.iter().chain(variables.iter().rev()) {
            accesses.add(variable, AccessKind::Mutate).expect("a variable of this engine");
        }
        engine.push(log.noting(()), &mut accesses, &PushOptions::default()).expect("an open engine");
        for gate in gates {
            assert!(log.all().is_empty(), "it waits for all {count}");
            gate.complete(Ok(())).expect("a token used once");
        }
        engine.wait_for_all().expect("no op fails");
        assert_eq!(log.all().len(), 1);
        assert!(variables.iter().all(|variable| variable.completed_version() == 2), "{count} accesses");
    }
}

#[test]
fn a_refused_push_changes_nothing() {
    let _watchdog = Watchdog::new("a refused push changes nothing");
    let (engine, other) = (stealing(1), stealing(1));
    let (mine, foreign, deleted) = (engine.new_variable(None), other.new_variable(None), engine.new_variable(None));
    engine.delete_variable(&deleted, nothing, None).expect("it is deleted once");
    let held = Arc::new(());
    let push = |second: &Variable| {
        let held = Arc::clone(&held);
        let payload = move |_: &mut OpContext<'_>| {
            drop(held);
            Ok(())
        };
        engine.op(payload).mutate(&mine).read(second).mutate(&mine).push()
    };
    assert!(matches!(push(&foreign), Err(EngineError::WrongEngine { .. })));
    assert!(matches!(push(&deleted), Err(EngineError::VariableDeleted { .. })));
    engine.wait_for_all().expect("no op fails");
    let pushed = engine.stats().pushed;
    engine.close().expect("no op fails");
    assert!(matches!(push(&mine), Err(EngineError::Closed { .. })));
    assert_eq!((mine.version(), foreign.version()), (0, 0));
    assert_eq!(Arc::strong_count(&held), 1, "refused payloads are dropped");
    assert_eq!(engine.stats().pushed, pushed);
    let twin = stealing(1);
    twin.op(nothing).mutate(&twin.new_variable(None)).push().expect("nothing is wrong here");
}

#[test]
fn a_push_needs_no_free_worker() {
    let _watchdog = Watchdog::new("a push needs no free worker");
    let engine = stealing(1);
    let (busy, other) = (engine.new_variable(None), engine.new_variable(None));
    let release = occupy(&engine, &busy);
    for _ in 0..10_000 {
        engine.op(nothing).mutate(&other).push().expect("an open engine");
    }
    assert_eq!((other.version(), other.completed_version()), (10_000, 0));
    drop(release);
    engine.wait_for_var(&other).expect("no op fails");
    assert_eq!(other.completed_version(), 10_000);
}

#[test]
fn ops_push_ops() {
    fn push(engine: &Engine, variable: &Variable, log: &Log<u32>, left: u32) {
        let inner = (engine.clone(), variable.clone(), log.clone());
        let op = move |_: &mut OpContext<'_>| {
            let (engine, variable, log) = &inner;
            log.note(left);
            if left > 0 {
                push(engine, variable, log, left - 1);
            }
            Ok(())
        };
        engine.op(op).mutate(variable).push().expect("an open engine");
    }
    let _watchdog = Watchdog::new("ops push ops");
    for policy in Policy::ALL {
        let (engine, log) = (engine(policy, 1), Log::default());
        let variable = engine.new_variable(None);
        push(&engine, &variable, &log, 200);
        engine.close().expect("no op fails");
        assert!(log.all().into_iter().eq((0..=200).rev()), "{policy}");
    }
}

#[test]
fn operators_check_once_and_push_often() {
    let _watchdog = Watchdog::new("operators check once and push often");
    let (engine, log) = (stealing(2), Log::default());
    let (read, written) = (engine.new_variable(None), engine.new_variable(None));
    let noted = log.clone();
    let payload = move |context: &mut OpContext<'_>| {
        noted.note(context.label());
        Ok(())
    };
    let accesses = [(&read, AccessKind::Read), (&written, AccessKind::Read), (&written, AccessKind::Overwrite)];
    let options = PushOptions { name: Some("again"), ..PushOptions::default() };
    let operator = engine.new_operator(payload, &accesses, &options).expect("variables of this engine");
    (0..100).for_each(|_| operator.push().expect("an open engine"));
    engine.wait_for_var(&written).expect("no op fails");
    assert_eq!((read.version(), written.completed_version()), (0, 100));
    assert_eq!(log.all(), vec!["op 'again'".to_owned(); 100]);
    engine.delete_variable(&read, nothing, None).expect("it is deleted once");
    assert!(matches!(operator.push(), Err(EngineError::VariableDeleted { .. })));
}

#[test]
fn native_functions_fail_by_their_code() {
    extern "C" fn answer(data: *mut c_void) -> i32 {
        i32::try_from(data.addr()).expect("a small number")
    }
    let _watchdog = Watchdog::new("native functions fail by their code");
    let engine = stealing(1);
    let variable = engine.new_variable(None);
    // SAFETY: the function takes any argument.
    let native = |code| unsafe { NativeFunction::new(answer, std::ptr::without_provenance_mut(code)) };
    engine.op_of(native(0)).mutate(&variable).push().expect("an open engine");
    engine.wait_for_var(&variable).expect("0 is success");
    engine.op_of(native(7)).mutate(&variable).push().expect("an open engine");
    let Err(EngineError::Failed(failure)) = engine.wait_for_var(&variable) else { panic!("7 is a failure") };
    assert!(matches!(failure.cause(), Cause::Native(7)));
}
