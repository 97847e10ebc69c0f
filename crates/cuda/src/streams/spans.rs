//! When ops ran on a device: kept while a trace lasts, by timed events around their work.
//!
//! | step | what | under |
//! |---|---|---|
//! | begin | two events are taken; the first one is recorded right before the work | the stream's turn |
//! | end | the second one is recorded right behind it, before the op's fence | the stream's turn |
//! | settle | events that have happened become times, and are used again | the lock of the device's times |
//! | read | times on the host's clock, for who asks for those of an engine | as above |
//!
//! An op that no trace has recorded pays a look at its label. A mistake here costs times, and fails no op. None of it is
//! in a graph: captured work is not issued.

use super::backoff::Backoff;
use super::clock::Clock;
use super::fence::TICK;
use super::{Context, Turn};
use crate::driver::{Driver, EventHandle};
use crate::error::CudaError;
use crate::label::Label;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weft_engine::trace::DeviceRun;
use weft_engine::{CurrentOp, Wait};

/// Pairs of events of a stream that may have happened before they are looked at.
const WAITING: usize = 64;
/// When to try again for the clock of a device that was too busy to answer.
const AGAIN: Duration = Duration::from_secs(1);

/// Work between two events. Given back by [`Turn::end_span`].
#[must_use = "work that begins ends"]
pub(crate) struct Span {
    op: CurrentOp,
    bytes: u64,
    start: EventHandle,
    end: EventHandle,
}

/// Work with known times: nanoseconds on the device's clock.
struct Settled {
    op: CurrentOp,
    stream: usize,
    bytes: u64,
    start: f64,
    end: f64,
}

#[derive(Default)]
struct Times {
    clock: Option<Clock>,
    /// When there was none to be had.
    refused: Option<Instant>,
    spare: Vec<EventHandle>,
    /// By number of the stream, in the order of the work.
    waiting: Vec<(usize, VecDeque<Span>)>,
    settled: Vec<Settled>,
}

/// The times of a device. Its lock comes after a stream's turn.
#[derive(Default)]
pub(crate) struct Timings(Mutex<Times>);

impl Timings {
    fn lock(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the driver's objects back, when the context goes. Inside of it.
    pub(crate) fn bury(&mut self, driver: &dyn Driver) {
        self.lock().clear(driver);
    }
}

impl Times {
    /// Two events for work of an op. Inside of the context.
    fn begin(&mut self, context: &Context, op: CurrentOp, bytes: u64) -> Option<Span> {
        let driver = context.driver();
        self.clock(context)?.refresh(driver, false);
        let start = self.event(driver)?;
        let Some(end) = self.event(driver) else {
            self.spare.push(start);
            return None;
        };
        Some(Span { op, bytes, start, end })
    }

    fn clock(&mut self, context: &Context) -> Option<&mut Clock> {
        if self.clock.is_none() && self.refused.is_none_or(|at| at.elapsed() > AGAIN) {
            let (_, greatest) = context.driver().priorities().ok()?;
            self.clock = Clock::new(context.driver(), greatest);
            self.refused = self.clock.is_none().then(Instant::now);
        }
        self.clock.as_mut()
    }

    fn event(&mut self, driver: &dyn Driver) -> Option<EventHandle> {
        // SAFETY: the context is current.
        self.spare.pop().or_else(|| unsafe { driver.create_event(true) }.ok())
    }

    fn add(&mut self, driver: &dyn Driver, stream: usize, span: Span) {
        let at = self.waiting.iter().position(|(number, _)| *number == stream).unwrap_or_else(|| {
            self.waiting.push((stream, VecDeque::new()));
            self.waiting.len() - 1
        });
        self.waiting[at].1.push_back(span);
        if self.waiting[at].1.len() > WAITING {
            // More than come, so that the list gets shorter once the device has caught up.
            self.settle(driver, at, 2);
        }
    }

    /// Turns events of a stream into times, of the first ones that have happened and of `most` at most. Answers whether
    /// the next one can still happen.
    fn settle(&mut self, driver: &dyn Driver, at: usize, most: usize) -> bool {
        let Self { clock: Some(clock), spare, waiting, settled, .. } = self else { return false };
        let (stream, spans) = &mut waiting[at];
        for _ in 0..most {
            let Some(span) = spans.front() else { break };
            // SAFETY: the event was recorded, and is used again below at the earliest.
            match unsafe { driver.has_happened(span.end) } {
                Ok(true) => {}
                Ok(false) => return true,
                Err(_) => return false,
            }
            // SAFETY: after the end, both times can be asked for.
            let times = unsafe { (clock.time_of(driver, span.start), clock.time_of(driver, span.end)) };
            let Span { op, bytes, .. } = *span;
            if let (Ok(start), Ok(end)) = times {
                settled.push(Settled { op, stream: *stream, bytes, start, end });
            }
            spare.extend([span.start, span.end]);
            spans.pop_front();
        }
        true
    }

