//! An overwrite of a whole buffer does not wait for those that still use its values, where nobody knows their address.

#![allow(clippy::cast_ptr_alignment)] // buffers are aligned

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weft_array::{
    Access, Array, ArrayError, Call, DType, Layout, Opaque, Operand, Pinned, Repeatable, Scalar, copy_loop, push,
    push_elementwise, submit_overwriting,
};
use weft_engine::{Cause, Engine, EngineError, OpContext, Payload, Policy, PushOptions, Recoverable, Settings, Wait};

/// Elements of 4 bytes: more than are worth it, and fewer or more than a large op has.
const LENGTH: usize = 20_000;
const LONG: Duration = Duration::from_secs(200);
/// How long a wait is to be in vain.
const VAIN: Duration = Duration::from_millis(20);

fn engine(policy: Policy, workers: usize, rename_limit: usize) -> Engine {
    Engine::new(Settings { policy, workers: Some(workers), rename_limit, ..Settings::default() })
        .expect("valid settings")
}

fn array(engine: &Engine, length: usize, value: i64) -> Array {
    let array = Array::empty(engine, &[length], DType::UInt32).expect("a small array");
    fill(&array, value);
    array
}

fn fill(array: &Array, value: i64) {
    let filler = Operand::Scalar(Scalar::Int(value), DType::UInt32);
    push_elementwise(copy_loop(DType::UInt32), &[array], &[filler], PushOptions::default()).expect("it fits");
}

fn copy(to: &Array, from: &Array) {
    push_elementwise(copy_loop(DType::UInt32), &[to], &[Operand::Array(from)], PushOptions::default())
        .expect("it fits");
}

fn waits(timeout: Duration) -> Wait<'static> {
    Wait { timeout: Some(timeout), ..Wait::default() }
}

