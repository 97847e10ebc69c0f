//! Engines that stand still: who is told, and what.

use super::gate::shut;
use super::{Watchdog, nothing, occupy, stealing, waiting};
use std::time::Duration;
use weft_engine::{Engine, Policy, Settings};

#[test]
fn a_report_follows_whom_a_wait_waits_for() {
    let _watchdog = Watchdog::new("a_report_follows_whom_a_wait_waits_for");
    let engine = stealing(2);
    let (x, y, z) = (engine.new_variable(Some("x")), engine.new_variable(Some("y")), engine.new_variable(Some("z")));
    let release = occupy(&engine, &x);
    let token = shut(&engine, &y);
    engine.op(nothing).read(&x).mutate(&z).name("middle").push().expect("an open engine");
    engine.op(nothing).read(&z).name("reader").push().expect("an open engine");
    let (waits, awaited) = (engine.clone(), z.clone());
    let (begun, thread) = waiting(move |wait| waits.wait_to_write_with(&awaited, wait));
    begun.recv().expect("the wait begins");
    let report = engine.stall_report();
    assert_eq!(report.pending, 4);
    let mut running: Vec<_> = report.running.iter().map(|op| op.label.as_str()).collect();
    running.sort_unstable();
    assert_eq!(running, ["op 'gate'", "op 'occupant'"]);
    let waits = report.waiting.iter().map(|it| (it.label.as_str(), it.variable.as_str(), it.blocked_by.join(" ")));
    let expected = [("wait_to_write", "'z'", "op 'middle'"), ("op 'middle'", "'x'", "op 'occupant'")];
    assert_eq!(waits.collect::<Vec<_>>(), expected.map(|(label, on, by)| (label, on, by.to_owned())));
    drop(release);
    token.complete(Ok(())).expect("unused");
    thread.join().expect("no panic").expect("no op fails");
    engine.wait_for_all().expect("no op fails");
    let report = engine.stall_report();
    assert_eq!((report.running.len(), report.waiting.len(), report.pending), (0, 0, 0));
}

#[test]
fn a_chain_of_ops_that_wait_is_cut() {
    let _watchdog = Watchdog::new("a_chain_of_ops_that_wait_is_cut");
    let engine = stealing(1);
    let variables: Vec<_> = (0..20).map(|_| engine.new_variable(None)).collect();
    let release = occupy(&engine, &variables[0]);
    for pair in variables.windows(2) {
        engine.op(nothing).read(&pair[0]).mutate(&pair[1]).push().expect("an open engine");
    }
    let (waits, awaited) = (engine.clone(), variables[19].clone());
    let (begun, thread) = waiting(move |wait| waits.wait_for_var_with(&awaited, wait));
    begun.recv().expect("the wait begins");
    assert_eq!(engine.stall_report().waiting.len(), 10);
    drop(release);
    thread.join().expect("no panic").expect("no op fails");
}

#[test]
fn a_stall_is_told_once_and_again_after_progress() {
    let _watchdog = Watchdog::new("a_stall_is_told_once_and_again_after_progress");
    let patience = Duration::from_millis(1);
    let settings = Settings { workers: Some(1), stall_after: Some(patience), ..Settings::default() };
    let engine = Engine::new(settings).expect("valid settings");
    let variable = engine.new_variable(None);
    let told = || {
        loop {
            if let Some(idle) = engine.look_for_stall() {
                return idle;
            }
            std::thread::yield_now();
        }
    };
    for _ in 0..2 {
        let release = occupy(&engine, &variable);
        assert!(told() >= patience);
        std::thread::sleep(2 * patience);
        assert_eq!(engine.look_for_stall(), None);
        drop(release);
        engine.wait_for_all().expect("no op fails");
        assert_eq!(engine.look_for_stall(), None);
    }
    for policy in Policy::ALL {
        let never = Engine::new(Settings { policy, stall_after: None, ..Settings::default() }).expect("valid settings");
        assert_eq!(never.look_for_stall(), None);
    }
}