    /// The same for all streams. Answers whether work of this engine is left that may still end.
    fn settle_all(&mut self, driver: &dyn Driver, engine: usize) -> bool {
        let mut left = false;
        for at in 0..self.waiting.len() {
            let live = self.settle(driver, at, usize::MAX);
            left |= live && self.waiting[at].1.iter().any(|span| span.op.engine() == engine);
        }
        left
    }

    fn clear(&mut self, driver: &dyn Driver) {
        let Self { clock, spare, waiting, .. } = std::mem::take(self);
        let waiting = waiting.into_iter().flat_map(|(_, spans)| spans).flat_map(|span| [span.start, span.end]);
        for event in spare.into_iter().chain(waiting) {
            // SAFETY: it is not shared; an event may go before it happens.
            let _ = unsafe { driver.destroy_event(event) };
        }
        if let Some(clock) = clock {
            clock.destroy(driver);
        }
    }
}

impl Turn<'_> {
    /// Begins to time the next work, if there is a trace. Inside of the context.
    #[inline]
    pub(crate) fn begin_span(&mut self, label: &Label, bytes: u64) -> Option<Span> {
        label.traced().and_then(|op| self.begin_traced(op, bytes))
    }

    #[cold]
    fn begin_traced(&mut self, op: CurrentOp, bytes: u64) -> Option<Span> {
        let context = self.stream().context();
        let span = context.timings.lock().begin(context, op, bytes)?;
        // SAFETY: both live; the event is not shared.
        let recorded = unsafe { context.driver().record_event(span.start, self.stream().handle()) };
        if recorded.is_err() {
            context.timings.lock().spare.extend([span.start, span.end]);
            return None;
        }
        Some(span)
    }

    /// The begun span is over when all work on the stream now has ended. Inside of the context.
    #[inline]
    pub(crate) fn end_span(&mut self, span: Option<Span>) {
        if let Some(span) = span {
            self.end_traced(span);
        }
    }

    #[cold]
    fn end_traced(&mut self, span: Span) {
        let (stream, context) = (self.stream(), self.stream().context());
        // SAFETY: as above.
        let recorded = unsafe { context.driver().record_event(span.end, stream.handle()) };
        let mut times = context.timings.lock();
        match recorded {
            Ok(()) => times.add(context.driver(), stream.number(), span),
            Err(_) => times.spare.extend([span.start, span.end]),
        }
    }
}

impl Context {
    /// Has a clock ready for the first op that is timed. Inside of the context.
    pub(crate) fn prepare_clock(&self) {
        self.timings.lock().clock(self);
    }

    /// Forgets times of this engine, and gives back the unneeded rest.
    pub(crate) fn forget_times(&self, engine: usize) {
        let Ok(_entered) = self.enter_to_leave() else { return };
        let mut times = self.timings.lock();
        times.settled.retain(|settled| settled.op.engine() != engine);
        times.settle_all(self.driver(), engine);
        let others = times.waiting.iter().flat_map(|(_, spans)| spans).any(|span| span.op.engine() != engine);
        if times.settled.iter().all(|settled| settled.op.engine() == engine) && !others {
            times.clear(self.driver());
        }
    }

    /// Waits until the timed work of this engine has ended, or the device has failed.
    pub(crate) fn wait_for_times(&self, engine: usize, wait: &mut Wait<'_>) -> Result<(), CudaError> {
        let backoff = Backoff::new();
        let mut next_tick = Instant::now() + TICK;
        loop {
            let Ok(_entered) = self.enter() else { return Ok(()) };
            if !self.timings.lock().settle_all(self.driver(), engine) {
                return Ok(());
            }
            if let Some(after) = wait.timeout.filter(|timeout| backoff.age() >= *timeout) {
                return Err(CudaError::Timeout { op: Label::bare("a traced op").into(), after });
            }
            if let Some(tick) = &mut wait.tick
                && Instant::now() >= next_tick
            {
                if !tick() {
                    return Err(CudaError::Interrupted);
                }
                next_tick = Instant::now() + TICK;
            }
            if let Some(pause) = backoff.pause() {
                std::thread::sleep(pause);
            }
        }
    }

    /// The finished work of this engine, each with the number of its stream, as far as known now.
    pub(crate) fn runs(&self, engine: usize) -> Vec<(usize, DeviceRun)> {
        if self.runtime.is_abandoned() {
            return Vec::new(); // somebody may have had the lock when the process was forked
        }
        let mut times = self.timings.lock();
        if let Ok(_entered) = self.enter() {
            times.settle_all(self.driver(), engine);
            if let Some(clock) = &mut times.clock {
                clock.refresh(self.driver(), true);
            }
        }
        let Times { clock: Some(clock), settled, .. } = &*times else { return Vec::new() };
        let of_engine = settled.iter().filter(|settled| settled.op.engine() == engine);
        let run = |settled: &Settled| {
            let (started, ended) = (clock.on_host(settled.start), clock.on_host(settled.end));
            (settled.stream, DeviceRun { op: settled.op.number(), started, ended, bytes: settled.bytes })
        };
        of_engine.map(run).collect()
    }
}
