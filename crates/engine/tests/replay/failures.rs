//! A step that fails fails what needs it, and nothing else.

use super::gate;
use super::ports::{Log, engine, step};
use super::watchdog::Watchdog;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use weft_engine::{
    AccessKind, Cause, CloseOptions, EngineError, OpContext, ReplayBuilder, ReplayOptions, Step, StepContext, StepKind,
    StepOptions,
};

/// A step that fails in one way or another.
fn failing(builder: &mut ReplayBuilder<Log>, kind: StepKind, panics: bool) -> weft_engine::StepId {
    let fail = move |_: &Log, _: &mut StepContext<'_, '_>| {
        assert!(!panics, "on purpose");
        Err(Cause::Native(7))
    };
    builder.step(fail, &StepOptions { kind, name: Some("bad"), ..StepOptions::default() })
}

#[test]
fn only_what_needs_it_fails() {
    let _watchdog = Watchdog::new("only what needs it fails");
    for (kind, panics) in [(StepKind::Plain, false), (StepKind::Plain, true), (StepKind::Hosted, false)] {
        let engine = engine(2);
        let mut builder = ReplayBuilder::new();
        let [spoiled, needing, beside, remade] = [(); 4].map(|()| builder.port());
        let bad = failing(&mut builder, kind, panics);
        let (after, other, next) =
            (step(&mut builder, "needs"), step(&mut builder, "other"), step(&mut builder, "follows"));
        builder.needs(after, bad).expect("an earlier step");
        builder.follows(next, bad).expect("an earlier step");
        for (step, port, kind) in [
            (bad, spoiled, AccessKind::Mutate),
            (after, needing, AccessKind::Mutate),
            (other, beside, AccessKind::Mutate),
            (bad, remade, AccessKind::Mutate),
            (next, remade, AccessKind::Overwrite),
        ] {
            builder.uses(step, port, kind).expect("there is the port");
        }
        let replay = engine.new_replay(builder).expect("a replay");
        let variables = [(); 4].map(|()| engine.new_variable(None));
        let bound: Vec<_> = [spoiled, needing, beside, remade].into_iter().zip(&variables).collect();
        for _ in 0..3 {
            let log = Arc::new(Log::default());
            engine.push_replay(&replay, &bound, Arc::clone(&log), &ReplayOptions::default()).expect("an open engine");
            for failed in &variables[..2] {
                let Err(EngineError::Failed(failure)) = engine.wait_for_var(failed) else { panic!("it failed") };
                assert_eq!(failure.op(), "op 'bad'");
            }
            engine.wait_for_var(&variables[2]).expect("nothing of it failed");
            engine.wait_for_var(&variables[3]).expect("it was overwritten since");
            let mut steps = log.steps.lock().expect("no panic").clone();
            steps.sort_unstable();
            assert_eq!(steps, ["follows", "other"]);
            // What mutates a failed version is skipped the next time.
            for spoiled in &variables[..2] {
                engine.op(|_: &mut OpContext<'_>| Ok(())).overwrite(spoiled).push().expect("an open engine");
            }
        }
        engine.close().expect("failures were told");
        assert_eq!(engine.stats().failed, 3);
    }
}

/// Of `m *= 0.9; m += g; p -= m` with a gradient that fails, `m` was changed and `p` was not.
#[test]
fn what_no_step_began_to_change_is_recovered() {
    let _watchdog = Watchdog::new("what no step began to change is recovered");
    for (kind, resolves) in [(StepKind::Plain, false), (StepKind::Hosted, false), (StepKind::Plain, true)] {
        let engine = engine(2);
        let mut builder = ReplayBuilder::new();
        let [moments, weights] = [(); 2].map(|()| builder.port());
        let gradient = failing(&mut builder, kind, false);
        let (decays, adds, updates) =
            (step(&mut builder, "decays"), step(&mut builder, "adds"), step(&mut builder, "updates"));
        for (later, earlier) in [(adds, gradient), (adds, decays), (updates, adds)] {
            builder.needs(later, earlier).expect("an earlier step");
        }
        let uses = [(decays, moments), (adds, moments), (updates, weights)];
        for (step, port) in uses {
            if resolves {
                builder.touches(step, port, true).expect("there is the port");
            } else {
                builder.uses(step, port, AccessKind::Mutate).expect("there is the port");
            }
        }
        if resolves {
            let resolved = [(moments, adds, vec![decays, adds]), (weights, updates, vec![updates])];
            for (port, last, writers) in resolved {
                builder.resolve(port, AccessKind::Mutate, (&[last], false), &writers).expect("there is the port");
            }
        }
        let replay = engine.new_replay(builder).expect("a replay");
        let variables = [(); 2].map(|()| engine.new_variable(None));
        let bound = [(moments, &variables[0]), (weights, &variables[1])];
        let log = Arc::new(Log::default());
        engine.push_replay(&replay, &bound, Arc::clone(&log), &ReplayOptions::default()).expect("an open engine");
        for variable in &variables {
            assert!(matches!(engine.wait_for_var(variable), Err(EngineError::Failed(_))));
        }
        assert_eq!(*log.steps.lock().expect("no panic"), ["decays"]);
        engine.recover(&variables.each_ref()).expect("its own variables");
        assert!(engine.wait_for_var(&variables[0]).is_err(), "a step has changed it");
        engine.wait_for_var(&variables[1]).expect("none has");
        engine.close().expect("the failure was told");
    }
}

#[test]
fn a_failed_port_skips_what_sees_it() {
    let _watchdog = Watchdog::new("a failed port skips what sees it");
    let engine = engine(2);
    let mut builder = ReplayBuilder::new();
    let [read, written] = [(); 2].map(|()| builder.port());
    let (sees, cleans, other) =
        (step(&mut builder, "sees"), step(&mut builder, "overwrites"), step(&mut builder, "other"));
    builder.follows(cleans, sees).expect("an earlier step");
    builder.uses(sees, read, AccessKind::Read).expect("there is the port");
    builder.uses(cleans, read, AccessKind::Overwrite).expect("there is the port");
    builder.uses(other, written, AccessKind::Mutate).expect("there is the port");
    let replay = engine.new_replay(builder).expect("a replay");
    let (failed, fine) = (engine.new_variable(None), engine.new_variable(None));
    engine.op(|_: &mut OpContext<'_>| Err(Cause::Native(1))).mutate(&failed).push().expect("an open engine");
    let log = Arc::new(Log::default());
    let bound = [(read, &failed), (written, &fine)];
    engine.push_replay(&replay, &bound, Arc::clone(&log), &ReplayOptions::default()).expect("an open engine");
    engine.wait_for_var(&failed).expect("it was overwritten");
    engine.wait_for_var(&fine).expect("nothing of it failed");
    let mut steps = log.steps.lock().expect("no panic").clone();
    steps.sort_unstable();
    assert_eq!(steps, ["other", "overwrites"]);
    assert!(engine.wait_for_all().is_err(), "the op's failure was not told yet");
}

/// A step that counts how often it ran and was skipped.
struct Counting(Arc<[AtomicUsize; 2]>);

impl Step<Log> for Counting {
    fn run(&self, _: &Log, _: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        self.0[0].fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn skipped(&self, _: &Log) {
        self.0[1].fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn who_is_skipped_hears_of_it() {
    let _watchdog = Watchdog::new("who is skipped hears of it");
    let engine = engine(2);
    for kind in [StepKind::Plain, StepKind::Native, StepKind::Hosted] {
        let mut builder = ReplayBuilder::new();
        let bad = failing(&mut builder, StepKind::Plain, false);
        let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        for always_run in [false, true] {
            let options = StepOptions { kind, always_run, ..StepOptions::default() };
            let step = builder.step(Counting(Arc::clone(&counts)), &options);
            builder.needs(step, bad).expect("an earlier step");
        }
        let replay = engine.new_replay(builder).expect("a replay");
        engine.push_replay(&replay, &[], Arc::default(), &ReplayOptions::default()).expect("an open engine");
        assert!(matches!(engine.wait_for_all(), Err(EngineError::Failed(_))));
        assert_eq!(counts.each_ref().map(|count| count.load(Ordering::SeqCst)), [1, 1], "{kind:?}");
    }
}

#[test]
fn a_dropped_token_fails_its_step() {
    let _watchdog = Watchdog::new("a dropped token fails its step");
    let engine = engine(1);
    let mut builder = ReplayBuilder::new();
    let port = builder.port();
    let drops = |_: &Log, context: &mut StepContext<'_, '_>| {
        drop(context.op().map(OpContext::defer));
        Ok(())
    };
    let step = builder.step(drops, &StepOptions { kind: StepKind::Native, ..StepOptions::default() });
    builder.uses(step, port, AccessKind::Mutate).expect("there is the port");
    let replay = engine.new_replay(builder).expect("a replay");
    let variable = engine.new_variable(None);
    engine
        .push_replay(&replay, &[(port, &variable)], Arc::default(), &ReplayOptions::default())
        .expect("an open engine");
    let Err(EngineError::Failed(failure)) = engine.wait_for_var(&variable) else { panic!("it failed") };
    assert!(matches!(weft_engine::Failure::cause(&failure), Cause::TokenDropped));
}

#[test]
fn a_cancelled_engine_starts_no_further_step() {
    let _watchdog = Watchdog::new("a cancelled engine starts no further step");
    let engine = engine(2);
    let mut builder = ReplayBuilder::new();
    let port = builder.port();
    let (first, second) = (step(&mut builder, "first"), step(&mut builder, "second"));
    builder.needs(second, first).expect("an earlier step");
    builder.uses(second, port, AccessKind::Mutate).expect("there is the port");
    let replay = engine.new_replay(builder).expect("a replay");
    let variable = engine.new_variable(None);
    let gate = gate::shut(&engine, &variable);
    let (sender, receiver) = channel();
    let log = Arc::new(Log { heard: Some(sender), ..Log::default() });
    engine
        .push_replay(&replay, &[(port, &variable)], Arc::clone(&log), &ReplayOptions::default())
        .expect("an open engine");
    assert_eq!(receiver.recv(), Ok("first"));
    let soon = Some(std::time::Duration::from_millis(1));
    assert!(
        matches!(
            engine.close_with(CloseOptions { cancel: true, timeout: soon, ..CloseOptions::default() }),
            Err(EngineError::Timeout { .. })
        ),
        "the gate is shut"
    );
    let again = engine.push_replay(&replay, &[(port, &variable)], Arc::default(), &ReplayOptions::default());
    assert!(matches!(again, Err(EngineError::Closed { .. })));
    gate.complete(Ok(())).expect("a token used once");
    engine
        .close_with(CloseOptions { cancel: true, ..CloseOptions::default() })
        .expect("what was cancelled is not raised");
    let stats = engine.stats();
    assert_eq!((stats.pending, stats.failed, stats.cancelled), (0, 0, 1));
    assert_eq!(*log.steps.lock().expect("no panic"), ["first"]);
    assert!(variable.has_failed());
}

/// One by one a step runs right after another that it does not need: what it does need has failed before.
#[test]
fn one_by_one_what_needs_a_failed_step_is_skipped_too() {
    let _watchdog = Watchdog::new("one by one what needs a failed step is skipped too");
    let engine = engine(1);
    let mut builder = ReplayBuilder::new();
    let spoiled = builder.port();
    let bad = failing(&mut builder, StepKind::Plain, false);
    let _beside = step(&mut builder, "beside");
    let after = step(&mut builder, "needs");
    builder.needs(after, bad).expect("an earlier step");
    let last = step(&mut builder, "last");
    builder.needs(last, after).expect("an earlier step");
    builder.uses(last, spoiled, AccessKind::Overwrite).expect("there is the port");
    let replay = engine.new_replay(builder).expect("a replay");
    let variable = engine.new_variable(None);
    for sequential in [true, false] {
        let log = Arc::new(Log::default());
        let options = ReplayOptions { sequential, ..ReplayOptions::default() };
        engine.push_replay(&replay, &[(spoiled, &variable)], Arc::clone(&log), &options).expect("an open engine");
        let Err(EngineError::Failed(failure)) = engine.wait_for_var(&variable) else { panic!("it failed") };
        assert_eq!(failure.op(), "op 'bad'");
        assert_eq!(*log.steps.lock().expect("no panic"), ["beside"]);
    }
    engine.close().expect("failures were told");
}

/// A step whose members fail as the bindings say: the first number fails, and what is left out is noted.
struct Team;

#[derive(Default)]
struct Fate {
    failing: Option<usize>,
    left_out: std::sync::Mutex<Vec<usize>>,
}

impl Step<Fate> for Team {
    fn run(&self, fate: &Fate, context: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        if let Some(member) = fate.failing {
            let behind = context.fail(member, Cause::Native(7));
            fate.left_out.lock().expect("no panic").extend(behind);
        }
        Ok(())
    }

    fn left_out(&self, fate: &Fate, member: usize) {
        fate.left_out.lock().expect("no panic").push(member);
    }
}

#[test]
fn a_member_fails_and_is_left_out_by_itself() {
    let _watchdog = Watchdog::new("a member fails by itself");
    for (kind, sequential) in [(StepKind::Native, false), (StepKind::Plain, false), (StepKind::Plain, true)] {
        members_fail_and_are_left_out_by_themselves(kind, sequential);
    }
}

fn members_fail_and_are_left_out_by_themselves(kind: StepKind, sequential: bool) {
    let engine = engine(2);
    let mut builder = ReplayBuilder::new();
    let [input, first, second, third, far] = [(); 5].map(|()| builder.port());
    let before = builder.step(|_: &Fate, _: &mut StepContext<'_, '_>| Ok(()), &StepOptions::default());
    let team = builder.step(Team, &StepOptions { kind, ..StepOptions::default() });
    assert!(builder.member(before, None).is_err(), "members come right behind their step");
    let members = ["one", "two", "three"].map(|name| builder.member(team, Some(name)).expect("the last step"));
    let after = builder.step(|_: &Fate, _: &mut StepContext<'_, '_>| Ok(()), &StepOptions::default());
    assert!(builder.needs(members[1], members[2]).is_err(), "a member needs those before it");
    builder.needs(members[2], members[0]).expect("an earlier member");
    builder.needs(after, members[2]).expect("an earlier step");
    builder.uses(members[1], input, AccessKind::Read).expect("there is the port");
    for (step, port) in members.into_iter().chain([after]).zip([first, second, third, far]) {
        builder.uses(step, port, AccessKind::Overwrite).expect("there is the port");
    }
    let replay = engine.new_replay(builder).expect("a replay");
    let variables = [(); 5].map(|()| engine.new_variable(None));
    let bound: Vec<_> = [input, first, second, third, far].into_iter().zip(&variables).collect();
    for (spoiled, failing, left_out, label, failed) in [
        (false, None, &[][..], "", [false, false, false, false]),
        (false, Some(0), &[2], "op 'one'", [true, false, true, true]),
        (false, Some(2), &[], "op 'three'", [false, false, true, true]),
        (true, None, &[1], "op 'bad'", [false, true, false, false]),
        (true, Some(0), &[1, 2], "", [true, true, true, true]),
    ] {
        let bad = move |_: &mut OpContext<'_>| if spoiled { Err(Cause::Native(8)) } else { Ok(()) };
        engine.op(bad).name("bad").overwrite(&variables[0]).push().expect("an open engine");
        let fate = Arc::new(Fate { failing, ..Fate::default() });
        let options = ReplayOptions { sequential, ..ReplayOptions::default() };
        engine.push_replay(&replay, &bound, Arc::clone(&fate), &options).expect("an open engine");
        for (variable, failed) in variables[1..].iter().zip(failed) {
            match engine.wait_for_var(variable) {
                Ok(()) => assert!(!failed, "{kind:?}, {failing:?}"),
                Err(EngineError::Failed(failure)) => {
                    assert!(failed && (label.is_empty() || failure.op() == label), "{failure}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(*fate.left_out.lock().expect("no panic"), left_out);
    }
    engine.close().expect("failures were told");
}
