//! Policies: who runs what where. That they give the same results is the oracle's business.

use crate::{Answer, Log, Watchdog, engine, occupy, stealing};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use weft_engine::{
    Accesses, Device, DeviceLane, Engine, EngineError, Host, InOrder, OpContext, Payload, Policy, PushOptions,
    Settings, Variable,
};

#[test]
fn policies_have_names() {
    for policy in Policy::ALL {
        assert_eq!(Policy::from_str(&policy.to_string()).expect("a known name"), policy);
        let workers = match policy.seed() {
            Some(_) => 1,
            None if policy.is_inline() => 0,
            None => 3,
        };
        assert_eq!(engine(policy, 3).workers(), workers);
    }
    assert_eq!(Policy::from_str("shuffled:18446744073709551615").expect("a seed"), Policy::Shuffled(u64::MAX));
    for (wrong, told) in [
        ("shuffled", "takes a seed"),
        ("shuffled:", "takes a seed"),
        ("shuffled:-1", "takes a seed"),
        ("shuffled:18446744073709551616", "takes a seed"),
        ("serial:1", "takes no seed"),
    ] {
        assert!(Policy::from_str(wrong).expect_err("no policy").to_string().contains(told), "{wrong}");
    }
    let unknown = Policy::from_str("round_robin").expect_err("an unknown name");
    assert!(matches!(&unknown, EngineError::InvalidArgument(_)));
    assert!(unknown.to_string().contains("work_stealing, per_device, serial, shuffled:SEED"), "{unknown}");
}

fn here(log: &Log<thread::ThreadId>) -> impl FnOnce(&mut OpContext<'_>) -> Answer + Send + 'static {
    let log = log.clone();
    move |_: &mut OpContext<'_>| {
        log.note(thread::current().id());
        Ok(())
    }
}

#[test]
fn serial_runs_at_the_push() {
    let _watchdog = Watchdog::new("serial runs at the push");
    let (engine, log) = (engine(Policy::Serial, 1), Log::default());
    let variable = engine.new_variable(None);
    for at in 1..=10 {
        engine.op(here(&log)).mutate(&variable).push().expect("an open engine");
        assert_eq!((log.all().len(), variable.completed_version()), (at, at as u64));
    }
    assert!(log.all().iter().all(|&thread| thread == thread::current().id()));
}

#[test]
fn others_run_on_named_threads() {
    let _watchdog = Watchdog::new("others run on named threads");
    for policy in [Policy::WorkStealing, Policy::PerDevice] {
        let settings = Settings { policy, workers: Some(1), name: Some("looms".to_owned()), ..Settings::default() };
        let (engine, log) = (weft_engine::Engine::new(settings).expect("valid settings"), Log::default());
        for lane in [DeviceLane::Compute, DeviceLane::Copy] {
            let noted = log.clone();
            let name = move |_: &mut OpContext<'_>| {
                noted.note(thread::current().name().unwrap_or_default().to_owned());
                Ok(())
            };
            engine.op(name).device(Device { index: 1, lane }).push().expect("an open engine");
            engine.wait_for_all().expect("no op fails");
        }
        let lanes = if policy == Policy::PerDevice { ["looms-2.0", "looms-3.0"] } else { ["looms-0.0"; 2] };
        assert_eq!(log.all(), lanes);
    }
}

/// A device's copies go on while its work is blocked, and so does another device's work.
#[test]
fn lanes_do_not_hold_each_other_up() {
    let _watchdog = Watchdog::new("lanes do not hold each other up");
    let (engine, log) = (engine(Policy::PerDevice, 1), Log::default());
    let busy = engine.new_variable(None);
    let release = occupy(&engine, &busy); // device 0, compute
    // More of the same, so that its lane has a queue of its own.
    for _ in 0..1000 {
        engine.op(log.noting(0)).push().expect("an open engine");
    }
    let devices = [(0, DeviceLane::Copy), (1, DeviceLane::Compute), (1, DeviceLane::Copy), (200, DeviceLane::Compute)];
    for (index, lane) in devices {
        let variable = engine.new_variable(None);
        for _ in 0..10 {
            let op = engine.op(log.noting(1)).mutate(&variable).device(Device { index, lane });
            op.push().expect("an open engine");
        }
        engine.wait_for_var(&variable).expect("no op fails");
    }
    assert_eq!(log.all(), [1; 40]);
    drop(release);
    engine.wait_for_all().expect("no op fails");
    assert_eq!(log.all().len(), 1040);
}

