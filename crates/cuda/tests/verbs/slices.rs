//! Slices of one buffer: disjoint ones are not ordered, overlapping ones are.

use crate::{KERNEL, Machine, Slice, Sliced, WORDS, Watchdog};
use std::sync::Arc;
use weft_cuda::PinnedBlock;
use weft_cuda::simulated::Settings;
use weft_engine::AccessKind;

const BLOCKS: usize = 8;
const BLOCK: usize = WORDS / BLOCKS;

fn block(of: &Sliced, at: usize) -> Slice {
    of.slice(at * BLOCK..(at + 1) * BLOCK)
}

#[test]
fn disjoint_slices_run_side_by_side() {
    let _watchdog = Watchdog::new("disjoint slices run side by side");
    let machine = Machine::new(Settings::default(), 1);
    let x = machine.sliced(0, WORDS, BLOCKS);
    machine.fill_slice(&x.whole(), 1);
    machine.engine.wait_for_all().expect("no op fails");
    for at in 0..BLOCKS {
        machine.launch_slice("axpy", &block(&x, at), &block(&x, at), 1);
    }
    machine.engine.wait_for_all().expect("no op fails");
    assert_eq!(machine.driver.waits(), 3, "each of the other streams has waited for the fill");
    machine.driver.run_until_idle();
    let time = machine.driver.time();
    assert!(time < (BLOCKS as u64 / 4 + 1) * KERNEL, "{BLOCKS} kernels, four at a time, took {time} ns");
    machine.check();
}

/// The first op allocates, and takes long: those on the other parts wait for the memory alone.
#[test]
fn parts_wait_for_the_allocation_and_not_for_its_op() {
    let _watchdog = Watchdog::new("parts wait for the allocation and not for its op");
    let machine = Machine::new(Settings::default(), 1);
    let source = machine.sliced(0, WORDS, BLOCKS);
    machine.fill_slice(&source.whole(), 1);
    machine.engine.wait_for_all().expect("no op fails");
    let (waits, x) = (machine.driver.waits(), machine.sliced(0, WORDS, BLOCKS));
    for at in 0..4 {
        machine.launch_slice("scale", &block(&x, at), &block(&source, at), 1);
    }
    machine.engine.wait_for_all().expect("no op fails");
    assert_eq!(machine.driver.waits() - waits, 3 + 3, "for the source, and for the allocation");
    machine.driver.run_until_idle();
    let time = machine.driver.time();
    assert!(time < 2 * KERNEL, "four kernels that run side by side took {time} ns");
    machine.check();
}

#[test]
fn a_write_waits_for_those_who_read_its_own_bytes() {
    let _watchdog = Watchdog::new("a write waits for those who read its own bytes");
    let machine = Machine::new(Settings::default(), 1);
    let (x, out) = (machine.sliced(0, WORDS, BLOCKS), machine.sliced(0, WORDS, BLOCKS));
    machine.fill_slice(&x.whole(), 1);
    machine.fill_slice(&out.whole(), 1);
    for at in 0..4 {
        machine.launch_slice("axpy", &block(&out, at), &block(&x, at), 1);
    }
    machine.engine.wait_for_all().expect("no op fails");
    let fences = |at: usize| x.buffer.fences_before(&(at * BLOCK * 8..(at + 1) * BLOCK * 8), AccessKind::Mutate);
    for at in 0..4 {
        let (own, wanted) =
            (fences(at), out.buffer.fences_before(&(at * BLOCK * 8..at * BLOCK * 8 + 8), AccessKind::Read));
        assert_eq!((own.len(), wanted.len()), (1, 1));
        assert_eq!(own[0], wanted[0], "the one launch that reads it");
    }
    assert_eq!(fences(4)[0].label().to_string(), "op 'fill' (#0)");
    let whole = x.buffer.fences_before(&(0..WORDS * 8), AccessKind::Mutate);
    assert!((4..=5).contains(&whole.len()), "all of them: {whole:?}");
    machine.check();
}

/// What was split is one part again when an op has the whole.
#[test]
fn a_write_to_the_whole_makes_one_part_of_it() {
    let _watchdog = Watchdog::new("a write to the whole makes one part of it");
    let machine = Machine::new(Settings::default(), 1);
    let x = machine.sliced(0, WORDS, BLOCKS);
    for at in 0..BLOCKS {
        machine.fill_slice(&block(&x, at), 1);
    }
    machine.engine.wait_for_all().expect("no op fails");
    assert!(x.buffer.writer().is_none(), "there are several");
    machine.fill_slice(&x.whole(), 2);
    machine.engine.wait_for_all().expect("no op fails");
    assert!(x.buffer.writer().is_some());
    assert_eq!(x.buffer.fences().len(), 1);
    machine.check();
}

