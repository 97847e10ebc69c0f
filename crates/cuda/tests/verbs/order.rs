//! Order on a device: all of it that is needed, and nothing else.

use crate::{Machine, WORDS, Watchdog};
use std::sync::Arc;
use weft_cuda::PinnedBlock;
use weft_cuda::simulated::Settings;
use weft_engine::AccessKind;

/// A serial program in which every kind of access follows every other, on two devices. The host is told nothing.
fn program(machine: &Machine) -> [Arc<PinnedBlock>; 2] {
    let blocks = [(); 2].map(|()| Arc::new(machine.device(0).pinned(WORDS * 8).expect("memory")));
    let (a, b, c) = (machine.array(0, WORDS), machine.array(0, WORDS), machine.array(1, WORDS));
    machine.copy_pinned(&blocks[0], &a, AccessKind::Overwrite);
    machine.launch("scale", &b, &a, 2);
    machine.copy(&c, &b);
    machine.launch("axpy", &c, &c, 1);
    machine.copy_pinned(&blocks[1], &b, AccessKind::Read);
    machine.copy_pinned(&blocks[0], &a, AccessKind::Overwrite);
    machine.launch("axpy", &b, &a, 5);
    machine.copy(&a, &c);
    machine.copy_pinned(&blocks[1], &a, AccessKind::Read);
    machine.engine.wait_for_all().expect("no op fails");
    blocks
}

/// The crate waits for what it must, and the hazard check sees each wait that is missing.
#[test]
fn each_wait_is_needed() {
    let _watchdog = Watchdog::new("each wait is needed");
    let machine = || Machine::new(Settings { devices: 2, ..Settings::default() }, 0);
    let whole = machine();
    let blocks = program(&whole);
    let waits = whole.driver.waits();
    whole.driver.run_until_idle();
    whole.check();
    drop(blocks);
    assert!(waits >= 8, "{waits} waits, those of the frees among them");
    for nth in 1..=waits {
        let machine = machine();
        machine.driver.drop_wait(nth);
        let blocks = program(&machine);
        machine.cuda.trim().expect("kept blocks are freed");
        machine.driver.run_until_idle();
        let hazards = machine.driver.take_hazards();
        let told = |hazard: &String| {
            ["is not ordered behind", "never written", "after free"].iter().any(|problem| hazard.contains(problem))
        };
        assert!(hazards.iter().any(told), "wait {nth} of {waits} was left out: {hazards:?}");
        drop(blocks);
        machine.cuda.trim().expect("kept blocks are freed");
        machine.driver.run_until_idle();
        let _ = machine.driver.take_hazards();
    }
}

#[test]
fn a_chain_stays_on_its_stream_and_waits_for_nothing() {
    let _watchdog = Watchdog::new("a chain stays on its stream");
    let machine = Machine::new(Settings::default(), 1);
    let (x, out) = (machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&x, 1);
    machine.launch("scale", &out, &x, 1);
    for _ in 0..100 {
        machine.launch("axpy", &out, &out, 1);
    }
    machine.engine.wait_for_all().expect("no op fails");
    assert_eq!(machine.driver.waits(), 0);
    machine.check();
}

/// Reads of one value do not wait for each other, and the next write waits once for each stream that has read.
#[test]
fn many_reads_cost_one_wait_for_each_stream() {
    let _watchdog = Watchdog::new("many reads cost one wait for each stream");
    let machine = Machine::new(Settings::default(), 1);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 1);
    for _ in 0..200 {
        let out = machine.array(0, WORDS);
        machine.launch("scale", &out, &x, 2);
    }
    machine.engine.wait_for_all().expect("no op fails");
    // Each of the other compute streams has waited for the fill.
    assert_eq!(machine.driver.waits(), 3);
    machine.fill(&x, 2);
    machine.engine.wait_for_all().expect("no op fails");
    assert_eq!(machine.driver.waits(), 6);
    machine.check();
}

/// The buffer that a long kernel reads is written to again: who pushes goes on, and so do the workers.
#[test]
fn a_write_behind_a_read_does_not_hold_up_the_host() {
    let _watchdog = Watchdog::new("a write behind a read does not hold up the host");
    let machine = Machine::new(Settings::default(), 1);
    let (x, out) = (machine.array(0, WORDS), machine.array(0, WORDS));
    let from = machine.host(vec![7; WORDS]);
    machine.fill(&x, 1);
    machine.launch("scale", &out, &x, 3);
    // Nobody asks the machine for anything, so nothing runs on it: a host that waited for it would wait for ever.
    machine.fill(&x, 2);
    machine.launch("axpy", &x, &out, 1);
    machine.engine.wait_for_var(&x.variable).expect("no op fails");
    assert_eq!(machine.driver.time(), 0, "nothing has run yet");
    machine.copy_in(&x, &from);
    assert_eq!(machine.value(&out), vec![0x3_0000_0003; WORDS]);
    assert_eq!(machine.value(&x), vec![7; WORDS]);
    machine.check();
}
