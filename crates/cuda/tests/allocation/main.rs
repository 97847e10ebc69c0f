//! What launches allocate: nothing, once they are under way; and what a million ops leave: nothing.
//!
//! A program of its own: its allocator counts.

#![allow(clippy::disallowed_types)] // an allocator may not allocate, and so has nothing but atomics

#[path = "../../benches/issue/idle.rs"]
mod idle;
#[path = "../../../engine/tests/watchdog/mod.rs"]
mod watchdog;

use idle::IdleDriver;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use watchdog::Watchdog;
use weft_cuda::driver::{Dimensions, Pattern};
use weft_cuda::{Cuda, DeviceBuffer, Label, Launch, Parameter, Region};
use weft_engine::{AccessKind, Cause, Engine, OpContext, Settings};

struct Counting;

thread_local! {
    /// Of this thread: the harness has threads of its own. It allocates nothing, and needs no end.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}
static BYTES: AtomicIsize = AtomicIsize::new(0);

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).expect("layouts are that small")
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        BYTES.fetch_add(signed(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        BYTES.fetch_sub(signed(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The figures are the whole process's, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fill(buffer: &Arc<DeviceBuffer>) {
    weft_cuda::fill(&Label::from("fill"), &Region::whole(buffer), Pattern::Byte(0)).expect("it is issued");
}

fn launch(out: &Arc<DeviceBuffer>, x: &Arc<DeviceBuffer>) -> Launch {
    // SAFETY: the driver does nothing.
    let module = unsafe { out.device().load_module(b"image") }.expect("a module");
    let kernel = module.kernel("kernel").expect("a kernel");
    let plan = kernel.plan(&[Parameter::Pointer, Parameter::Pointer, Parameter::Scalar(8)]).expect("a plan");
    let dimensions = Dimensions { grid: [1; 3], block: [1; 3], shared_memory: 0 };
    // SAFETY: as above.
    unsafe { Launch::new(&kernel, &plan, dimensions, Label::from("kernel")) }
        .and_then(|launch| launch.buffer(out, 0, AccessKind::Mutate))
        .and_then(|launch| launch.buffer(x, 0, AccessKind::Read))
        .and_then(|launch| launch.scalar(&[0; 8]))
        .expect("fitting arguments")
}

#[test]
fn launches_allocate_nothing() {
    let _alone = alone();
    let device = Cuda::with_driver(Arc::new(IdleDriver)).device(0).expect("a device");
    let buffers = [(); 8].map(|()| DeviceBuffer::new(&device, 64));
    buffers.iter().for_each(fill);
    // Chains of their own, and reads across them: launches on all streams, waits between them.
    let launches: Vec<_> = (0..8).map(|at| launch(&buffers[at], &buffers[(at * 3 + 1) % 8])).collect();
    let issue = |rounds: usize| {
        for launch in launches.iter().cycle().take(rounds) {
            launch.issue().expect("it is issued");
        }
    };
    // Room for labels and for spare events.
    issue(20_000);
    let before = CALLS.get();
    issue(100_000);
    assert_eq!(CALLS.get() - before, 0);
}

#[test]
fn a_million_ops_leave_nothing_behind() {
    let _alone = alone();
    let watchdog = Watchdog::new("a million ops leave nothing behind");
    let device = Cuda::with_driver(Arc::new(IdleDriver)).device(0).expect("a device");
    let engine = Engine::new(Settings { workers: Some(2), ..Settings::default() }).expect("an engine");
    let (x, out) = (DeviceBuffer::new(&device, 64), DeviceBuffer::new(&device, 64));
    fill(&x);
    let (variable, launch) = (engine.new_variable(None), launch(&out, &x));
    let push = |ops: usize| {
        for op in 0..ops {
            engine.op_of(launch.clone()).mutate(&variable).push().expect("an open engine");
            if op % 16 == 0 {
                // A temporary, which goes with its op.
                let fresh = DeviceBuffer::new(&device, 64);
                let temporary = move |_: &mut OpContext<'_>| {
                    weft_cuda::fill(&Label::from("fill"), &Region::whole(&fresh), Pattern::Byte(0))
                        .map(drop)
                        .map_err(Cause::from)
                };
                engine.op_of(temporary).push().expect("an open engine");
            }
        }
        engine.wait_for_all().expect("no op fails");
    };
    let mut bytes = Vec::new();
    for round in 0..10 {
        push(100_000);
        watchdog.feed(format!("round {round}"));
        bytes.push(BYTES.load(Ordering::Relaxed));
    }
    // What is pending varies, and with it the room for it; 2 bytes for each op would be too many.
    let most = bytes[..5].iter().max().expect("five rounds");
    assert!(bytes[5..].iter().all(|later| later - most < 1 << 20), "bytes after each 100,000 ops: {bytes:?}");
}
