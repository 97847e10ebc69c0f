//! A driver without a device, with checks that a real one lacks.
//!
//! Streams are queues; a seeded generator chooses the stream whose head runs next, and only on a query of an event, a
//! full queue, or [`SimulatedDriver::run_until_idle`]. So work runs late and in strange orders, as it may on a device.
//! Time is virtual. Memory lies on the host.
//!
//! Its findings are kept as *hazards*: an access that is not ordered behind one that it conflicts with, memory used
//! after or freed before, freed twice, or read before it was written, an event destroyed or recorded again while a
//! stream waits for it. A driver that is dropped with hazards that were not [taken](SimulatedDriver::take_hazards)
//! panics.

#![allow(clippy::cast_possible_truncation)] // sizes of host memory, on hosts that have a CUDA driver

mod clock;
mod execute;
mod faults;
mod graphs;
mod kernel;
mod launches;
mod memory;
mod shadow;
mod state;
mod streams;
mod time;
mod transfers;

use crate::driver::StreamHandle;
pub use faults::FaultKind;
pub use kernel::{Kernel, KernelCall};
use state::State;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub use time::{Nanoseconds, Speeds};

/// The properties of the simulated machine.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How many devices it has.
    pub devices: usize,
    /// Bytes of each one's memory.
    pub memory: u64,
    /// Chooses the next command.
    pub seed: u64,
    /// How fast it is.
    pub speeds: Speeds,
    /// Whether to keep [spans](SimulatedDriver::spans).
    pub trace: bool,
    /// Whether dependencies of a graph's nodes can be stated, as since CUDA 11.3.
    pub dependencies: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { devices: 1, memory: 1 << 30, seed: 0, speeds: Speeds::default(), trace: false, dependencies: true }
    }
}

/// When a command ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// What it was.
    pub name: String,
    /// The stream it was on.
    pub stream: usize,
    /// When it began.
    pub start: Nanoseconds,
    /// When it ended.
    pub end: Nanoseconds,
}

/// How much a simulated machine holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holdings {
    /// Events that exist.
    pub events: usize,
    /// Blocks of device memory.
    pub blocks: usize,
    /// Blocks of pinned host memory.
    pub pinned: usize,
    /// Streams that exist.
    pub streams: usize,
    /// Modules and graphs that exist.
    pub images: usize,
}

/// The simulated driver; clones share it.
#[derive(Debug, Clone)]
pub struct SimulatedDriver(Arc<Shared>);

#[derive(Debug)]
struct Shared(Mutex<State>);

impl SimulatedDriver {
    /// A machine of these settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Shared(Mutex::new(State::new(settings)))))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a kernel known to all modules.
    pub fn add_kernel(&self, kernel: Kernel) {
        self.state().kernels.push(Arc::new(kernel));
    }

    /// Runs all issued work. A command that then still waits will wait for ever, which is a hazard.
    pub fn run_until_idle(&self) {
        let mut state = self.state();
        while state.step() {}
        let stuck: Vec<_> = state.streams.iter().filter_map(|stream| stream.queue.front()).collect();
        if let Some(command) = stuck.first() {
            let message = format!("{} waits for what nobody will do", command.name);
            state.hazard(message);
        }
    }

    /// Orders a fault with this code in the nth call of its kind from now on; 0 is the next one.
    pub fn order_fault(&self, kind: FaultKind, nth: u64, code: u32) {
        self.state().faults.order(kind, nth, code);
    }

    /// Another library begins a capture in CUDA's global mode, on a stream that waits for the default stream.
    pub fn begin_capture_elsewhere(&self) {
        self.state().captured_elsewhere = Some(false);
    }

    /// It ends its capture. Answers whether it is unspoiled.
    #[must_use]
    pub fn end_capture_elsewhere(&self) -> bool {
        self.state().captured_elsewhere.take() == Some(false)
    }

    /// How often a function of the driver's that concerns a stream was called, so far.
    #[must_use]
    pub fn calls(&self, function: &str) -> u64 {
        self.state().calls.get(function).copied().unwrap_or(0)
    }

    /// Allocations of device memory, so far.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.state().allocations
    }

    /// Waits of streams for events, so far.
    #[must_use]
    pub fn waits(&self) -> u64 {
        self.state().waits
    }

    /// Leaves out one of them, counted from 1: the hazard check must notice.
    pub fn drop_wait(&self, nth: u64) {
        self.state().skipped_wait = Some(nth);
    }

    /// Dependencies that were said of nodes of graphs, so far.
    #[must_use]
    pub fn edges(&self) -> u64 {
        self.state().edges
    }

    /// Leaves out one of them, counted from 1: the hazard check must notice.
    pub fn drop_edge(&self, nth: u64) {
        self.state().skipped_edge = Some(nth);
    }

    /// Checks that no device touches these bytes of the host, or writes to them if the host only reads.
    pub fn check_host_access(&self, start: *const u8, bytes: usize, writes: bool) {
        let start = start as u64;
        self.state().host_access(start..start + bytes as u64, writes);
    }

    /// Holds a stream up, or lets it go on.
    pub fn hold(&self, stream: StreamHandle, held: bool) {
        self.state().streams[stream.0 - 1].held = held;
    }

    /// The faults found since the last call.
    #[must_use]
    pub fn take_hazards(&self) -> Vec<String> {
        std::mem::take(&mut self.state().hazards)
    }

    /// When the last command that has run ended, in virtual time.
    #[must_use]
    pub fn time(&self) -> Nanoseconds {
        self.state().time()
    }

    /// When commands ran, if the settings ask for a trace.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.state().spans.clone()
    }

    /// What exists now.
    #[must_use]
    pub fn holdings(&self) -> Holdings {
        let state = self.state();
        Holdings {
            events: state.events.iter().filter(|event| event.alive).count(),
            blocks: state.memory.live(),
            pinned: state.pinned.len(),
            streams: state.streams.iter().skip(state.devices.len()).filter(|stream| stream.alive).count(),
            images: state.modules.len() + state.graphs.len() + state.executables.len(),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !std::thread::panicking() {
            assert!(state.hazards.is_empty(), "hazards that nobody has looked at: {:#?}", state.hazards);
        }
    }
}