/// Slices on the copy streams and on those for kernels, of memory that nobody has used before; reads that reach over
/// several, and writes that come after these. The host is told nothing.
fn program(machine: &Machine) -> ([Arc<PinnedBlock>; 2], [Sliced; 2]) {
    let blocks = [(); 2].map(|()| Arc::new(machine.device(0).pinned(WORDS * 8).expect("memory")));
    let (x, y) = (machine.sliced(0, WORDS, BLOCKS), machine.sliced(0, WORDS, BLOCKS));
    machine.copy_pinned_slice(&block(&x, 0), (&blocks[0], 0), AccessKind::Mutate, None); // allocates
    machine.fill_slice(&block(&x, 1), 7); // waits for the allocation
    machine.launch_slice("scale", &block(&y, 0), &block(&x, 0), 2); // waits for the copy
    machine.launch_slice("scale", &y.slice(BLOCK..3 * BLOCK), &x.slice(0..2 * BLOCK), 3); // waits for both, or is behind
    machine.copy_pinned_slice(&y.slice(4..2 * BLOCK), (&blocks[1], 0), AccessKind::Read, None);
    machine.copy_pinned_slice(&x.slice(BLOCK / 2..BLOCK), (&blocks[0], 0), AccessKind::Mutate, None);
    machine.fill_slice(&y.slice(BLOCK..BLOCK + 1), 1); // waits for the copy out
    let copied = x.slice(BLOCK / 2..BLOCK);
    machine.launch_slice("axpy", &copied, &copied, 1); // waits for that copy alone
    machine.engine.wait_for_all().expect("no op fails");
    (blocks, [x, y])
}

/// The crate waits for what it must, and the hazard check sees each wait that is missing.
#[test]
fn each_wait_of_slices_is_needed() {
    let _watchdog = Watchdog::new("each wait of slices is needed");
    let machine = || Machine::new(Settings::default(), 0);
    let all = machine();
    let (blocks, arrays) = program(&all);
    let waits = all.driver.waits();
    drop(arrays);
    all.driver.run_until_idle();
    all.check();
    drop(blocks);
    assert!(waits >= 8, "{waits} waits");
    for nth in 1..=waits {
        let machine = machine();
        machine.driver.drop_wait(nth);
        let kept = program(&machine);
        machine.driver.run_until_idle();
        let hazards = machine.driver.take_hazards();
        let told = |hazard: &String| hazard.contains("is not ordered behind") || hazard.contains("never written");
        assert!(hazards.iter().any(told), "wait {nth} of {waits} was left out: {hazards:?}");
        drop(kept);
        machine.cuda.trim().expect("kept blocks are freed");
        machine.driver.run_until_idle();
        let _ = machine.driver.take_hazards();
    }
}

#[test]
fn many_slices_leave_nothing_behind() {
    let watchdog = Watchdog::new("many slices leave nothing behind");
    let machine = Machine::new(Settings::default(), 1);
    let (x, y) = (machine.sliced(0, WORDS, BLOCKS), machine.sliced(0, WORDS, BLOCKS));
    machine.fill_slice(&x.whole(), 1);
    machine.fill_slice(&y.whole(), 1);
    let (mut random, mut events) = (12345_usize, Vec::new());
    let mut draw = |most: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    for round in 0..100 {
        for _ in 0..1000 {
            let length = 1 + draw(WORDS / 2);
            let (to, from) = (draw(WORDS - length), draw(WORDS - length));
            machine.launch_slice("axpy", &x.slice(to..to + length), &y.slice(from..from + length), 1);
        }
        machine.engine.wait_for_all().expect("no op fails");
        machine.driver.run_until_idle();
        events.push(machine.driver.holdings().events);
        watchdog.feed(format!("round {round}"));
    }
    // A stream has one for each op of the rounds' longest queue, and one for what it alone has done to each part.
    assert!(events[99] <= 4 * 1000 + 500, "{events:?}");
    assert!(x.buffer.fences().len() + y.buffer.fences().len() <= 2 * 4, "no more than streams");
    machine.check();
}
