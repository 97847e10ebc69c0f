//! Streams as queues of commands, events, and the step that runs one command.

use super::clock::Clock;
use super::faults::Faults;
use super::kernel::{Kernel, KernelCall};
use super::memory::Addresses;
use super::shadow::{Name, Shadow};
use super::time::{Nanoseconds, Resource, Speeds};
use super::{Settings, Span};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Where bytes lie.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
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
        to: Place,
        from: Place,
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
    Graph(Arc<Vec<(Name, Work)>>),
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
    /// What comes before the next command.
    clock: Clock,
    issued: u64,
    time: Nanoseconds,
    pub(super) capture: Option<Vec<(Name, Work)>>,
}

#[derive(Debug, Default)]
pub(super) struct Event {
    pub(super) alive: bool,
    pub(super) timed: bool,
    pub(super) device: usize,
    /// Records issued, and the last one that was executed.
    pub(super) records: u64,
    pub(super) executed: u64,
    /// What comes before the last record.
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
    compute: Resource,
    copy_in: Resource,
    copy_out: Resource,
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
    host: Shadow,
    /// What the host has seen end.
    pub(super) seen: Clock,
    pub(super) hazards: Vec<String>,
    pub(super) kernels: Vec<Arc<Kernel>>,
    pub(super) modules: HashSet<usize>,
    pub(super) graphs: HashMap<usize, Arc<Vec<(Name, Work)>>>,
    next_handle: usize,
    pub(super) faults: Faults,
    pub(super) spans: Vec<Span>,
    /// Waits for events, and the one to be left out.
    pub(super) waits: u64,
    pub(super) skipped_wait: Option<u64>,
}

/// Hazards that are kept; a program with one has many.
const KEPT: usize = 64;
/// Commands on a stream beyond which the host has to wait for room, as it has with CUDA.
const ROOM: usize = 1024;

