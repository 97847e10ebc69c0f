//! Device memory: freed behind its last use, and no more of anything than is in use.

use crate::{CHUNK, Machine, WORDS, Watchdog};
use weft_cuda::CudaError;
use weft_cuda::simulated::{FaultKind, Settings};
use weft_engine::Wait;

#[test]
fn a_million_ops_leave_nothing_behind() {
    let watchdog = Watchdog::new("a million ops leave nothing behind");
    let machine = Machine::new(Settings::default(), 2);
    let (x, mut out) = (machine.array(0, 1), machine.array(0, 1));
    machine.fill(&x, 1);
    machine.fill(&out, 0);
    let device = machine.device(0);
    let (mut events, mut in_use) = (0, 0);
    for round in 0..1000 {
        for op in 0..998 {
            if op % 100 == 0 {
                // A temporary, which goes at once.
                let fresh = machine.array(0, 1);
                machine.launch("scale", &fresh, &out, 1);
                out = fresh;
            }
            machine.launch("axpy", &out, &x, 1);
        }
        machine.engine.wait_for_all().expect("no op fails");
        if round % 100 == 99 {
            device.synchronize(&mut Wait::default()).expect("it ends");
            let holdings = machine.driver.holdings();
            (events, in_use) =
                (events.max(holdings.events), in_use.max(device.memory_stats().expect("figures").in_use));
            watchdog.feed(format!("round {round}"));
        }
    }
    assert!(in_use <= 3 * 8, "{in_use} bytes");
    assert!(events <= 4096, "{events} events");
    assert_eq!(machine.value(&out)[0] & 0xffff_ffff, 998_000);
    machine.check();
}

#[test]
fn memory_is_freed_without_a_wait_and_used_again() {
    let _watchdog = Watchdog::new("memory is freed without a wait and used again");
    // Room for two arrays and a half.
    let memory = WORDS as u64 * 20;
    let machine = Machine::new(Settings { memory, ..Settings::default() }, 1);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 3);
    for factor in 0..50 {
        let out = machine.array(0, WORDS);
        machine.launch("scale", &out, &x, factor);
    }
    machine.engine.wait_for_all().expect("each finds memory that another has left");
    machine.check();
}

#[test]
fn an_allocation_that_finds_no_memory_says_how_much_there_is() {
    let _watchdog = Watchdog::new("an allocation that finds no memory says how much there is");
    let machine = Machine::new(Settings { memory: 1000, ..Settings::default() }, 1);
    let (small, large) = (machine.array(0, WORDS), machine.array(0, WORDS));
    machine.fill(&small, 1);
    machine.fill(&large, 1);
    let error = machine.failure(&large.variable);
    assert_eq!(
        error.to_string(),
        "cuda:0 has no 512 bytes for op 'fill' (#1): 488 of 1000 bytes are free, 512 are in use by weft and 512 held by \
         its pool; free arrays, or work in smaller pieces"
    );
    drop(small);
    machine.fill(&large, 2);
    assert_eq!(machine.value(&large), vec![0x2_0000_0002; WORDS]);
    machine.check();
}

#[test]
fn an_allocation_is_tried_twice() {
    let _watchdog = Watchdog::new("an allocation is tried twice");
    let machine = Machine::new(Settings::default(), 1);
    let (once, twice) = (machine.array(0, WORDS), machine.array(0, WORDS));
    machine.driver.order_fault(FaultKind::Allocation, 0, 2);
    machine.fill(&once, 1);
    assert_eq!(machine.value(&once), vec![0x1_0000_0001; WORDS]);
    machine.driver.order_fault(FaultKind::Allocation, 0, 2);
    machine.driver.order_fault(FaultKind::Allocation, 1, 2);
    machine.fill(&twice, 1);
    assert!(matches!(machine.failure(&twice.variable), CudaError::OutOfMemory { requested: 512, .. }));
    machine.check();
}

#[test]
fn pinned_blocks_are_used_again() {
    let _watchdog = Watchdog::new("pinned blocks are used again");
    let machine = Machine::new(Settings::default(), 1);
    let (x, host) = (machine.array(0, 2600), machine.host(vec![1; 2600]));
    for _ in 0..50 {
        machine.copy_in(&x, &host);
        machine.copy_out(&host, &x);
    }
    machine.engine.wait_for_all().expect("no op fails");
    let blocks = machine.driver.holdings().pinned;
    assert!(blocks <= 12, "{blocks} blocks for copies of which few are under way at the same time");
    machine.cuda.trim().expect("it is trimmed");
    assert!(machine.driver.holdings().pinned < blocks);
    machine.check();
}

