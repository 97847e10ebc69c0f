//! The simulated driver finds what it is there to find: each hazard, and a passing twin beside it.

use std::ffi::c_void;
use weft_cuda::driver::{
    DeviceAddress, Devices, Dimensions, EventHandle, Launches, Memory, Pattern, PoolHandle, StreamHandle, Streams,
};
use weft_cuda::simulated::{FaultKind, Kernel, Settings, SimulatedDriver, Speeds};

/// A machine with three streams, used raw.
struct Raw {
    pool: PoolHandle,
    driver: SimulatedDriver,
    streams: [StreamHandle; 3],
}

// SAFETY of all that is unsafe here: the simulated driver checks what it is given; that is what is tested.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Raw {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let driver = SimulatedDriver::new(settings);
        unsafe {
            let context = driver.retain_context(0).expect("a context");
            driver.set_current_context(context).expect("it is current");
            let streams = [(); 3].map(|()| driver.create_stream(0).expect("a stream"));
            let pool = driver.create_pool(0, 0).expect("a pool");
            Self { pool, driver, streams }
        }
    }

    fn memory(&self, stream: usize) -> DeviceAddress {
        unsafe { self.driver.allocate(64, self.pool, self.streams[stream]) }.expect("memory")
    }

    fn fill(&self, address: DeviceAddress, stream: usize) {
        unsafe { self.driver.fill(address, Pattern::Byte(1), 64, self.streams[stream]) }.expect("it is issued");
    }

    fn copy(&self, to: DeviceAddress, from: DeviceAddress, stream: usize) {
        unsafe { self.driver.copy_within(to, from, 64, self.streams[stream]) }.expect("it is issued");
    }

    fn free(&self, address: DeviceAddress, stream: usize) -> bool {
        unsafe { self.driver.free(address, self.streams[stream]) }.is_ok()
    }

    fn event(&self) -> EventHandle {
        unsafe { self.driver.create_event(false) }.expect("an event")
    }

    fn record(&self, event: EventHandle, stream: usize) {
        unsafe { self.driver.record_event(event, self.streams[stream]) }.expect("it is recorded");
    }

    fn wait(&self, stream: usize, event: EventHandle) {
        unsafe { self.driver.wait_event(self.streams[stream], event) }.expect("it is issued");
    }

    /// The second stream comes behind the first.
    fn order(&self, first: usize, second: usize) {
        let event = self.event();
        self.record(event, first);
        self.wait(second, event);
    }

    fn destroy(&self, event: EventHandle) {
        unsafe { self.driver.destroy_event(event) }.expect("it was there");
    }

    fn see(&self, event: EventHandle) {
        while !unsafe { self.driver.query_event(event) }.expect("it is there") {}
    }

    /// The hazards, once all has run.
    fn hazards(&self) -> Vec<String> {
        self.driver.run_until_idle();
        self.driver.take_hazards()
    }
}

const NONE: [String; 0] = [];

#[test]
fn reads_and_writes_want_an_order() {
    for ordered in [true, false] {
        let raw = Raw::new();
        let (a, b) = (raw.memory(0), raw.memory(0));
        raw.fill(a, 0);
        raw.fill(b, 0);
        raw.order(0, 1);
        raw.copy(b, a, 1);
        if ordered {
            raw.order(1, 2);
        } else {
            raw.order(0, 2);
        }
        // A write behind a read, and behind a write.
        raw.fill(a, 2);
        raw.fill(b, 2);
        let hazards = raw.hazards();
        if ordered {
            assert_eq!(hazards, NONE);
        } else {
            assert_eq!(hazards.len(), 2, "{hazards:?}");
            for hazard in &hazards {
                assert!(
                    hazard.contains("fill (stream 3, command ") && hazard.contains("copy within (stream 2, command ")
                );
                assert!(hazard.contains("is not ordered behind") && hazard.ends_with("which touches the same bytes"));
            }
        }
    }
}

