//! Streams as queues of commands, events, and the step that runs one command.

use super::clock::Clock;
use super::faults::Faults;
use super::graphs::{Capture, Executable, Node};
use super::kernel::Kernel;
use super::memory::Addresses;
use super::shadow::{Name, Shadow};
use super::time::{Nanoseconds, Resource, Speeds};
use super::{Settings, Span};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Where bytes lie.
#[derive(Debug, Clone, Copy)]
pub(super) enum Address {
    Device(u64),
    Host(usize),
}

#[derive(Debug, Clone)]
pub(super) enum Work {
    /// An allocation, which has happened; it has its place in the order of its stream.
    Nothing,
    Launch {
        kernel: Arc<Kernel>,
        parameters: Vec<Box<[u8]>>,
        grid: [u32; 3],
        block: [u32; 3],
    },
    Copy {
        to: Address,
        from: Address,
        bytes: usize,
    },
    Fill {
        to: u64,
        pattern: Box<[u8]>,
        count: usize,
    },
    Free {
        address: u64,
    },
    Record {
        event: usize,
        record: u64,
    },
    Wait {
        event: usize,
        record: u64,
    },
    Graph {
        executable: Arc<Executable>,
        launch: u64,
    },
}

#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: Name,
    pub(super) clock: Clock,
    pub(super) work: Work,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) device: usize,
    pub(super) alive: bool,
    /// A test holds it up.
    pub(super) held: bool,
    pub(super) queue: VecDeque<Command>,
    /// The predecessors of the next command.
    clock: Clock,
    pub(super) issued: u64,
    pub(super) time: Nanoseconds,
    pub(super) capture: Option<Capture>,
}

#[derive(Debug, Default)]
pub(super) struct Event {
    pub(super) alive: bool,
    pub(super) timed: bool,
    pub(super) device: usize,
    /// Records issued, and the last one that was executed.
    pub(super) records: u64,
    pub(super) executed: u64,
    /// The predecessors of the last record.
    pub(super) clock: Clock,
    pub(super) time: Nanoseconds,
    /// Waits on streams for a record that was not executed yet.
    pub(super) waits: usize,
}

#[derive(Debug, Default)]
pub(super) struct Device {
    /// The code that every call answers after a fault.
    pub(super) fault: Option<u32>,
    pub(super) in_use: u64,
    pub(super) compute: Resource,
    pub(super) copy_in: Resource,
    pub(super) copy_out: Resource,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) settings: Settings,
    random: u64,
    pub(super) devices: Vec<Device>,
    pub(super) streams: Vec<Stream>,
    pub(super) events: Vec<Event>,
    pub(super) free_events: Vec<usize>,
    pub(super) memory: Addresses,
    pub(super) pinned: BTreeMap<usize, Box<[u8]>>,
    pub(super) host: Shadow,
    /// The commands that the host has seen end.
    pub(super) seen: Clock,
    pub(super) hazards: Vec<String>,
    pub(super) kernels: Vec<Arc<Kernel>>,
    pub(super) modules: HashSet<usize>,
    /// The devices of pools.
    pub(super) pools: HashMap<usize, usize>,
    /// Another library captures, and whether that is spoiled.
    pub(super) captured_elsewhere: Option<bool>,
    pub(super) graphs: HashMap<usize, Arc<Vec<Node>>>,
    /// Graphs that are ready, each with how often it was launched.
    pub(super) executables: HashMap<usize, (Arc<Executable>, u64)>,
    next_handle: usize,
    pub(super) faults: Faults,
    pub(super) spans: Vec<Span>,
    /// Calls that concern a stream, by their names.
    pub(super) calls: HashMap<&'static str, u64>,
    /// Allocations of device memory.
    pub(super) allocations: u64,
    /// Waits for events, and the one to be left out.
    pub(super) waits: u64,
    pub(super) skipped_wait: Option<u64>,
    /// The same of edges of graphs.
    pub(super) edges: u64,
    pub(super) skipped_edge: Option<u64>,
}

/// Hazards that are kept; a program with one has many.
const KEPT: usize = 64;
/// Commands on a stream beyond which the host has to wait for room, as it has with CUDA.
const ROOM: usize = 1024;

impl State {
    pub(super) fn new(settings: Settings) -> Self {
        let mut made = Self {
            random: settings.seed.wrapping_mul(2).wrapping_add(1),
            devices: (0..settings.devices).map(|_| Device::default()).collect(),
            streams: Vec::new(),
            events: Vec::new(),
            free_events: Vec::new(),
            memory: Addresses::new(),
            pinned: BTreeMap::new(),
            host: Shadow::default(),
            seen: Clock::default(),
            hazards: Vec::new(),
            kernels: Vec::new(),
            modules: HashSet::new(),
            pools: HashMap::new(),
            captured_elsewhere: None,
            graphs: HashMap::new(),
            executables: HashMap::new(),
            next_handle: 1,
            faults: Faults::default(),
            spans: Vec::new(),
            calls: HashMap::new(),
            allocations: 0,
            waits: 0,
            skipped_wait: None,
            edges: 0,
            skipped_edge: None,
            settings,
        };
        // Their default streams.
        for device in 0..settings.devices {
            made.add_stream(device);
        }
        made
    }