/// What copies go through is pinned by another thread before they come, and again when they have found none.
#[test]
fn pinned_blocks_are_made_ahead() {
    let _watchdog = Watchdog::new("pinned blocks are made ahead");
    let machine = Machine::with_chunks_ahead(Settings::default(), 1, 3);
    let device = machine.device(0);
    let kept = |bytes: u64| {
        while device.memory_stats().expect("figures").pinned < bytes {
            std::thread::yield_now();
        }
        machine.driver.holdings().pinned
    };
    let chunks = 3 * CHUNK as u64;
    assert_eq!(kept(chunks), 3);
    let blocks = [(); 3].map(|()| device.pinned(CHUNK).expect("memory"));
    assert_eq!(machine.driver.holdings().pinned, 3, "they are lent");
    let (x, small) = (machine.array(0, WORDS), machine.host(vec![7; WORDS]));
    machine.copy_in(&x, &small);
    // The block that the copy pins is kept after it: whether in time to be one of the three is chance.
    let made = kept(2 * chunks);
    assert!((6..=7).contains(&made), "the copy pinned one, and had three made: {made} of 6 or 7");
    drop(blocks);
    for _ in 0..4 {
        machine.copy_out(&small, &x);
        assert_eq!(machine.read(&small), vec![7; WORDS]);
    }
    let made = machine.driver.holdings().pinned;
    assert!((6..=7).contains(&made), "copies go through them: {made} of 6 or 7");
    machine.check();
}

/// What a stream has freed it uses again, without a word to the driver, and gives up when others need it.
#[test]
fn blocks_are_used_again_by_their_stream() {
    let _watchdog = Watchdog::new("blocks are used again by their stream");
    for seed in 0..10 {
        let machine = Machine::new(Settings { seed, ..Settings::default() }, 2);
        let (x, device) = (machine.array(0, WORDS), machine.device(0));
        machine.fill(&x, 1);
        let mut last = machine.array(0, WORDS);
        machine.fill(&last, 0);
        for factor in 0..1000 {
            let fresh = machine.array(0, WORDS);
            machine.launch("scale", &fresh, &x, factor);
            machine.launch("axpy", &fresh, &last, 1);
            last = fresh;
        }
        machine.engine.wait_for_all().expect("no op fails");
        assert!(machine.driver.allocations() < 100, "{} allocations", machine.driver.allocations());
        assert_eq!(machine.value(&last)[0] & 0xffff_ffff, 999 * 1000 / 2);
        device.synchronize(&mut Wait::default()).expect("it ends");
        let kept = machine.driver.holdings().blocks;
        machine.cuda.trim().expect("it is trimmed");
        machine.driver.run_until_idle();
        let left = machine.driver.holdings().blocks;
        assert!(
            left < kept && left as u64 == device.memory_stats().expect("figures").blocks,
            "{kept} blocks, then {left}"
        );
        machine.check();
    }
}

/// What the host has read goes back to where it was allocated: a loop that looks at each result allocates no more.
#[test]
fn blocks_that_were_read_go_back_to_who_allocates() {
    let _watchdog = Watchdog::new("blocks that were read go back to who allocates");
    let machine = Machine::new(Settings::default(), 0);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 1);
    let look = |factor| {
        let result = machine.array(0, WORDS);
        machine.launch("scale", &result, &x, factor);
        assert_eq!(machine.value(&result)[0], factor * 0x1_0000_0001);
    };
    (0..8).for_each(look);
    let allocations = machine.driver.allocations();
    (8..200).for_each(look);
    assert_eq!(machine.driver.allocations(), allocations);
    machine.check();
}

/// Memory that streams keep is given to an allocation of another size.
#[test]
fn kept_blocks_make_room() {
    let _watchdog = Watchdog::new("kept blocks make room");
    let memory = WORDS as u64 * 8 * 1024;
    let machine = Machine::new(Settings { memory, ..Settings::default() }, 1);
    let x = machine.array(0, WORDS);
    machine.fill(&x, 3);
    for factor in 0..20 {
        let out = machine.array(0, WORDS);
        machine.launch("scale", &out, &x, factor);
    }
    let large = machine.array(0, WORDS * 1023);
    machine.fill(&large, 1);
    assert_eq!(machine.value(&large)[0], 0x1_0000_0001);
    machine.check();
}