/// Whichever of the two runs first.
#[test]
fn a_missing_order_is_found_on_every_schedule() {
    for seed in 0..50 {
        let raw = Raw::with(Settings { seed, ..Settings::default() });
        let a = raw.memory(0);
        raw.fill(a, 0);
        raw.order(0, 1);
        raw.fill(a, 0);
        raw.fill(a, 1);
        assert_eq!(raw.hazards().len(), 1, "seed {seed}");
    }
}

#[test]
fn two_reads_want_none() {
    let raw = Raw::new();
    let (a, b, c) = (raw.memory(0), raw.memory(1), raw.memory(2));
    raw.fill(a, 0);
    let event = raw.event();
    raw.record(event, 0);
    raw.wait(1, event);
    raw.wait(2, event);
    raw.copy(b, a, 1);
    raw.copy(c, a, 2);
    assert_eq!(raw.hazards(), NONE);
}

#[test]
fn disjoint_bytes_want_none() {
    let raw = Raw::new();
    let a = raw.memory(0);
    raw.order(0, 1);
    for (stream, start) in [(0, a), (1, a + 32)] {
        // SAFETY: checked by the driver.
        unsafe { raw.driver.fill(start, Pattern::Word(1), 8, raw.streams[stream]) }.expect("it is issued");
    }
    assert_eq!(raw.hazards(), NONE);
}

#[test]
fn what_the_host_has_seen_is_ordered() {
    for seen in [true, false] {
        let raw = Raw::new();
        let (a, event) = (raw.memory(0), raw.event());
        raw.fill(a, 0);
        raw.record(event, 0);
        if seen {
            raw.see(event);
        }
        raw.fill(a, 1);
        assert_eq!(raw.hazards().is_empty(), seen);
    }
}

#[test]
fn memory_is_used_before_it_is_freed() {
    let raw = Raw::new();
    let a = raw.memory(0);
    raw.fill(a, 0);
    assert!(raw.free(a, 0));
    assert_eq!(raw.hazards(), NONE);
    raw.fill(a, 0);
    let hazards = raw.hazards();
    assert!(hazards.len() == 1 && hazards[0].contains("uses memory after free (stream 1, command "), "{hazards:?}");
    assert!(!raw.free(a, 0));
    assert!(raw.hazards()[0].contains("uses memory after free"));
}

#[test]
fn a_free_comes_behind_the_last_use() {
    for ordered in [true, false] {
        let raw = Raw::new();
        let (a, b) = (raw.memory(0), raw.memory(1));
        raw.fill(a, 0);
        raw.order(0, 1);
        raw.copy(b, a, 1);
        if ordered {
            raw.order(1, 0);
        }
        assert!(raw.free(a, 0));
        let hazards = raw.hazards();
        assert_eq!(hazards.is_empty(), ordered, "{hazards:?}");
    }
}

#[test]
fn memory_is_freed_once() {
    let raw = Raw::new();
    let a = raw.memory(0);
    assert!(raw.free(a, 0) && !raw.free(a, 0) && !raw.free(a + 512, 0));
    let hazards = raw.hazards();
    assert!(hazards[0].ends_with("is freed twice") && hazards[1].contains("nobody's"), "{hazards:?}");
}

#[test]
fn memory_is_written_before_it_is_read() {
    let raw = Raw::new();
    let (a, b) = (raw.memory(0), raw.memory(0));
    raw.copy(b, a, 0);
    assert_eq!(raw.hazards(), ["copy within (stream 1, command 3) reads memory that was never written"]);
    raw.fill(a, 0);
    raw.copy(b, a, 0);
    assert_eq!(raw.hazards(), NONE);
}

#[test]
fn memory_ends_where_it_ends() {
    let raw = Raw::new();
    let a = raw.memory(0);
    // SAFETY: checked by the driver.
    unsafe { raw.driver.fill(a, Pattern::Byte(1), 65, raw.streams[0]) }.expect("it is issued");
    let hazards = raw.hazards();
    assert!(hazards.len() == 1 && hazards[0].ends_with("which are nobody's"), "{hazards:?}");
}

