//! An overwrite of a whole buffer takes another block, where it would else wait for those who use the values before.

use crate::{Array, KERNEL, Machine, WORDS, Watchdog};
use std::sync::Arc;
use weft_cuda::simulated::Settings;
use weft_cuda::{DeviceBuffer, Fence, PinnedBlock};
use weft_engine::AccessKind;

/// Kernels' inputs and results, and pinned memory for copies.
struct Loop {
    machine: Machine,
    x: Array,
    y: Array,
    block: Arc<PinnedBlock>,
}

impl Loop {
    fn new(storages: usize) -> Self {
        let machine = Machine::new(Settings::default(), 1).renaming(storages);
        let (x, y) = (machine.array(0, WORDS), machine.array(0, WORDS));
        let block = Arc::new(machine.device(0).pinned(WORDS * 8).expect("memory"));
        Self { machine, x, y, block }
    }

    /// Pushes turns of a naive loop: load, compute, store.
    fn push(&self, turns: usize) {
        for _ in 0..turns {
            self.machine.copy_pinned(&self.block, &self.x, AccessKind::Mutate);
            self.machine.launch("scale", &self.y, &self.x, 2);
        }
        self.machine.engine.wait_for_all().expect("no op fails");
    }

    /// Where an array lies, by the streams that its next overwrite would have to wait for.
    fn users(array: &Array) -> Vec<Fence> {
        array.buffer.fences_before(&(0..WORDS * 8), AccessKind::Mutate)
    }

    fn end(self) {
        self.machine.driver.run_until_idle();
        self.machine.check();
    }
}

#[test]
fn a_copy_does_not_wait_for_the_kernel_before() {
    let _watchdog = Watchdog::new("a copy does not wait for the kernel before");
    for (storages, waits) in [(1, 1), (2, 0)] {
        let turn = Loop::new(storages);
        turn.push(1);
        let before = turn.machine.driver.waits();
        turn.machine.copy_pinned(&turn.block, &turn.x, AccessKind::Mutate);
        turn.machine.engine.wait_for_all().expect("no op fails");
        assert_eq!(turn.machine.driver.waits() - before, waits, "of {storages} blocks");
        turn.end();
    }
}

#[test]
fn no_more_blocks_than_the_limit_are_in_use() {
    let _watchdog = Watchdog::new("no more blocks than the limit are in use");
    for storages in 1..5 {
        let turn = Loop::new(storages);
        turn.push(9);
        let peak = turn.machine.device(0).memory_stats().expect("a device").peak;
        assert!(peak <= (2 * storages * WORDS * 8) as u64, "{peak} bytes with {storages} storages");
        turn.end();
    }
}

#[test]
fn a_wait_for_its_users_includes_those_of_blocks_before() {
    let _watchdog = Watchdog::new("a wait for its users includes those of blocks before");
    let turn = Loop::new(2);
    turn.push(1);
    let reader = Loop::users(&turn.x);
    turn.machine.copy_pinned(&turn.block, &turn.x, AccessKind::Mutate);
    turn.machine.engine.wait_for_all().expect("no op fails");
    let users = Loop::users(&turn.x);
    assert!(reader.iter().all(|fence| users.contains(fence)), "{users:?} lack some of {reader:?}");
    assert_eq!(turn.x.buffer.fences_before(&(0..WORDS * 8), AccessKind::Read).len(), 1, "readers want the copy alone");
    turn.end();
}

/// Whether an overwrite beside a kernel takes another block, if this is done to the buffer before.
fn renames(prepare: impl FnOnce(&Arc<DeviceBuffer>)) -> bool {
    let turn = Loop::new(2);
    turn.push(1);
    prepare(&turn.x.buffer);
    let before = turn.machine.driver.waits();
    turn.machine.copy_pinned(&turn.block, &turn.x, AccessKind::Mutate);
    turn.machine.engine.wait_for_all().expect("no op fails");
    let waits = turn.machine.driver.waits() - before;
    turn.end();
    waits == 0
}

#[test]
fn a_known_address_stays() {
    let _watchdog = Watchdog::new("a known address stays");
    assert!(renames(|_| {}));
    assert!(renames(|buffer| drop(buffer.pin())));
    assert!(!renames(|buffer| buffer.lend()));
    let mut pinned = None;
    assert!(!renames(|buffer| pinned = Some(buffer.pin())));
}

/// A buffer that is overwritten no more keeps one block.
#[test]
fn spares_are_freed_in_the_end() {
    let _watchdog = Watchdog::new("spares are freed in the end");
    let turn = Loop::new(3);
    turn.push(9);
    let in_use = || turn.machine.device(0).memory_stats().expect("a device").in_use;
    assert!(in_use() > (2 * WORDS * 8) as u64);
    for _ in 0..70 {
        turn.machine.launch("axpy", &turn.y, &turn.x, 1);
    }
    turn.machine.engine.wait_for_all().expect("no op fails");
    assert_eq!(in_use(), (2 * WORDS * 8) as u64);
    turn.end();
}

/// A kernel that reads what it writes, and one that is issued when the kernel before has ended.
#[test]
fn what_need_not_wait_stays() {
    let _watchdog = Watchdog::new("what need not wait stays");
    let turn = Loop::new(2);
    turn.push(1);
    turn.machine.driver.run_until_idle();
    let before = turn.machine.device(0).memory_stats().expect("a device");
    turn.push(1);
    assert_eq!(turn.machine.device(0).memory_stats().expect("a device").peak, before.peak);
    turn.machine.launch("axpy", &turn.y, &turn.y, 3);
    turn.machine.engine.wait_for_all().expect("no op fails");
    assert_eq!(turn.machine.device(0).memory_stats().expect("a device").peak, before.peak);
    turn.end();
}

/// With other blocks, and kernels that take a quarter of the device, copies and kernels overlap.
#[test]
fn a_naive_loop_takes_as_long_as_its_kernels() {
    let _watchdog = Watchdog::new("a naive loop takes as long as its kernels");
    let times = [1, 2].map(|storages| {
        let turn = Loop::new(storages);
        turn.push(8);
        turn.machine.driver.run_until_idle();
        let time = turn.machine.driver.time();
        turn.end();
        time
    });
    assert!(times[1] < times[0], "{times:?}");
    assert!(times[1] < 9 * KERNEL, "{times:?}");
}