/// Each lane has workers of its own: as many as were asked for, and one for copies.
#[test]
fn lanes_have_their_own_workers() {
    let _watchdog = Watchdog::new("lanes have their own workers");
    let engine = engine(Policy::PerDevice, 2);
    let lanes = [(DeviceLane::Compute, 2), (DeviceLane::Copy, 1)];
    let meeting = Arc::new(Barrier::new(9));
    for index in 0..3 {
        for (lane, workers) in lanes {
            for _ in 0..workers {
                let meeting = Arc::clone(&meeting);
                let meet = move |_: &mut OpContext<'_>| {
                    meeting.wait();
                    Ok(())
                };
                engine.op(meet).device(Device { index, lane }).push().expect("an open engine");
            }
        }
    }
    engine.wait_for_all().expect("all nine meet");
}

/// What one worker has pulled, another one steals while the first is busy.
#[test]
fn a_busy_worker_is_relieved() {
    let _watchdog = Watchdog::new("a busy worker is relieved");
    let (engine, log) = (stealing(2), Log::default());
    let busy = engine.new_variable(None);
    let release = occupy(&engine, &busy);
    let free = engine.new_variable(None);
    for at in 0..1000 {
        engine.op(log.noting(at)).mutate(&free).push().expect("an open engine");
    }
    engine.wait_for_var(&free).expect("no op fails");
    assert_eq!(log.all().len(), 1000);
    drop(release);
}

/// Hosted payloads run inside the host, on workers that are told of their beginning and end.
#[test]
fn hosted_payloads_run_in_the_host() {
    thread_local! {
        static INSIDE: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }
    struct Inn(Log<&'static str>);
    impl Host for Inn {
        fn enter(&self, batch: &mut dyn FnMut()) {
            INSIDE.set(INSIDE.get() + 1);
            batch();
            INSIDE.set(INSIDE.get() - 1);
        }

        fn worker_begins(&self) {
            self.0.note("begins");
        }

        fn worker_ends(&self) {
            self.0.note("ends");
        }
    }
    struct Guest(Log<bool>);
    impl Payload for Guest {
        const HOSTED: bool = true;

        fn run(self, _: &mut OpContext<'_>) -> Answer {
            self.0.note(INSIDE.get() > 0);
            Ok(())
        }
    }
    let _watchdog = Watchdog::new("hosted payloads run in the host");
    for policy in Policy::ALL {
        let (doors, guests) = (Log::default(), Log::default());
        let host = Arc::new(Inn(doors.clone()));
        let settings = Settings { policy, workers: Some(2), host, ..Settings::default() };
        let engine = weft_engine::Engine::new(settings).expect("valid settings");
        let chain = engine.new_variable(None);
        for at in 0..500 {
            let guest = Guest(guests.clone());
            match at % 3 {
                0 => engine.op_of(guest).push(),
                1 => engine.op_of(guest).mutate(&chain).push(),
                _ => engine.op(crate::nothing).mutate(&chain).push(),
            }
            .expect("an open engine");
        }
        engine.close().expect("no op fails");
        assert_eq!(guests.all(), [true; 334], "{policy}");
        let count = |what| doors.all().iter().filter(|&&door| door == what).count();
        assert_eq!(count("begins"), count("ends"), "{policy}");
    }
}

/// A host with room for one; an op may leave it for a while.
struct Single {
    taken: Mutex<bool>,
    free: Condvar,
    /// Told of each worker at the door.
    arrived: Sender<()>,
}

impl Single {
    fn take(&self) {
        let mut taken = self.taken.lock().expect("no thread panics inside");
        while *taken {
            taken = self.free.wait(taken).expect("no thread panics inside");
        }
        *taken = true;
    }

    /// Leaves it until the other op runs, and tells that it did.
    fn leave_until(&self, wanted: &Receiver<()>, tell: &Sender<()>) {
        self.leave();
        wanted.recv().expect("the other op runs");
        self.take();
        tell.send(()).expect("the test listens");
    }

    fn leave(&self) {
        *self.taken.lock().expect("no thread panics inside") = false;
        self.free.notify_one();
    }
}

impl Host for Single {
    fn enter(&self, batch: &mut dyn FnMut()) {
        let _ = self.arrived.send(());
        self.take();
        batch();
        self.leave();
    }
}

struct Inside<F>(F);

impl<F: FnOnce() + Send + 'static> Payload for Inside<F> {
    const HOSTED: bool = true;

    fn run(self, _: &mut OpContext<'_>) -> Answer {
        (self.0)();
        Ok(())
    }
}