#[test]
fn an_event_is_not_recorded_under_a_waiter() {
    for seen in [true, false] {
        let raw = Raw::new();
        let event = raw.event();
        raw.record(event, 0);
        raw.wait(1, event);
        if seen {
            raw.see(event);
        }
        raw.record(event, 0);
        let hazards = raw.hazards();
        assert_eq!(hazards.is_empty(), seen, "{hazards:?}");
        assert!(seen || hazards[0].ends_with("again under a waiter"), "{hazards:?}");
    }
}

#[test]
fn an_event_is_not_destroyed_under_a_waiter() {
    for seen in [true, false] {
        let raw = Raw::new();
        let event = raw.event();
        raw.record(event, 0);
        raw.wait(1, event);
        if seen {
            raw.see(event);
        }
        raw.destroy(event);
        let hazards = raw.hazards();
        assert_eq!(hazards.is_empty(), seen, "{hazards:?}");
        assert!(seen || hazards[0].ends_with("is destroyed under a waiter"), "{hazards:?}");
    }
}

#[test]
fn calls_want_the_context_of_their_stream() {
    let raw = Raw::with(Settings { devices: 2, ..Settings::default() });
    // SAFETY: checked by the driver.
    let refused = unsafe {
        let other = raw.driver.retain_context(1).expect("a context");
        raw.driver.set_current_context(other).expect("it is current");
        raw.driver.allocate(64, raw.pool, raw.streams[0])
    };
    assert_eq!(refused.expect_err("another's").name, "CUDA_ERROR_INVALID_CONTEXT");
}

#[test]
fn kernels_are_checked_too_and_faults_stick() {
    let raw = Raw::new();
    raw.driver.add_kernel(Kernel::new("negate", &[8], |call| {
        let address = call.parameter(0);
        let bytes: Vec<u8> = call.read(address, 64).iter().map(|byte| !byte).collect();
        call.write(address, &bytes);
    }));
    let (a, dimensions) = (raw.memory(0), Dimensions { grid: [1; 3], block: [1; 3], shared_memory: 0 });
    // SAFETY: the driver takes any image.
    let kernel = unsafe {
        let module = raw.driver.load_module(b"image").expect("a module");
        raw.driver.function(module, c"negate").expect("a kernel")
    };
    let launch = |stream: usize| {
        let (mut address, stream) = (a, raw.streams[stream]);
        let mut parameters = [(&raw mut address).cast::<c_void>()];
        // SAFETY: there is one parameter, of eight bytes.
        unsafe { raw.driver.launch(kernel, false, &dimensions, stream, parameters.as_mut_ptr()) }
    };
    raw.fill(a, 0);
    launch(0).expect("it is issued");
    assert_eq!(raw.hazards(), NONE);
    launch(1).expect("it is issued");
    assert_eq!(raw.hazards().len(), 2, "it reads, and it writes");
    raw.driver.order_fault(FaultKind::Kernel, 0, 719);
    launch(0).expect("it is issued");
    raw.driver.run_until_idle();
    assert_eq!(launch(0).expect_err("the device is lost").name, "CUDA_ERROR_LAUNCH_FAILED");
}

#[test]
fn copies_take_their_time_and_directions_overlap() {
    let speeds = Speeds { link: 1000, ..Speeds::default() };
    let raw = Raw::with(Settings { speeds, trace: true, ..Settings::default() });
    let (a, b) = (raw.memory(0), raw.memory(1));
    raw.fill(b, 1);
    let mut host = [[0_u8; 64]; 2];
    // SAFETY: the host's memory lives until all has run.
    unsafe {
        raw.driver.copy_in(a, host[0].as_ptr(), 64, raw.streams[0]).expect("it is issued");
        raw.driver.copy_out(host[1].as_mut_ptr(), b, 64, raw.streams[1]).expect("it is issued");
    }
    assert_eq!(raw.hazards(), NONE);
    let spans = raw.driver.spans();
    let taken: Vec<_> = spans.iter().map(|span| (span.start, span.end)).collect();
    assert_eq!((taken, host[1]), (vec![(0, 64), (0, 64)], [1; 64]));
}
