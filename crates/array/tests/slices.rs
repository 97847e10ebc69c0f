//! Slices of one buffer: who waits for whom, and who does not.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weft_array::{Access, Array, Call, DType, Layout, push};
use weft_engine::{Cause, Engine, EngineError, OpContext, Policy, PushOptions, Settings, Wait};

const LENGTH: usize = 24;

fn engine(policy: Policy, workers: usize) -> Engine {
    Engine::new(Settings { policy, workers: Some(workers), ..Settings::default() }).expect("valid settings")
}

fn bytes(engine: &Engine) -> Array {
    Array::empty(engine, &[LENGTH], DType::UInt8).expect("a small array")
}

fn slice(array: &Array, start: usize, end: usize) -> Array {
    let layout = Layout { offset: start, ..Layout::contiguous(&[end - start], 1).expect("small") };
    Array::on(Arc::clone(array.buffer()), layout, DType::UInt8).expect("inside")
}

fn run(array: &Array, access: Access, body: impl FnOnce() -> Result<(), Cause> + Send + 'static) {
    let arrays = [(array, access)];
    let request = Call::on(array.engine(), &arrays, PushOptions::default());
    push(move |_: &mut OpContext<'_>| body(), &request).expect("an open engine");
}

/// An op that ends when it is let go; it is let go too when the test ends.
fn hold(array: &Array, access: Access) -> Sender<()> {
    let (open, gate) = channel::<()>();
    let (tell, begun) = channel();
    run(array, access, move || {
        let _ = tell.send(());
        let _ = gate.recv();
        Ok(())
    });
    begun.recv_timeout(Duration::from_secs(200)).expect("nothing is in its way");
    open
}

fn done(array: &Array) -> Result<(), EngineError> {
    array.wait_to_read(&mut Wait { timeout: Some(Duration::from_secs(200)), ..Wait::default() })
}

fn write(array: &Array) {
    run(array, Access::Overwrite, || Ok(()));
}

#[test]
fn a_read_of_a_slice_holds_up_no_write_of_another() {
    for access in [Access::Overwrite, Access::Mutate] {
        let engine = engine(Policy::WorkStealing, 3);
        let array = bytes(&engine);
        write(&array);
        let reader = hold(&slice(&array, 0, 8), Access::Read);
        let other = slice(&array, 8, 16);
        run(&other, access, || Ok(()));
        done(&other).expect("nobody reads it");
        let both = slice(&array, 7, 9);
        run(&both, access, || Ok(()));
        assert!(!both.is_ready(), "it is read");
        let last = slice(&array, 16, 24);
        done(&last).expect("nobody writes to it");
        let free = |array: &Array, within| {
            array.wait_to_write(&mut Wait { timeout: Some(Duration::from_millis(within)), ..Wait::default() }).is_ok()
        };
        assert!(free(&last, 20_000), "nobody uses it");
        assert!(!free(&slice(&array, 0, 4), 50), "it is read");
        drop(reader);
        done(&array).expect("nothing fails");
        assert!(free(&array, 20_000));
    }
}

#[test]
fn a_read_of_the_whole_holds_up_all_writes() {
    let engine = engine(Policy::WorkStealing, 3);
    let array = bytes(&engine);
    write(&array);
    let one = hold(&slice(&array, 0, 8), Access::Read);
    let all = hold(&array, Access::Read);
    let other = slice(&array, 8, 16);
    write(&other);
    drop(one);
    assert!(!other.is_ready());
    drop(all);
    done(&other).expect("nothing fails");
}

#[test]
fn writes_wait_for_the_one_of_the_whole_before_reads_of_slices() {
    let engine = engine(Policy::WorkStealing, 3);
    let array = bytes(&engine);
    let whole = hold(&array, Access::Mutate);
    run(&slice(&array, 0, 8), Access::Read, || Ok(()));
    let other = slice(&array, 8, 16);
    write(&other);
    assert!(!other.is_ready());
    drop(whole);
    done(&other).expect("nothing fails");
}

#[test]
fn a_failure_from_before_is_that_of_what_was_not_overwritten() {
    let engine = engine(Policy::WorkStealing, 2);
    let array = bytes(&engine);
    run(&array, Access::Mutate, || Err(Cause::Native(3)));
    let (first, second, third) = (slice(&array, 0, 8), slice(&array, 8, 16), slice(&array, 16, 24));
    run(&first, Access::Read, || Ok(()));
    write(&second);
    done(&second).expect("it was overwritten");
    run(&third, Access::Mutate, || Ok(()));
    for failed in [&first, &third, &array] {
        assert!(done(failed).is_err());
        assert!(failed.failure().is_some());
    }
    write(&first);
    write(&third);
    done(&array).expect("all of it was overwritten");
}

#[test]
fn reads_across_slices_leave_their_writes_side_by_side() {
    for access in [Access::Overwrite, Access::Mutate] {
        let engine = engine(Policy::WorkStealing, 3);
        let array = bytes(&engine);
        let parts: Vec<_> = (0..4).map(|at| slice(&array, 6 * at, 6 * at + 6)).collect();
        parts[..2].iter().for_each(write);
        run(&slice(&array, 3, 20), Access::Read, || Ok(()));
        parts[2..].iter().for_each(write);
        for (start, end) in [(0, 12), (3, 15), (5, 24), (0, 23)] {
            run(&slice(&array, start, end), Access::Read, || Ok(()));
        }
        let first = hold(&parts[0], access);
        for part in &parts[1..] {
            run(part, access, || Ok(()));
            done(part).expect("nobody else has it");
        }
        drop(first);
        done(&array).expect("nothing fails");
    }
}

/// What ops have done to one byte.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Seen {
    writes: u32,
    /// Reads since.
    reads: u32,
}

