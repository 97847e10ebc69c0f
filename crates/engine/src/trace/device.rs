//! The notes of devices on ops, joined to a recording: to the engine, an op on a device ends when its work is on its
//! way.
//!
//! The driver of a device keeps a log of its own beside the engine's, by [`CurrentOp`](crate::CurrentOp), on the
//! system's clock.

use super::Recording;
use std::collections::HashMap;
use std::time::Instant;

/// The purpose of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum StreamKind {
    /// Computation.
    #[default]
    Compute = 0,
    /// Copies from the host.
    CopyIn = 1,
    /// Copies to the host.
    CopyOut = 2,
    /// Copies from other devices.
    Peer = 3,
}

/// A stream of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedStream {
    /// The device, by name.
    pub device: String,
    /// Its name there.
    pub name: String,
    /// Its purpose.
    pub kind: StreamKind,
}

/// Work of an op on a stream, as a device's log has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceRun {
    /// The op, by [`CurrentOp::number`](crate::CurrentOp::number).
    pub op: u32,
    /// When it began.
    pub started: Instant,
    /// When it was over.
    pub ended: Instant,
    /// Bytes that it has moved, if it is a copy.
    pub bytes: u64,
}

/// Work of an op on a stream. Times are nanoseconds since the start of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedRun {
    /// The op, in [`Recording::ops`].
    pub op: usize,
    /// The stream, in [`Recording::streams`].
    pub stream: u16,
    /// When it began.
    pub started: i64,
    /// When it was over.
    pub ended: i64,
    /// Bytes that it has moved, if it is a copy.
    pub bytes: u64,
}

impl Recording {
    /// Adds the ops that a stream has run, without those that were not kept. An op of several pieces there, as a large
    /// copy, is one run from the first to the last.
    pub fn add_stream(&mut self, stream: RecordedStream, runs: &[DeviceRun]) {
        #[allow(clippy::cast_possible_truncation)] // the low half, of which runs have no more
        let kept =
            self.ops.iter().enumerate().filter(|(_, op)| op.number != u64::MAX).map(|(at, op)| (op.number as u32, at));
        let places: HashMap<u32, usize> = kept.collect();
        let (Some(start), Ok(number)) = (self.start, u16::try_from(self.streams.len())) else { return };
        // 0 would say that it has not happened.
        let since =
            |time: Instant| i64::try_from(time.saturating_duration_since(start).as_nanos()).unwrap_or(i64::MAX).max(1);
        let mut found: HashMap<usize, RecordedRun> = HashMap::new();
        for run in runs {
            let Some(&op) = places.get(&run.op) else { continue };
            let (started, ended) = (since(run.started), since(run.ended));
            found
                .entry(op)
                .and_modify(|known| {
                    known.started = known.started.min(started);
                    known.ended = known.ended.max(ended);
                    known.bytes += run.bytes;
                })
                .or_insert(RecordedRun { op, stream: number, started, ended, bytes: run.bytes });
        }
        if !found.is_empty() {
            self.streams.push(stream);
            self.runs.extend(found.into_values());
            self.runs.sort_unstable_by_key(|run| (run.op, run.stream));
        }
    }
}
