//! Users' code that panics, or comes back, where it should not: it ends nobody else's work.

use super::{Answer, Log, Watchdog, cancel, engine, failing, nothing, occupy, stealing};
use std::fmt;
use weft_engine::{
    AccessKind, Accesses, Cause, Engine, EngineError, OpContext, Payload, Policy, PushOptions, Quiet, Settings,
};

/// Does something when it is dropped.
struct OnDrop<F: FnMut() + Send + 'static>(F);

impl<F: FnMut() + Send + 'static> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<F: FnMut() + Send + 'static> Payload for OnDrop<F> {
    fn run(self, _: &mut OpContext<'_>) -> Answer {
        Ok(())
    }
}

#[test]
fn accesses_of_one_engine_are_refused_by_another() {
    let _watchdog = Watchdog::new("accesses of one engine are refused by another");
    let named = |name: &str| Settings { name: Some(name.to_owned()), workers: Some(1), ..Settings::default() };
    let [warp, weft] = ["warp", "weft"].map(|name| Engine::new(named(name)).expect("valid settings"));
    let variable = warp.new_variable(Some("thread"));
    let mut accesses = Accesses::new(&warp);
    accesses.add(&variable, AccessKind::Mutate).expect("its own variable");
    let Err(EngineError::WrongEngine { variable: label, owner, engine }) =
        weft.push(nothing, &mut accesses, &PushOptions::default())
    else {
        panic!("it was taken")
    };
    assert_eq!((label.as_str(), owner.as_str(), engine.as_str()), ("'thread'", "warp", "weft"));
    assert_eq!(variable.version(), 0, "a refused push changes nothing");
    warp.push(nothing, &mut accesses, &PushOptions::default()).expect("the engine that they are of");
    warp.wait_for_var(&variable).expect("no op fails");
    weft.push(nothing, &mut Accesses::new(&warp), &PushOptions::default()).expect("no access, no stranger");
    weft.wait_for_all().expect("no op fails");
}

#[test]
fn a_thrown_value_whose_drop_panics_ends_no_worker() {
    let _watchdog = Watchdog::new("a thrown value whose drop panics ends no worker");
    for policy in Policy::ALL {
        let engine = engine(policy, 1);
        let variable = engine.new_variable(None);
        let throw = |_: &mut OpContext<'_>| -> Answer { std::panic::panic_any(OnDrop(|| panic!("again, on purpose"))) };
        engine.op(throw).mutate(&variable).name("thrower").push().expect("an open engine");
        let Err(EngineError::Failed(failure)) = engine.wait_for_var(&variable) else { panic!("{policy}: it panicked") };
        assert!(matches!(failure.cause(), Cause::Panic(_)), "{policy}: {failure}");
        engine.op(nothing).overwrite(&variable).push().expect("an open engine");
        engine.wait_for_var(&variable).expect("the worker is there");
    }
}

/// An op that must not run is dropped, and its drop throws what panics when it is dropped itself.
#[test]
fn a_skipped_or_cancelled_op_may_panic_twice() {
    let _watchdog = Watchdog::new("a skipped or cancelled op may panic twice");
    let unruly = || OnDrop(|| std::panic::panic_any(OnDrop(|| panic!("again, on purpose"))));
    let engine = stealing(1);
    let variable = engine.new_variable(None);
    engine.op(failing).mutate(&variable).push().expect("an open engine");
    engine.op_of(unruly()).read(&variable).push().expect("an open engine");
    assert!(engine.wait_for_all().is_err());
    let release = occupy(&engine, &engine.new_variable(None));
    engine.op_of(unruly()).push().expect("an open engine");
    cancel(&engine, release);
    assert_eq!(engine.stats().pending, 0);
}

#[test]
fn an_error_whose_description_panics_can_be_traced() {
    #[derive(Debug)]
    struct Unspeakable;
    impl fmt::Display for Unspeakable {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("on purpose")
        }
    }
    impl std::error::Error for Unspeakable {}

    let _watchdog = Watchdog::new("an error whose description panics can be traced");
    let engine = stealing(1);
    let variable = engine.new_variable(None);
    engine.start_trace(100).expect("no other trace");
    let fail = |_: &mut OpContext<'_>| -> Answer { Err(Cause::Error(Box::new(Unspeakable))) };
    engine.op(fail).mutate(&variable).push().expect("an open engine");
    assert!(matches!(engine.wait_for_var(&variable), Err(EngineError::Failed(_))));
    let recording = engine.stop_trace().expect("a trace");
    assert!(recording.errors.iter().any(|(_, error)| error == "an error whose description panics"));
}