/// How an op uses a slice, where that is, and how long it takes.
type Step = (u8, usize, usize, u8);

/// Each op looks whether all that it has to come after has been, and nothing that comes after it.
fn check(steps: &[Step], policy: Policy, workers: usize) -> Result<(), TestCaseError> {
    let engine = engine(policy, workers);
    let array = bytes(&engine);
    let (mut pushed, seen) = ([Seen::default(); LENGTH], Arc::new(Mutex::new([Seen::default(); LENGTH])));
    let wrong = Arc::new(Mutex::new(Vec::new()));
    for (number, &(kind, one, other, time)) in steps.iter().enumerate() {
        let (start, end) = if kind / 4 % 8 == 7 { (0, LENGTH) } else { (one.min(other), one.max(other) + 1) };
        let access = [Access::Read, Access::Read, Access::Mutate, Access::Overwrite][usize::from(kind) % 4];
        let expected = pushed;
        for byte in &mut pushed[start..end] {
            *byte = match access {
                Access::Read => Seen { reads: byte.reads + 1, ..*byte },
                Access::Mutate | Access::Overwrite => Seen { writes: byte.writes + 1, reads: 0 },
            };
        }
        let (seen, wrong) = (Arc::clone(&seen), Arc::clone(&wrong));
        run(&slice(&array, start, end), access, move || {
            let fits = |seen: &[Seen; LENGTH]| {
                let reads = access == Access::Read;
                (start..end).all(|at| seen[at].writes == expected[at].writes && (reads || seen[at] == expected[at]))
            };
            let now = *seen.lock().unwrap_or_else(PoisonError::into_inner);
            if time > 200 {
                std::thread::sleep(Duration::from_micros(u64::from(time)));
            }
            let mut then = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if !fits(&now) || !fits(&then) {
                wrong.lock().unwrap_or_else(PoisonError::into_inner).push(number);
            }
            for byte in &mut then[start..end] {
                match access {
                    Access::Read => byte.reads += 1,
                    Access::Mutate | Access::Overwrite => *byte = Seen { writes: byte.writes + 1, reads: 0 },
                }
            }
            Ok(())
        });
    }
    engine.wait_for_all().expect("nothing fails");
    let wrong = wrong.lock().unwrap_or_else(PoisonError::into_inner);
    prop_assert!(wrong.is_empty(), "ops {wrong:?} came too early or too late, {policy:?} with {workers} workers");
    prop_assert_eq!(*seen.lock().unwrap_or_else(PoisonError::into_inner), pushed);
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore)] // minutes
fn random_programs_come_in_order() {
    let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]);
    let steps = vec((any::<u8>(), 0..LENGTH, 0..LENGTH, any::<u8>()), 0..120);
    TestRunner::new_with_rng(config, rng)
        .run(&steps, |steps| {
            check(&steps, Policy::WorkStealing, 3)?;
            check(&steps, Policy::PerDevice, 2)
        })
        .unwrap();
}
