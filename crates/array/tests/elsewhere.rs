//! Arrays whose memory the host does not reach: ordered like others, refused to ops of the host.

use std::any::Any;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use weft_array::{
    Access, Array, ArrayError, Buffer, Call, DType, Elsewhere, Home, Layout, Operand, Scalar, copy_loop, push,
    push_elementwise, push_pair,
};
use weft_engine::{Cause, Engine, OpContext, Policy, PushOptions, Settings, Wait};

const DEVICE: u16 = 40;

/// What a device might keep.
struct Memory(u32);

struct Toy;

impl Home for Toy {
    fn name(&self) -> &'static str {
        "toy:0"
    }

    fn number(&self) -> u16 {
        DEVICE
    }

    fn memory(&self, _: usize, _: usize) -> Arc<dyn Any + Send + Sync> {
        Arc::new(Memory(7))
    }
}

fn engine(policy: Policy) -> Engine {
    Engine::new(Settings { policy, workers: Some(2), ..Settings::default() }).expect("valid settings")
}

fn on_device(engine: &Engine, length: usize) -> Array {
    let memory = Elsewhere::new(&Toy, Arc::new(Memory(7)));
    let buffer = Buffer::elsewhere(engine, length * 4, false, memory);
    Array::on(buffer, Layout::contiguous(&[length], 4).expect("a small array"), DType::Float32).expect("it fits")
}

fn on_host(engine: &Engine, length: usize) -> Array {
    Array::empty(engine, &[length], DType::Float32).expect("a small array")
}

#[allow(clippy::unnecessary_wraps)] // a payload
fn none(_: &mut OpContext<'_>) -> Result<(), Cause> {
    Ok(())
}

#[test]
fn the_memory_is_its_makers() {
    let engine = engine(Policy::WorkStealing);
    let array = on_device(&engine, 3);
    let memory = array.buffer().memory_elsewhere().expect("it is elsewhere");
    assert_eq!(memory.device(), "toy:0");
    assert_eq!(memory.memory::<Memory>().map(|memory| memory.0), Some(7));
    assert!(memory.memory::<String>().is_none());
    assert!(on_host(&engine, 3).buffer().memory_elsewhere().is_none());
}

#[test]
fn ops_of_the_host_are_refused() {
    let engine = engine(Policy::WorkStealing);
    let (device, host) = (on_device(&engine, 3), on_host(&engine, 3));
    let copy = copy_loop(DType::Float32);
    for (to, from) in [(&device, &host), (&host, &device)] {
        let refused = push_elementwise(copy, &[to], &[Operand::Array(from)], PushOptions::default());
        assert_eq!(
            refused.expect_err("no loop of the host gets there").to_string(),
            "the array is on toy:0 and the op runs on the CPU: copy the array there by x.to_device(\"cpu\")"
        );
    }
    let filler = [Operand::Scalar(Scalar::Float(1.0), DType::Float32)];
    assert!(push_elementwise(copy, &[&device], &filler, PushOptions::default()).is_err());
    let arrays = [(&device, Access::Read)];
    let refused = push(none, &Call::on(&engine, &arrays, PushOptions::default()));
    assert!(matches!(refused, Err(ArrayError::Elsewhere { .. })));
    assert!(device.buffer().start().is_err(), "there is no pointer to be had");
    assert_eq!((device.version(), host.version()), (0, 0), "nothing was pushed");
}

#[test]
fn devices_follow_memory_of_one_kind() {
    let engine = engine(Policy::PerDevice);
    let (device, host, other) = (on_device(&engine, 3), on_host(&engine, 3), on_host(&engine, 3));
    host.set_device(2);
    let out = [(&other, Access::Overwrite), (&device, Access::Read)];
    push(none, &Call::anywhere(&engine, &out, PushOptions::default())).expect("it knows the device");
    assert_eq!((device.device(), other.device()), (DEVICE, 0), "the host's memory is not the device's");
    let back = [(&device, Access::Overwrite), (&host, Access::Read)];
    push(none, &Call::anywhere(&engine, &back, PushOptions::default())).expect("it knows the device");
    assert_eq!((device.device(), host.device()), (DEVICE, 2));
}

