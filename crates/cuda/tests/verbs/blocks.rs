//! Blocks: ops in a row have an event in common, which is recorded when somebody asks for it.

use crate::{Machine, WORDS, Watchdog};
use std::sync::Arc;
use weft_cuda::Fence;
use weft_cuda::simulated::Settings;
use weft_engine::{AccessKind, Wait};

/// Calls of the driver since this was made.
struct Calls<'m>(&'m Machine, [u64; 3]);

impl<'m> Calls<'m> {
    const NAMES: [&'static str; 3] = ["cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent"];

    fn new(machine: &'m Machine) -> Self {
        Self(machine, Self::NAMES.map(|name| machine.driver.calls(name)))
    }

    fn count(&self) -> [u64; 3] {
        let mut now = Self::NAMES.map(|name| self.0.driver.calls(name));
        now.iter_mut().zip(self.1).for_each(|(now, before)| *now -= before);
        now
    }
}

fn writer(array: &crate::Array) -> Fence {
    array.buffer.writer().expect("it was issued")
}

/// `c += c`, again and again, on one stream: launches, and an event for each sixteen of them; brief ones and lasting ones.
#[test]
fn a_chain_in_place_is_launches() {
    let _watchdog = Watchdog::new("a chain in place is launches");
    let machine = Machine::new(Settings::default(), 0);
    let (x, out) = (machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 1);
    machine.launch("scale", &out, &x, 2);
    // Whose event is open before, and is not asked for: that of the fill, which it shares with the first launch.
    writer(&out).wait(&mut Wait::default()).expect("no fault");
    for (ops, factor, records) in [(160, 2, 10), (160, 1, 10), (15, 3, 0), (1, 2, 1)] {
        let calls = Calls::new(&machine);
        (0..ops).for_each(|_| machine.launch("axpy", &out, &out, factor));
        assert_eq!(calls.count(), [ops, records, 0], "factor {factor}");
    }
    machine.driver.run_until_idle();
    machine.check();
}

/// What lasts has an event of its own where somebody could ask for what was before it: none waits in vain.
#[test]
fn lasting_ops_that_follow_nobody_are_waited_for_alone() {
    let _watchdog = Watchdog::new("lasting ops that follow nobody are waited for alone");
    let machine = Machine::new(Settings::default(), 0);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 1);
    writer(&x).wait(&mut Wait::default()).expect("no fault");
    let outs: Vec<_> = (0..40).map(|_| machine.array(0, WORDS)).collect();
    outs.iter().for_each(|out| machine.launch("scale", out, &x, 2));
    let stream = |out: &crate::Array| writer(out).stream().number();
    let before_last = outs[..39].iter().rfind(|out| stream(out) == stream(&outs[39])).expect("few streams");
    let calls = Calls::new(&machine);
    writer(before_last).wait(&mut Wait::default()).expect("no fault");
    assert_eq!(calls.count(), [0, 0, 0], "it was recorded before the last one");
    writer(&outs[39]).wait(&mut Wait::default()).expect("no fault");
    assert_eq!(calls.count(), [0, 1, 0]);
    machine.check();
}

/// A chain of lasting ops through memory that is kept: apart at first, then in blocks, and apart for longer each time that
/// somebody has waited in vain.
#[test]
fn lasting_ops_in_a_chain_share_events_while_nobody_waits_in_vain() {
    let _watchdog = Watchdog::new("lasting ops in a chain share events while nobody waits in vain");
    let machine = Machine::new(Settings::default(), 0);
    let first = machine.array(0, WORDS);
    machine.fill(&first, 1);
    let mut chain = vec![first];
    let mut grow = |ops: usize| {
        let calls = Calls::new(&machine);
        for _ in 0..ops {
            let next = machine.array(0, WORDS);
            machine.launch("scale", &next, &chain[chain.len() - 1], 2);
            chain.push(next);
        }
        let records = calls.count()[1];
        (records, writer(&chain[chain.len() - 2]))
    };
    let (apart, _) = grow(64);
    assert_eq!(apart, 64, "each has one, recorded before the next");
    let (shared, middle) = grow(16 * 5 + 8);
    assert_eq!(shared, 5);
    middle.wait(&mut Wait::default()).expect("no fault");
    assert_eq!(grow(64).0, 63, "the first one begins a block");
    assert_eq!(grow(160).0, 10 + 1, "the last of those apart, and in blocks again");
    let (_, middle) = grow(2);
    middle.wait(&mut Wait::default()).expect("no fault");
    assert_eq!(grow(256).0, 255, "four times as long");
    machine.driver.run_until_idle();
    machine.check();
}