impl State {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
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
            graphs: HashMap::new(),
            next_handle: 1,
            faults: Faults::default(),
            spans: Vec::new(),
            waits: 0,
            skipped_wait: None,
            settings,
        }
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
        let mut name = Name { verb, kernel, stream, number: on.issued + 1 };
        if let Some(capture) = &mut on.capture {
            name.number = capture.len() as u64 + 1;
            capture.push((name.clone(), work));
            return name;
        }
        on.issued += 1;
        on.clock.join(&self.seen);
        // A command is ordered behind itself: its accesses may overlap.
        on.clock.set(stream, on.issued);
        on.queue.push_back(Command { name: name.clone(), clock: on.clock.clone(), work });
        name
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

    fn execute(&mut self, at: usize, name: &Name, clock: &Clock, work: &Work) {
        let device = self.streams[at].device;
        match work {
            Work::Nothing | Work::Wait { .. } => {}
            Work::Record { event, record } => {
                let time = self.streams[at].time;
                let event = &mut self.events[*event];
                (event.executed, event.time) = (*record, time);
                if event.records == *record {
                    event.waits = 0;
                }
            }
            Work::Graph(nodes) => {
                for (node, work) in nodes.iter() {
                    let name = Name { stream: at, number: name.number, ..node.clone() };
                    self.execute(at, &name, clock, work);
                }
            }
            Work::Launch { kernel, parameters, grid, block } => {
                if let Some(code) = self.faults.fault() {
                    return self.lose(device, code);
                }
                let mut call = KernelCall::new(self, name, clock, parameters, *grid, *block);
                (kernel.body)(&mut call);
                let (after, share) = (call.after(), kernel.share);
                self.occupy(at, name, after, kernel.duration, |device| &mut device.compute, share);
            }
            Work::Copy { to, from, bytes } => self.copy(at, name, clock, *to, *from, *bytes),
            Work::Fill { to, pattern, count } => {
                let bytes = pattern.repeat(*count);
                let after = self.store(Place::Device(*to), &bytes, name, clock);
                let duration = bytes.len() as u64 * 1000 / self.speeds().memory;
                self.occupy(at, name, after, duration, |device| &mut device.compute, 0.1);
            }
            Work::Free { address } => {
                let bytes = self.memory.find(&(*address..*address)).map_or(0, |(_, block)| block.bytes.len() as u64);
                self.touch(Place::Device(*address), bytes, true, name, clock);
                if let Some((device, bytes)) = self.memory.remove(*address, name) {
                    self.devices[device].in_use -= bytes as u64;
                }
            }
        }
    }

    /// A device is lost: what is on its streams will touch nothing any more.
    fn lose(&mut self, device: usize, code: u32) {
        self.devices[device].fault = Some(code);
        for (at, stream) in self.streams.iter_mut().enumerate().filter(|(_, stream)| stream.device == device) {
            stream.queue.clear();
            self.seen.set(at, stream.issued);
        }
        self.events.iter_mut().filter(|event| event.device == device).for_each(|event| event.waits = 0);
    }

    fn copy(&mut self, at: usize, name: &Name, clock: &Clock, to: Place, from: Place, bytes: usize) {
        let mut after = 0;
        let data = self.load(from, bytes, name, clock, &mut after);
        after = after.max(self.store(to, &data, name, clock));
        let speeds = self.speeds();
        let speed = if name.verb == "copy within" { speeds.memory } else { speeds.link };
        let duration = bytes as u64 * 1000 / speed;
        match (to, from) {
            (Place::Device(_), Place::Host(_)) => {
                self.occupy(at, name, after, duration, |device| &mut device.copy_in, 1.0);
            }
            (Place::Host(_), _) => self.occupy(at, name, after, duration, |device| &mut device.copy_out, 1.0),
            _ => self.occupy(at, name, after, duration, |device| &mut device.compute, 0.1),
        }
    }

    /// Lets work take its time.
    fn occupy(
        &mut self,
        at: usize,
        name: &Name,
        after: Nanoseconds,
        duration: Nanoseconds,
        of: impl FnOnce(&mut Device) -> &mut Resource,
        share: f64,
    ) {
        let stream = &mut self.streams[at];
        let start = of(&mut self.devices[stream.device]).take(stream.time.max(after), duration, share);
        stream.time = start + duration;
        if duration == 0 {
            return;
        }
        let end = stream.time;
        self.host.ended(name, end);
        if self.settings.trace {
            self.spans.push(Span { name: name.to_string(), stream: at, start, end });
        }
    }

    /// The time at which the last stream comes to its end.
    pub(super) fn time(&self) -> Nanoseconds {
        self.streams.iter().map(|stream| stream.time).max().unwrap_or(0)
    }

    /// Notes an access. Answers when those before it have ended.
    pub(super) fn touch(&mut self, place: Place, bytes: u64, writes: bool, name: &Name, clock: &Clock) -> Nanoseconds {
        if bytes == 0 {
            return 0;
        }
        let range = match place {
            Place::Device(start) => start..start + bytes,
            Place::Host(start) => start as u64..start as u64 + bytes,
        };
        let outcome = match place {
            Place::Host(_) => self.host.touch(range, writes, name, clock).map_err(|other| conflict(&other)),
            Place::Device(_) => self.memory.find(&range).and_then(|(start, block)| {
                let inside = range.start - start..range.end - start;
                if writes {
                    block.written.add(inside.clone());
                } else if !block.written.covers(&inside) {
                    return Err("reads memory that was never written".to_owned());
                }
                block.shadow.touch(inside, writes, name, clock).map_err(|other| conflict(&other))
            }),
        };
        outcome.unwrap_or_else(|problem| {
            self.hazard(format!("{name} {problem}"));
            0
        })
    }

    pub(super) fn load(
        &mut self,
        place: Place,
        bytes: usize,
        name: &Name,
        clock: &Clock,
        after: &mut Nanoseconds,
    ) -> Vec<u8> {
        *after = (*after).max(self.touch(place, bytes as u64, false, name, clock));
        match place {
            // SAFETY: whoever issued the copy promised that the host memory is valid until it has ended.
            Place::Host(start) => unsafe { std::slice::from_raw_parts(start as *const u8, bytes) }.to_vec(),
            Place::Device(start) => match self.inside(start, bytes) {
                Some((block, range)) => block[range].to_vec(),
                None => vec![0; bytes],
            },
        }
    }

    pub(super) fn store(&mut self, place: Place, data: &[u8], name: &Name, clock: &Clock) -> Nanoseconds {
        let after = self.touch(place, data.len() as u64, true, name, clock);
        match place {
            // SAFETY: as in load().
            Place::Host(start) => unsafe {
                std::ptr::copy_nonoverlapping(data.as_ptr(), start as *mut u8, data.len());
            },
            Place::Device(start) => {
                if let Some((block, range)) = self.inside(start, data.len()) {
                    block[range].copy_from_slice(data);
                }
            }
        }
        after
    }

    fn inside(&mut self, start: u64, bytes: usize) -> Option<(&mut [u8], Range<usize>)> {
        let (first, block) = self.memory.find(&(start..start + bytes as u64)).ok()?;
        let at = (start - first) as usize;
        Some((&mut block.bytes, at..at + bytes))
    }

    /// What the host itself does with its memory, for tests that want that checked too.
    pub(super) fn host_access(&mut self, range: Range<u64>, writes: bool) {
        let queued = self.streams.iter().flat_map(|stream| &stream.queue);
        let waiting = queued.filter_map(|command| match command.work {
            Work::Copy { to: Place::Host(start), bytes, .. } => {
                Some((start as u64..start as u64 + bytes as u64, true, command))
            }
            Work::Copy { from: Place::Host(start), bytes, .. } => {
                Some((start as u64..start as u64 + bytes as u64, false, command))
            }
            _ => None,
        });
        let meets = waiting
            .filter(|(other, writing, _)| other.start < range.end && range.start < other.end && (writes || *writing));
        let found = meets.map(|(_, _, command)| command.name.clone()).next();
        if let Some(name) = found.or_else(|| self.host.unseen(&range, writes, &self.seen)) {
            self.hazard(format!(
                "the host {} bytes of {name}, which it has not seen end",
                if writes { "writes" } else { "reads" }
            ));
        }
    }
}

fn conflict(other: &Name) -> String {
    format!("is not ordered behind {other}, which touches the same bytes")
}