#[test]
fn nobody_comes_between_a_pair() {
    for policy in [Policy::Serial, Policy::WorkStealing, Policy::PerDevice] {
        let engine = engine(policy);
        let (device, host) = (on_device(&engine, 8), on_host(&engine, 8));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = |name: usize| {
            let seen = Arc::clone(&seen);
            move |_: &mut OpContext<'_>| {
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                Ok(())
            }
        };
        let rounds: usize = if cfg!(miri) { 5 } else { 100 };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (engine, device, host, note) = (&engine, &device, &host, &note);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let name = 2 * (rounds * thread + round);
                        let issue = [(host, Access::Read), (device, Access::Overwrite)];
                        let issue = Call::anywhere(engine, &issue, PushOptions::default());
                        let land = [(host, Access::Mutate)];
                        let land = Call::anywhere(engine, &land, PushOptions::default());
                        push_pair((note(name), &issue), (note(name + 1), &land)).expect("an open engine");
                    }
                });
            }
        });
        engine.wait_for_all().expect("nothing fails");
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(seen.len(), 8 * rounds);
        assert!(seen.chunks(2).all(|pair| pair[0] + 1 == pair[1]), "{policy:?}: {seen:?}");
        assert_eq!((device.version(), host.version()), (4 * rounds as u64, 4 * rounds as u64));
    }
}

/// Four of the floats, from this one on.
fn part(device: &Array, first: usize) -> Array {
    let layout = Layout { offset: 4 * first, ..Layout::contiguous(&[4], 4).expect("a small array") };
    Array::on(Arc::clone(device.buffer()), layout, DType::Float32).expect("it fits")
}

#[test]
fn parts_are_written_side_by_side_and_what_overlaps_them_comes_after() {
    let engine = engine(Policy::WorkStealing);
    let device = on_device(&engine, 12);
    let (first, second, across) = (part(&device, 0), part(&device, 4), part(&device, 2));
    let push_on = |array: &Array, access, payload: Box<dyn FnOnce() + Send>| {
        let op = move |_: &mut OpContext<'_>| {
            payload();
            Ok(())
        };
        let arrays = [(array, access)];
        push(op, &Call::anywhere(&engine, &arrays, PushOptions::default())).expect("an open engine");
    };
    let ((open, gate), (done, second_done)) = (channel::<()>(), channel());
    push_on(&first, Access::Overwrite, Box::new(move || gate.recv().expect("the test opens it")));
    push_on(&second, Access::Overwrite, Box::new(move || done.send(()).expect("the test waits")));
    second_done.recv().expect("it needs not wait for the first");
    let seen = Arc::new(Mutex::new(Vec::new()));
    for (name, array, access) in
        [("across", &across, Access::Mutate), ("first", &first, Access::Read), ("whole", &device, Access::Read)]
    {
        let seen = Arc::clone(&seen);
        push_on(array, access, Box::new(move || seen.lock().unwrap_or_else(PoisonError::into_inner).push(name)));
    }
    assert_eq!(seen.lock().unwrap_or_else(PoisonError::into_inner).len(), 0, "all are behind the first");
    open.send(()).expect("the op waits");
    engine.wait_for_all().expect("nothing fails");
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!((seen.len(), seen[0]), (3, "across"));
}

#[test]
fn a_failure_is_that_of_its_part() {
    let engine = engine(Policy::WorkStealing);
    let device = on_device(&engine, 12);
    let (first, second) = (part(&device, 0), part(&device, 4));
    let failing = |_: &mut OpContext<'_>| Err(Cause::Native(1));
    let on = |array| [(array, Access::Overwrite)];
    push(failing, &Call::anywhere(&engine, &on(&first), PushOptions::default())).expect("an open engine");
    push(none, &Call::anywhere(&engine, &on(&second), PushOptions::default())).expect("an open engine");
    second.wait_to_read(&mut Wait::default()).expect("it has nothing to do with the first");
    assert!(first.wait_to_read(&mut Wait::default()).is_err());
    assert!(device.wait_to_read(&mut Wait::default()).is_err(), "a part of it failed");
    let whole = on(&device);
    push(none, &Call::anywhere(&engine, &whole, PushOptions::default())).expect("an open engine");
    device.wait_to_read(&mut Wait::default()).expect("it was overwritten");
}