/// What each op makes anew lies where what went before lay: neither memory nor events are asked for.
#[test]
fn temporaries_of_brief_ops_cost_launches_alone() {
    let _watchdog = Watchdog::new("temporaries of brief ops cost launches alone");
    let machine = Machine::new(Settings::default(), 0);
    let a = machine.array(0, WORDS);
    machine.fill(&a, 1);
    let mut last = machine.array(0, WORDS);
    machine.launch("scale", &last, &a, 1);
    let step = |last: &mut crate::Array| {
        let fresh = machine.array(0, WORDS);
        machine.launch("scale", &fresh, last, 1);
        *last = fresh;
    };
    (0..64).for_each(|_| step(&mut last));
    let (calls, allocations) = (Calls::new(&machine), machine.driver.allocations());
    (0..64).for_each(|_| step(&mut last));
    assert_eq!(calls.count(), [64, 4, 0]);
    assert_eq!(machine.driver.allocations(), allocations);
    assert_eq!(machine.value(&last), vec![0x1_0000_0001; WORDS]);
    machine.check();
}

#[test]
fn the_host_has_an_event_recorded_once() {
    let _watchdog = Watchdog::new("the host has an event recorded once");
    let machine = Machine::new(Settings::default(), 0);
    let (x, out) = (machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 1);
    machine.launch("scale", &out, &x, 1);
    let first = writer(&out);
    (0..3).for_each(|_| machine.launch("axpy", &out, &out, 1));
    let (calls, second) = (Calls::new(&machine), writer(&out));
    assert_ne!(first, second);
    first.wait(&mut Wait::default()).expect("no fault");
    assert!(second.is_done().expect("no fault"), "the event is behind both");
    assert_eq!(calls.count(), [0, 1, 0]);
    machine.launch("axpy", &out, &out, 1);
    assert_eq!(calls.count(), [1, 1, 0]);
    let _ = writer(&out).is_done().expect("no fault");
    assert_eq!(calls.count(), [1, 2, 0], "a new block");
    machine.driver.run_until_idle();
    machine.check();
}

#[test]
fn another_stream_has_it_recorded() {
    let _watchdog = Watchdog::new("another stream has it recorded");
    let machine = Machine::new(Settings::default(), 0);
    let blocks = [(); 2].map(|()| Arc::new(machine.device(0).pinned(WORDS * 8).expect("memory")));
    let (x, out) = (machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 1);
    machine.launch("scale", &out, &x, 1);
    let calls = Calls::new(&machine);
    machine.launch("axpy", &out, &out, 1);
    assert_eq!(calls.count(), [1, 0, 0]);
    machine.copy_pinned(&blocks[0], &out, AccessKind::Read);
    assert_eq!(calls.count(), [1, 2, 1], "the block's, and the copy's own");
    machine.copy_pinned(&blocks[1], &out, AccessKind::Read);
    assert_eq!(calls.count(), [1, 3, 1]);
    machine.driver.run_until_idle();
    machine.check();
}

/// Who waits for a brief op waits for nothing that came behind it and had to wait itself.
#[test]
fn a_block_ends_where_its_stream_waits() {
    let _watchdog = Watchdog::new("a block ends where its stream waits");
    let machine = Machine::new(Settings::default(), 0);
    let [x, a, b] = [(); 3].map(|()| machine.array(0, WORDS));
    machine.fill(&x, 1);
    machine.launch("scale", &a, &x, 1);
    machine.launch("scale", &b, &x, 1);
    let (first, held) = (writer(&a), writer(&b));
    assert_ne!(first.stream().number(), held.stream().number());
    machine.driver.hold(held.stream().handle(), true);
    machine.launch("axpy", &a, &b, 1);
    let second = writer(&a);
    assert_eq!(first.stream().number(), second.stream().number());
    first.wait(&mut Wait::default()).expect("no fault");
    assert!(!second.is_done().expect("no fault"));
    machine.driver.hold(held.stream().handle(), false);
    second.wait(&mut Wait::default()).expect("no fault");
    machine.check();
}

/// The last handles on brief ops may go before anybody has asked: their event is used again.
#[test]
fn events_that_nobody_asked_for_are_used_again() {
    let _watchdog = Watchdog::new("events that nobody asked for are used again");
    let machine = Machine::new(Settings::default(), 0);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 1);
    let round = || {
        let out = machine.array(0, WORDS);
        machine.launch("scale", &out, &x, 1);
    };
    (0..500).for_each(|_| round());
    machine.driver.run_until_idle();
    let events = machine.driver.holdings().events;
    for _ in 0..20 {
        (0..50).for_each(|_| round());
        machine.driver.run_until_idle();
    }
    assert_eq!(machine.driver.holdings().events, events);
    machine.check();
}