    pub(super) fn speeds(&self) -> Speeds {
        self.settings.speeds
    }

    /// A number below `bound`: xorshift, seeded by the settings.
    pub(super) fn draw(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % bound as u64) as usize
    }

    pub(super) fn hazard(&mut self, message: String) {
        if self.hazards.len() < KEPT {
            self.hazards.push(message);
        }
    }

    pub(super) fn new_handle(&mut self) -> usize {
        self.next_handle += 1;
        self.next_handle - 1
    }

    pub(super) fn clock_of(&self, stream: usize) -> Clock {
        self.streams[stream].clock.clone()
    }

    pub(super) fn add_stream(&mut self, device: usize) -> usize {
        let (queue, clock) = Default::default();
        self.streams.push(Stream { device, alive: true, held: false, queue, clock, issued: 0, time: 0, capture: None });
        self.streams.len() - 1
    }

    /// Puts work on a stream.
    pub(super) fn issue(&mut self, stream: usize, verb: &'static str, kernel: Option<Arc<str>>, work: Work) -> Name {
        while self.streams[stream].queue.len() >= ROOM && self.step() {}
        let on = &mut self.streams[stream];
        let name = Name { verb, kernel, stream, number: on.issued + 1 };
        if let Some(capture) = &mut on.capture {
            capture.add(name.clone(), work);
            return name;
        }
        on.issued += 1;
        on.clock.join(&self.seen);
        // A command is ordered behind itself: its accesses may overlap.
        on.clock.set(stream, on.issued);
        on.queue.push_back(Command { name: name.clone(), clock: on.clock.clone(), work });
        name
    }

    /// Notes that a graph was launched on a stream: later commands there are behind all of its nodes.
    pub(super) fn behind_nodes(&mut self, stream: usize, executable: &Executable, launch: u64) {
        let clock = &mut self.streams[stream].clock;
        executable.lanes().for_each(|lane| clock.set(lane, launch));
    }

    pub(super) fn record(&mut self, event: usize, stream: usize) {
        let at = &mut self.events[event];
        let waited_for = at.waits > 0;
        at.records += 1;
        let record = at.records;
        let name = self.issue(stream, "record", None, Work::Record { event, record });
        if waited_for {
            self.hazard(format!("{name} records event {event} again under a waiter"));
        }
        self.events[event].clock = self.streams[stream].clock.clone();
        self.events[event].waits = 0;
    }

    pub(super) fn wait(&mut self, stream: usize, event: usize) {
        self.waits += 1;
        if self.skipped_wait == Some(self.waits) {
            return;
        }
        let (record, executed) = (self.events[event].records, self.events[event].executed);
        if executed < record {
            self.events[event].waits += 1;
        }
        let clock = self.events[event].clock.clone();
        self.streams[stream].clock.join(&clock);
        self.issue(stream, "wait", None, Work::Wait { event, record });
    }

    pub(super) fn destroy_event(&mut self, event: usize) {
        if self.events[event].waits > 0 {
            self.hazard(format!("event {event} is destroyed under a waiter"));
        }
        self.events[event].alive = false;
        self.free_events.push(event);
    }

    /// The host has seen an event happen.
    pub(super) fn see(&mut self, event: usize) {
        let clock = self.events[event].clock.clone();
        self.seen.join(&clock);
        if self.streams.iter().all(|stream| stream.queue.is_empty()) {
            self.host.forget(&self.seen);
        }
    }

    fn is_runnable(&self, stream: &Stream) -> bool {
        match stream.queue.front().map(|command| &command.work) {
            _ if stream.held => false,
            None => false,
            Some(Work::Wait { event, record }) => {
                let event = &self.events[*event];
                event.executed >= *record || self.devices[event.device].fault.is_some()
            }
            Some(_) => true,
        }
    }

    /// Runs one command: the head of some stream. Answers whether there was one.
    pub(super) fn step(&mut self) -> bool {
        let runnable: smallvec::SmallVec<[usize; 16]> =
            (0..self.streams.len()).filter(|at| self.is_runnable(&self.streams[*at])).collect();
        if runnable.is_empty() {
            return false;
        }
        let at = runnable[self.draw(runnable.len())];
        let command = self.streams[at].queue.pop_front().expect("it is runnable");
        let device = self.streams[at].device;
        if let Work::Wait { event, .. } = command.work {
            let event = &self.events[event];
            self.streams[at].time = self.streams[at].time.max(event.time);
        } else if self.devices[device].fault.is_none() {
            self.execute(at, &command.name, &command.clock, &command.work);
        }
        true
    }

    /// The time at which the last stream comes to its end.
    pub(super) fn time(&self) -> Nanoseconds {
        self.streams.iter().map(|stream| stream.time).max().unwrap_or(0)
    }
}
