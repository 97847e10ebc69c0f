//! Variables that own values, and what failures say of the line that pushed them.

use super::{Watchdog, engine};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use weft_engine::{Cause, CloseOptions, Engine, EngineError, OpContext, Policy, Settings};

#[test]
fn values_are_given_in_the_order_in_which_they_are_named() {
    let _watchdog = Watchdog::new("task::values_are_given_in_the_order_in_which_they_are_named");
    for policy in [Policy::Serial, Policy::WorkStealing] {
        let engine = engine(policy, 4);
        let (left, right) = (engine.new_var(Some("left"), 3_u64), engine.new_var(None, String::from("a")));
        let all = engine.new_var(None, Vec::new());
        for _ in 0..100 {
            engine
                .task((left.mutate(), right.read()), |(left, right)| {
                    *left += right.len() as u64;
                    Ok(())
                })
                .push()
                .expect("an open engine");
            engine
                .task((left.read(), right.mutate(), all.mutate()), |(left, right, all)| {
                    all.push(*left);
                    if right.len() < 3 {
                        right.push('a');
                    }
                    Ok(())
                })
                .push()
                .expect("an open engine");
        }
        let mut expected = Vec::new();
        let (mut sum, mut length) = (3, 1);
        for _ in 0..100 {
            sum += length;
            expected.push(sum);
            length = (length + 1).min(3);
        }
        assert_eq!(engine.value_of(&all).expect("nothing fails"), expected);
        assert_eq!(engine.with_value(&right, String::len).expect("nothing fails"), 3);
    }
}