#[test]
fn a_name_with_nul_is_refused() {
    let settings = Settings { name: Some("a\0b".to_owned()), ..Settings::default() };
    let Err(EngineError::InvalidArgument(message)) = Engine::new(settings) else { panic!("it was taken") };
    assert!(message.contains("NUL") && message.contains("at 1"), "{message}");
}

/// What a report finds to be skipped is dropped after it, and may ask for a report itself.
#[test]
fn a_dropped_payload_may_ask_for_a_report() {
    let _watchdog = Watchdog::new("a dropped payload may ask for a report");
    let engine = stealing(1);
    let failed = engine.new_variable(None);
    engine.op(failing).mutate(&failed).push().expect("an open engine");
    assert!(engine.wait_for_var(&failed).is_err());
    let release = occupy(&engine, &engine.new_variable(None));
    let (log, handle) = (Log::default(), engine.clone());
    let asks = log.clone();
    let payload = OnDrop(move || {
        asks.note(handle.stall_report().pending);
        let _ = handle.look_for_stall();
    });
    engine.op_of(payload).read(&failed).push().expect("an open engine");
    assert_eq!(engine.stall_report().pending, 1, "the occupant");
    assert_eq!(log.all(), [1]);
    drop(release);
    assert_eq!(engine.take_failures().len(), 0, "it was told");
}

/// A caller that pushes under a lock of its own, as arrays do, meets no payload there.
#[test]
fn nothing_of_a_users_runs_while_it_is_quiet() {
    let _watchdog = Watchdog::new("nothing of a user's runs while it is quiet");
    for policy in Policy::ALL {
        let (open, closed, log) = (engine(policy, 1), engine(policy, 1), Log::default());
        closed.close().expect("there is nothing to do");
        let failed = open.new_variable(None);
        open.op(failing).mutate(&failed).push().expect("an open engine");
        assert!(open.wait_for_var(&failed).is_err());
        let noting = |what: &'static str| {
            let log: Log<&str> = log.clone();
            OnDrop(move || log.note(what))
        };
        let release = (policy != Policy::Serial).then(|| occupy(&open, &open.new_variable(None)));
        let quiet = (Quiet::begin(), Quiet::begin());
        let options = PushOptions { priority: 1, ..PushOptions::default() };
        let refused = closed.push(noting("refused"), &mut Accesses::new(&closed), &options);
        assert!(matches!(refused, Err(EngineError::Closed { .. })));
        open.op_of(noting("skipped")).read(&failed).push().expect("an open engine");
        assert_eq!(open.stats().skipped, u64::from(policy != Policy::Serial || open.stats().pending == 0));
        let stranger = closed.new_variable(None);
        let mut foreign = Accesses::new(&closed);
        foreign.add(&stranger, AccessKind::Read).expect("its own variable");
        assert!(open.push(noting("foreign"), &mut foreign, &PushOptions::default()).is_err());
        drop(quiet.0);
        assert!(log.all().is_empty(), "{policy}: {:?}", log.all());
        drop(quiet.1);
        let mut dropped = log.all();
        dropped.sort_unstable();
        assert_eq!(dropped, ["foreign", "refused", "skipped"], "{policy}");
        assert_eq!(closed.stats().pending, 0);
        drop(release);
    }
}

/// A push that is refused takes the role for a moment. An op that was finished meanwhile is settled all the same.
#[test]
fn a_refused_push_leaves_no_finished_op_behind() {
    let _watchdog = Watchdog::new("a refused push leaves no finished op behind");
    for round in 0..200 {
        let engine = stealing(1);
        let variable = engine.new_variable(None);
        let gate = super::gate::shut(&engine, &variable);
        let closing = std::thread::spawn({
            let engine = engine.clone();
            move || engine.close()
        });
        while !engine.is_closed() {
            std::hint::spin_loop();
        }
        let finishing = std::thread::spawn(move || gate.complete(Ok(())));
        for _ in 0..round {
            assert!(engine.op(nothing).push().is_err());
        }
        finishing.join().expect("no panic").expect("a token used once");
        closing.join().expect("no panic").expect("no op fails");
    }
}
