//! The effect of a command: on memory, which is checked, and on the time.

use super::Span;
use super::clock::Clock;
use super::kernel::KernelCall;
use super::shadow::Name;
use super::state::{Address, Device, State, Work};
use super::time::{Nanoseconds, Resource};
use std::ops::Range;

impl State {
    pub(super) fn execute(&mut self, at: usize, name: &Name, clock: &Clock, work: &Work) {
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
            Work::Graph { executable, launch } => self.execute_graph(at, clock, executable, *launch),
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
                let after = self.store(Address::Device(*to), &bytes, name, clock);
                let duration = bytes.len() as u64 * 1000 / self.speeds().memory;
                self.occupy(at, name, after, duration, |device| &mut device.compute, 0.1);
            }
            Work::Free { address } => {
                let bytes = self.memory.find(&(*address..*address)).map_or(0, |(_, block)| block.bytes.len() as u64);
                self.touch(Address::Device(*address), bytes, true, name, clock);
                if let Some((device, bytes)) = self.memory.remove(*address, name) {
                    self.devices[device].in_use -= bytes as u64;
                }
            }
        }
    }

    /// A device is lost: work on its streams will touch nothing any more.
    fn lose(&mut self, device: usize, code: u32) {
        self.devices[device].fault = Some(code);
        for (at, stream) in self.streams.iter_mut().enumerate().filter(|(_, stream)| stream.device == device) {
            stream.queue.clear();
            self.seen.set(at, stream.issued);
        }
        self.events.iter_mut().filter(|event| event.device == device).for_each(|event| event.waits = 0);
    }

    fn copy(&mut self, at: usize, name: &Name, clock: &Clock, to: Address, from: Address, bytes: usize) {
        let mut after = 0;
        let data = self.load(from, bytes, name, clock, &mut after);
        after = after.max(self.store(to, &data, name, clock));
        let speeds = self.speeds();
        let speed = if name.verb == "copy within" { speeds.memory } else { speeds.link };
        let duration = bytes as u64 * 1000 / speed;
        match (to, from) {
            (Address::Device(_), Address::Host(_)) => {
                self.occupy(at, name, after, duration, |device| &mut device.copy_in, 1.0);
            }
            (Address::Host(_), _) => self.occupy(at, name, after, duration, |device| &mut device.copy_out, 1.0),
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

    /// Notes an access. Answers when those before it have ended.
    pub(super) fn touch(
        &mut self,
        place: Address,
        bytes: u64,
        writes: bool,
        name: &Name,
        clock: &Clock,
    ) -> Nanoseconds {
        if bytes == 0 {
            return 0;
        }
        let range = match place {
            Address::Device(start) => start..start + bytes,
            Address::Host(start) => start as u64..start as u64 + bytes,
        };
        let outcome = match place {
            Address::Host(_) => self.host.touch(range, writes, name, clock).map_err(|other| conflict(&other)),
            Address::Device(_) => self.memory.find(&range).and_then(|(start, block)| {
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
        place: Address,
        bytes: usize,
        name: &Name,
        clock: &Clock,
        after: &mut Nanoseconds,
    ) -> Vec<u8> {
        *after = (*after).max(self.touch(place, bytes as u64, false, name, clock));
        match place {
            // SAFETY: the issuer of the copy promised that the host memory is valid until it has ended.
            Address::Host(start) => unsafe { std::slice::from_raw_parts(start as *const u8, bytes) }.to_vec(),
            Address::Device(start) => match self.inside(start, bytes) {
                Some((block, range)) => block[range].to_vec(),
                None => vec![0; bytes],
            },
        }
    }

    pub(super) fn store(&mut self, place: Address, data: &[u8], name: &Name, clock: &Clock) -> Nanoseconds {
        let after = self.touch(place, data.len() as u64, true, name, clock);
        match place {
            // SAFETY: as in load().
            Address::Host(start) => unsafe {
                std::ptr::copy_nonoverlapping(data.as_ptr(), start as *mut u8, data.len());
            },
            Address::Device(start) => {
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

    /// The host's own accesses to its memory, for tests that want them checked too.
    pub(super) fn host_access(&mut self, range: Range<u64>, writes: bool) {
        let queued = self.streams.iter().flat_map(|stream| &stream.queue);
        let waiting = queued.filter_map(|command| match command.work {
            Work::Copy { to: Address::Host(start), bytes, .. } => {
                Some((start as u64..start as u64 + bytes as u64, true, command))
            }
            Work::Copy { from: Address::Host(start), bytes, .. } => {
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