/// Whether all that was pushed on an array ends in this time.
fn ends(array: &Array, timeout: Duration) -> bool {
    match array.wait_to_write(&mut waits(timeout)) {
        Ok(()) => true,
        Err(EngineError::Timeout { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

fn first(array: &Array) -> u32 {
    let start = array.buffer().start().expect("it is there").wrapping_add(array.layout().offset);
    // SAFETY: the caller was granted the array, or has waited for it.
    unsafe { start.cast::<u32>().read_unaligned() }
}

fn value(array: &Array) -> u32 {
    array.wait_to_read(&mut waits(LONG)).expect("no op fails");
    first(array)
}

/// A reader that ends when it is let go, and then says what it has seen at its end.
struct Held {
    open: Sender<()>,
    seen: Receiver<u32>,
}

impl Held {
    fn new(array: &Array) -> Self {
        let ((open, gate), (tell, begun), (show, seen)) = (channel::<()>(), channel(), channel());
        let own = array.clone();
        let arrays = [(array, Access::Read)];
        let reader = move |_: &mut OpContext<'_>| {
            let _ = tell.send(());
            let _ = gate.recv();
            let _ = show.send(first(&own));
            Ok(())
        };
        push(reader, &Call::on(array.engine(), &arrays, PushOptions::default())).expect("an open engine");
        begun.recv_timeout(LONG).expect("nothing is in its way");
        Self { open, seen }
    }

    fn end(self) -> u32 {
        self.open.send(()).expect("it waits");
        self.seen.recv_timeout(LONG).expect("it ends")
    }
}

#[test]
fn an_overwrite_runs_while_the_values_before_are_read() {
    for length in [LENGTH, 5 * LENGTH] {
        let engine = engine(Policy::WorkStealing, 3, 2);
        let (x, batch) = (array(&engine, length, 1), array(&engine, length, 2));
        let tail = Array::on(
            Arc::clone(x.buffer()),
            Layout { offset: 400, ..Layout::contiguous(&[100], 4).expect("small") },
            DType::UInt32,
        )
        .expect("inside");
        assert_eq!(value(&x), 1);
        let before = x.version();
        let reader = Held::new(&tail);
        copy(&x, &batch);
        assert!(ends(&batch, LONG), "the copy has read the batch, though the reader goes on");
        assert_eq!(x.version(), before + 1);
        assert!(!x.is_ready());
        let later = array(&engine, length, 0);
        copy(&later, &x);
        assert_eq!(reader.end(), 1);
        assert_eq!((value(&x), value(&tail), value(&later)), (2, 2, 2));
    }
}

#[test]
fn a_limit_of_one_switches_it_off() {
    let engine = engine(Policy::WorkStealing, 3, 1);
    let (x, batch) = (array(&engine, LENGTH, 1), array(&engine, LENGTH, 2));
    let reader = Held::new(&x);
    copy(&x, &batch);
    assert!(!ends(&batch, VAIN));
    assert_eq!(reader.end(), 1);
    assert_eq!(value(&x), 2);
}

#[test]
fn a_buffer_has_no_more_storages_than_the_limit() {
    for limit in 2..5 {
        let engine = engine(Policy::WorkStealing, 3, limit);
        let x = array(&engine, LENGTH, 0);
        let batches: Vec<Array> = (1..).take(limit).map(|number| array(&engine, LENGTH, number)).collect();
        batches.iter().for_each(|batch| assert!(ends(batch, LONG)));
        let reader = Held::new(&x);
        for batch in &batches {
            copy(&x, batch);
            let arrays = [(&x, Access::Read)]; // else the next copy is not worth it
            let nothing = |_: &mut OpContext<'_>| Ok(());
            push(nothing, &Call::on(&engine, &arrays, PushOptions::default())).expect("an open engine");
        }
        let (waiting, running) = batches.split_last().expect("there are some");
        running.iter().for_each(|batch| assert!(ends(batch, LONG)));
        assert!(!ends(waiting, VAIN), "it waits for a storage");
        assert_eq!(reader.end(), 0);
        assert_eq!(value(&x), u32::try_from(limit).expect("small"));
    }
}

#[test]
fn an_address_that_somebody_knows_holds() {
    let engine = engine(Policy::WorkStealing, 3, 2);
    let (x, batch) = (array(&engine, LENGTH, 1), array(&engine, LENGTH, 2));
    assert_eq!(value(&x), 1);
    let known = x.buffer().storage().expect("the host's").pin();
    let reader = Held::new(&x);
    let start = x.buffer().start().expect("it is there");
    copy(&x, &batch);
    assert!(ends(&batch, LONG));
    assert_eq!(reader.end(), 1);
    assert_eq!(value(&x), 2);
    assert_eq!(x.buffer().start().expect("it is there"), start, "the values were copied");
    drop(known);

    let export = x.buffer().storage().expect("the host's").export();
    let reader = Held::new(&x);
    copy(&x, &batch);
    assert!(!ends(&batch, VAIN), "it waits as ever");
    assert_eq!(reader.end(), 2);
    assert_eq!(value(&x), 2);
    assert_eq!(x.buffer().start().expect("it is there"), start, "it was written where it lies");
    drop(export);

    let reader = Held::new(&x);
    fill(&batch, 3);
    copy(&x, &batch);
    assert!(ends(&batch, LONG));
    x.buffer().pin_for_good(); // the exchange is pending
    assert_eq!(reader.end(), 2);
    assert_eq!(value(&x), 3);
    assert_eq!(x.buffer().start().expect("it is there"), start, "the values were copied");

    let reader = Held::new(&x);
    copy(&x, &batch);
    assert!(!ends(&batch, VAIN), "it waits as ever");
    assert_eq!(reader.end(), 3);
    assert_eq!(value(&x), 3);
}

/// Loads several arrays in one op: as bindings do for callables.
struct Load(Vec<Array>, u32);

impl Payload for Load {
    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        for array in &self.0 {
            let start = array.buffer().start()?.cast::<u32>();
            // SAFETY: the access is granted, and the array contiguous.
            let all = unsafe { std::slice::from_raw_parts_mut(start, array.layout().size()) };
            all.fill(self.1);
        }
        Ok(())
    }
}

impl Repeatable for Load {
    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError> {
        Err(ArrayError::Invalid("it is not recorded".to_owned()))
    }
}

fn load(arrays: &[&Array], value: u32) {
    let listed: Vec<(&Array, Access)> = arrays.iter().map(|array| (*array, Access::Overwrite)).collect();
    let payload = |given: &[(&Array, Access)]| Load(given.iter().map(|(array, _)| (*array).clone()).collect(), value);
    // SAFETY: the payload writes to the arrays that it is given.
    unsafe { submit_overwriting(&Call::on(arrays[0].engine(), &listed, PushOptions::default()), payload) }
        .expect("an open engine");
}

#[test]
fn a_call_overwrites_several_arrays_that_are_in_use() {
    let engine = engine(Policy::WorkStealing, 4, 2);
    let (x, few, ended) = (array(&engine, LENGTH, 1), array(&engine, 8, 1), array(&engine, LENGTH, 1));
    let readers = [Held::new(&x), Held::new(&few)];
    load(&[&x, &few, &ended], 2);
    assert!(ends(&ended, LONG), "it waits for no reader");
    let readers = readers.map(Held::end);
    assert_eq!(readers, [1, 1]);
    assert_eq!((value(&x), value(&few), value(&ended)), (2, 2, 2));

    let export = x.buffer().storage().expect("the host's").export();
    let readers = [Held::new(&x), Held::new(&few)];
    load(&[&x, &few, &ended], 3);
    assert!(!ends(&ended, VAIN), "one has to wait, so all do");
    assert_eq!(readers.map(Held::end), [2, 2]);
    assert_eq!((value(&x), value(&few), value(&ended)), (3, 3, 3));
    drop(export);
}

#[test]
fn what_an_op_also_reads_is_not_renamed() {
    let engine = engine(Policy::WorkStealing, 3, 2);
    let x = array(&engine, LENGTH, 1);
    let reader = Held::new(&x);
    copy(&x, &x);
    assert_eq!(reader.end(), 1);
    assert_eq!(value(&x), 1);
}

#[test]
fn an_array_may_go_while_its_memory_is_exchanged() {
    let engine = engine(Policy::WorkStealing, 3, 2);
    let (x, batch) = (array(&engine, LENGTH, 1), array(&engine, LENGTH, 2));
    let later = Array::empty(&engine, &[LENGTH], DType::UInt32).expect("a small array");
    let reader = Held::new(&x);
    copy(&x, &batch);
    copy(&later, &x);
    copy(&x, &batch);
    drop((x, batch));
    assert_eq!(reader.end(), 1);
    assert_eq!(value(&later), 2);
    engine.wait_for_all().expect("no op fails");
}

#[test]
fn a_skipped_overwrite_leaves_the_value_before_to_be_recovered() {
    for limit in [1, 2] {
        let engine = engine(Policy::WorkStealing, 3, limit);
        let (x, batch) = (array(&engine, LENGTH, 1), array(&engine, LENGTH, 2));
        assert_eq!(value(&x), 1);
        let reader = Held::new(&x);
        let arrays = [(&batch, Access::Overwrite)];
        let fails = |_: &mut OpContext<'_>| Err(Cause::Native(7));
        push(fails, &Call::on(&engine, &arrays, PushOptions::default())).expect("an open engine");
        copy(&x, &batch);
        assert_eq!(reader.end(), 1);
        assert!(matches!(x.wait_to_read(&mut waits(LONG)), Err(EngineError::Failed(_))));
        assert!(matches!(x.recoverable(&mut waits(LONG)).expect("open"), Recoverable::Kept { .. }), "limit {limit}");
        x.recover().expect("an open engine");
        assert_eq!(value(&x), 1);
        fill(&batch, 4);
        copy(&x, &batch);
        assert_eq!(value(&x), 4);
    }
}

/// One step: what to do, two arrays, and a number.
type Step = (u8, u8, u8, u8);

const ARRAYS: usize = 4;

/// A program of overwrites, changes of parts, readers and pins, and what its arrays hold at its end.
fn run(policy: Policy, workers: usize, limit: usize, length: usize, steps: &[Step]) -> Vec<Vec<u32>> {
    let engine = engine(policy, workers, limit);
    let arrays: Vec<Array> = (0..).take(ARRAYS).map(|number| array(&engine, length, number)).collect();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut pins: Vec<Option<(Pinned, usize)>> = (0..ARRAYS).map(|_| None).collect();
    for (order, (what, one, other, number)) in steps.iter().enumerate() {
        let (at, from) = (usize::from(*one) % ARRAYS, usize::from(*other) % ARRAYS);
        let (target, source) = (&arrays[at], &arrays[from]);
        match what % 8 {
            0 | 1 => copy(target, source),
            2 if at == from => load(&[target], u32::from(*number)),
            2 => load(&[target, source], u32::from(*number)),
            3 => fill(target, i64::from(*number)),
            4 => {
                let start = usize::from(*number) * 4;
                let layout = Layout { offset: start, ..Layout::contiguous(&[length - 300], 4).expect("small") };
                let part = Array::on(Arc::clone(target.buffer()), layout, DType::UInt32).expect("inside");
                if *number % 4 == 0 {
                    fill(&part, i64::from(*number));
                } else {
                    let of_source = Array::on(Arc::clone(source.buffer()), part.layout().clone(), DType::UInt32);
                    copy(&part, &of_source.expect("inside"));
                }
            }
            // A reader that looks at all of it, later than it is pushed.
            5 | 6 => {
                let (own, seen, length) = (target.clone(), Arc::clone(&seen), length);
                let reader = move |_: &mut OpContext<'_>| {
                    let start = own.buffer().start()?.cast::<u32>();
                    // SAFETY: the access is granted, and the array contiguous.
                    let all = unsafe { std::slice::from_raw_parts(start, length) };
                    let sum = all.iter().fold(0_u32, |sum, value| sum.wrapping_mul(31).wrapping_add(*value));
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push((order, sum));
                    Ok(())
                };
                let arrays = [(target, Access::Read)];
                push(reader, &Call::on(&engine, &arrays, PushOptions::default())).expect("an open engine");
            }
            // An export begins, or ends: its address holds as long as it lives.
            _ => {
                let storage = target.buffer().storage().expect("the host's");
                if let Some((pinned, start)) = pins[at].take() {
                    assert_eq!(pinned.storage().start().expect("it is there").addr(), start);
                } else {
                    let pinned = if *number % 2 == 0 { storage.pin() } else { storage.export() };
                    let start = storage.start().expect("it is there").addr();
                    pins[at] = Some((pinned, start));
                }
            }
        }
    }
    let mut found: Vec<Vec<u32>> = arrays
        .iter()
        .map(|array| {
            array.wait_to_read(&mut waits(LONG)).expect("no op fails");
            let start = array.buffer().start().expect("it is there").cast::<u32>();
            // SAFETY: the array is contiguous, filled, and nobody writes to it.
            unsafe { std::slice::from_raw_parts(start, length) }.to_vec()
        })
        .collect();
    engine.wait_for_all().expect("no op fails");
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.sort_unstable();
    found.push(seen.iter().map(|(_, sum)| *sum).collect());
    found
}

/// Miri, under which they take ten thousand times as long, leaves them out.
#[test]
#[cfg_attr(miri, ignore)]
fn programs_give_what_the_serial_policy_makes_of_them() {
    let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[31; 32]);
    TestRunner::new_with_rng(config, rng)
        .run(&(9_000..80_000_usize, any::<u64>(), vec(any::<Step>(), 0..60)), |(length, seed, steps)| {
            let expected = run(Policy::Serial, 1, 2, length, &steps);
            for (policy, workers, limit) in [
                (Policy::WorkStealing, 2, 2),
                (Policy::WorkStealing, 4, 3),
                (Policy::WorkStealing, 2, 1),
                (Policy::Shuffled(seed), 3, 2),
            ] {
                prop_assert_eq!(&run(policy, workers, limit, length, &steps), &expected, "{:?}, {}", policy, limit);
            }
            Ok(())
        })
        .unwrap();
}