#[test]
fn a_variable_that_is_named_twice_is_refused_if_it_is_mutated() {
    let _watchdog = Watchdog::new("task::a_variable_that_is_named_twice_is_refused_if_it_is_mutated");
    let engine = engine(Policy::WorkStealing, 2);
    let x = engine.new_var(Some("x"), 1);
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = || {
        let ran = Arc::clone(&ran);
        move || {
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    };
    let (first, second, third, fourth) = (counted(), counted(), counted(), counted());
    let refused = [
        engine.task((x.mutate(), x.mutate()), move |_| first()).push(),
        engine.task((x.mutate(), x.read()), move |_| second()).push(),
        engine.task((x.read(), x.read(), x.mutate()), move |_| third()).push(),
        engine.task(((x.read(),), x.mutate()), move |_| fourth()).push(),
    ];
    for answer in refused {
        let message = answer.expect_err("it would have two references").to_string();
        assert_eq!(message, "'x' is named twice by one task that mutates it; name it once, by mutate()");
    }
    let fifth = counted();
    engine
        .task((x.read(), x.read()), move |(one, other)| {
            assert_eq!(one, other);
            fifth()
        })
        .push()
        .expect("shared");
    engine.wait_for_all().expect("nothing fails");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[test]
fn a_task_that_pushes_onto_its_own_variable_does_not_share_it() {
    let _watchdog = Watchdog::new("task::a_task_that_pushes_onto_its_own_variable_does_not_share_it");
    for policy in [Policy::Serial, Policy::WorkStealing] {
        let engine = engine(policy, 2);
        let x = engine.new_var(None, vec![0]);
        let (inner, own) = (engine.clone(), x.clone());
        engine
            .task(x.mutate(), move |x| {
                inner
                    .task(own.mutate(), |x| {
                        x.push(2);
                        Ok(())
                    })
                    .push()?;
                x.push(1);
                Ok(())
            })
            .push()
            .expect("an open engine");
        engine.wait_for_all().expect("nothing fails");
        assert_eq!(engine.value_of(&x).expect("nothing fails"), [0, 1, 2]);
    }
}

#[test]
fn a_value_stays_when_a_task_is_skipped_and_goes_with_its_last_handle() {
    struct Told(mpsc::Sender<()>, u32);
    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let _watchdog = Watchdog::new("task::a_value_stays_when_a_task_is_skipped_and_goes_with_its_last_handle");
    let engine = engine(Policy::WorkStealing, 2);
    let (told, gone) = mpsc::channel();
    let (x, input) = (engine.new_var(None, Told(told, 1)), engine.new_var(None, 0));
    engine.task(input.mutate(), |_| Err(Cause::new("no input"))).push().expect("an open engine");
    engine
        .task((input.read(), x.mutate()), |(_, x)| {
            x.1 = 2;
            Ok(())
        })
        .push()
        .expect("an open engine");
    assert!(matches!(engine.with_value(&x, |x| x.1), Err(EngineError::Failed(_))));
    engine.recover(&[x.variable()]).expect("the op that failed has not touched it");
    assert_eq!(engine.with_value(&x, |x| x.1).expect("the last good version"), 1);
    let (open, gate) = mpsc::channel::<()>();
    engine.task(x.read(), move |_| Ok(gate.recv()?)).push().expect("an open engine");
    drop(x);
    assert!(gone.try_recv().is_err(), "a pending op has a handle");
    open.send(()).expect("the op waits");
    gone.recv().expect("the last handle is gone");
    let _ = engine.close_with(CloseOptions { cancel: true, ..CloseOptions::default() });
}

#[test]
fn every_error_goes_out_by_a_question_mark_and_names_the_line_of_its_push() {
    let _watchdog = Watchdog::new("task::every_error_goes_out_by_a_question_mark_and_names_the_line_of_its_push");
    let engine = Engine::new(Settings::default()).expect("an engine");
    let variable = engine.new_variable(None);
    let line = line!() + 1;
    let op = engine.op(|_| Ok(std::fs::read("/no/such/file").map(drop)?)).overwrite(&variable).name("load");
    op.push().expect("an open engine");
    let Err(EngineError::Failed(failure)) = engine.wait_for_var(&variable) else { panic!("it fails") };
    let place = failure.pushed_at().expect("the compiler knows the line");
    assert_eq!((place.file(), place.line()), (file!(), line));
    let Cause::Error(error) = weft_engine::Failure::cause(&failure) else { panic!("it answered an error") };
    assert_eq!(error.downcast_ref::<io::Error>().expect("that of std").kind(), io::ErrorKind::NotFound);
    assert!(failure.to_string().starts_with(&format!("op 'load' ({}:{line}): ", file!())), "{failure}");

    let panicking = |_: &mut OpContext<'_>| panic!("at once");
    engine.op(panicking).overwrite(&variable).push().expect("an open engine");
    let Err(EngineError::Failed(failure)) = engine.wait_for_var(&variable) else { panic!("it fails") };
    assert_eq!(failure.pushed_at().expect("the same of panics").file(), file!());
    let _ = engine.wait_for_all();
}

#[test]
fn random_tasks_find_what_a_serial_run_finds() {
    let _watchdog = Watchdog::new("task::random_tasks_find_what_a_serial_run_finds");
    let run = |policy| {
        let engine = engine(policy, 4);
        let vars: Vec<_> = (0..8_u64).map(|at| engine.new_var(None, vec![at; 4])).collect();
        let mut seed = 12_u64;
        let mut draw = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..2000 {
            let (from, to, at) = (draw(8), draw(8), draw(4));
            if from == to {
                engine
                    .task(vars[to].mutate(), move |to| {
                        to[at] = to[at].wrapping_mul(31);
                        Ok(())
                    })
                    .push()
            } else {
                let add = move |(from, to): (&Vec<u64>, &mut Vec<u64>)| {
                    to[at] = to[at].wrapping_mul(7).wrapping_add(from.iter().fold(0, |sum, each| sum ^ each));
                    Ok(())
                };
                engine.task((vars[from].read(), vars[to].mutate()), add).push()
            }
            .expect("an open engine");
        }
        vars.iter().map(|var| engine.value_of(var).expect("nothing fails")).collect::<Vec<_>>()
    };
    assert_eq!(run(Policy::WorkStealing), run(Policy::Serial));
}