/// A push that met a shut gate woke nobody: who opens it looks for ops of other lanes, too.
#[test]
fn an_op_of_another_lane_that_was_pushed_at_a_shut_gate_runs_beside_the_next_one() {
    let _watchdog = Watchdog::new("an op of another lane that was pushed at a shut gate runs beside the next one");
    let (arrived, arrivals) = channel();
    let host = Arc::new(Single { taken: Mutex::new(false), free: Condvar::new(), arrived });
    let settings =
        Settings { policy: Policy::PerDevice, workers: Some(1), host: Arc::clone(&host) as _, ..Settings::default() };
    let engine = weft_engine::Engine::new(settings).expect("valid settings");
    let release = occupy(&engine, &engine.new_variable(None));
    // As native ops are ready the worker leaves the host, with hosted ones at hand.
    let ready = engine.new_variable(None);
    // It does so by the clock.
    let lasts = || {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(100) {}
    };
    for at in 0..16 {
        let own = engine.new_variable(None);
        engine.op_of(Inside(lasts)).mutate(if at == 10 { &ready } else { &own }).push().expect("an open engine");
    }
    let ((set, wanted), (tell, told)) = (channel::<()>(), channel());
    let single = Arc::clone(&host);
    engine.op_of(Inside(move || single.leave_until(&wanted, &tell))).push().expect("an open engine");
    let ((at, here), single) = (channel(), Arc::clone(&host));
    let takes = move |_: &mut OpContext<'_>| -> Answer {
        single.take();
        at.send(()).expect("the test listens");
        Ok(())
    };
    engine.op(takes).read(&ready).push().expect("an open engine");
    drop(release);
    arrivals.recv().expect("the worker comes to the door");
    here.recv().expect("it has left and taken the place");
    arrivals.recv().expect("it comes back");
    let sets = Inside(move || set.send(()).expect("an op waits for it"));
    engine.op_of(sets).device(Device { index: 1, ..Device::default() }).push().expect("an open engine");
    host.leave();
    told.recv().expect("it waits for no thread that waits in the engine");
    engine.wait_for_all().expect("no op fails");
}

/// The same where ops are drawn: what keeps an order of its own lies in other lanes.
#[test]
fn an_op_in_order_that_was_pushed_at_a_shut_gate_runs_beside_the_drawn_one() {
    struct InOrderInside(std::sync::mpsc::Sender<()>);

    impl Payload for InOrderInside {
        const HOSTED: bool = true;

        fn queue(&self) -> Option<InOrder> {
            Some(InOrder::named("beside"))
        }

        fn run(self, _: &mut OpContext<'_>) -> Answer {
            self.0.send(()).expect("an op waits for it");
            Ok(())
        }
    }

    let _watchdog = Watchdog::new("an op in order that was pushed at a shut gate runs beside the drawn one");
    let (arrived, arrivals) = channel();
    let host = Arc::new(Single { taken: Mutex::new(false), free: Condvar::new(), arrived });
    let settings = Settings { policy: Policy::Shuffled(1), host: Arc::clone(&host) as _, ..Settings::default() };
    let engine = weft_engine::Engine::new(settings).expect("valid settings");
    host.take();
    let ((set, wanted), (tell, told), single) = (channel::<()>(), channel(), Arc::clone(&host));
    engine.op_of(Inside(move || single.leave_until(&wanted, &tell))).push().expect("an open engine");
    arrivals.recv().expect("the worker comes to the door");
    engine.op_of(InOrderInside(set)).push().expect("an open engine");
    host.leave();
    told.recv().expect("the op in order runs meanwhile");
    engine.wait_for_all().expect("no op fails");
}

/// With one worker, ops for the host have their turn though native ones never end.
#[test]
fn native_ops_do_not_starve_hosted_ones() {
    struct Hosted(std::sync::mpsc::Sender<()>);

    impl Payload for Hosted {
        const HOSTED: bool = true;

        fn run(self, _: &mut OpContext<'_>) -> Answer {
            self.0.send(()).expect("the test listens");
            Ok(())
        }
    }

    fn endless(engine: &Engine, variable: &Variable, stop: &Arc<AtomicBool>) {
        let (again, own, stop) = (engine.clone(), variable.clone(), Arc::clone(stop));
        let op = move |_: &mut OpContext<'_>| {
            if !stop.load(Ordering::Relaxed) {
                endless(&again, &own, &stop);
            }
            Ok(())
        };
        engine.op(op).mutate(variable).push().expect("an open engine");
    }

    let _watchdog = Watchdog::new("native ops do not starve hosted ones");
    for policy in [Policy::WorkStealing, Policy::PerDevice] {
        let (engine, stop) = (engine(policy, 1), Arc::new(AtomicBool::new(false)));
        endless(&engine, &engine.new_variable(None), &stop);
        let (ran, has_run) = channel();
        for _ in 0..3 {
            let mut accesses = Accesses::new(&engine);
            engine.push(Hosted(ran.clone()), &mut accesses, &PushOptions::default()).expect("an open engine");
            has_run.recv().expect("it runs");
        }
        stop.store(true, Ordering::Relaxed);
        engine.wait_for_all().expect("no op fails");
    }
}
