//! A device's clock against the host's.
//!
//! Events tell how long after each other they happened, in single precision. So *anchors* are put down from time to
//! time: events alone on a stream, with moments that the host has watched. An event is timed by the last anchor before
//! it, and has its place on the host's clock between that one and the next.

use crate::driver::{Driver, EventHandle, StreamHandle};
use crate::error::DriverError;
use std::time::{Duration, Instant};

/// Between two anchors at least. A shorter time would tell more of how long the host looked away than of the drift.
const APART: Duration = Duration::from_millis(50);
/// How old the last anchor gets: single precision is exact to an eighth of a microsecond up to there.
const LASTING: Duration = Duration::from_secs(2);
/// Candidates for an anchor, which the best watched event becomes: more of them if none was watched well, as on a busy
/// host.
const TRIES: std::ops::Range<usize> = 4..16;
/// How long the host may have looked away from one that was watched well.
const WELL: Duration = Duration::from_micros(50);
/// How long the host watches: an idle stream's event takes some microseconds.
const PATIENCE: Duration = Duration::from_millis(20);

struct Anchor {
    event: EventHandle,
    host: Instant,
    /// Nanoseconds since the first anchor, on the device.
    device: f64,
}

/// See the module. All calls are made inside of the context.
pub(crate) struct Clock {
    stream: StreamHandle,
    /// At least one.
    anchors: Vec<Anchor>,
    /// When one was last tried for.
    tried: Instant,
    /// Whether that was in vain: work of other streams was in the way, as it is where streams share a queue of the device.
    missed: bool,
}

/// An event, and when it happened; nothing if it did not in time.
fn watch(
    driver: &dyn Driver,
    stream: StreamHandle,
    event: EventHandle,
) -> Result<Option<(Instant, Duration)>, DriverError> {
    let before = Instant::now();
    // SAFETY: both are the clock's, and live.
    unsafe { driver.record_event(event, stream) }?;
    loop {
        // SAFETY: as above.
        let happened = unsafe { driver.has_happened(event) }?;
        let took = before.elapsed();
        if happened {
            return Ok(Some((before + took / 2, took)));
        }
        if took > PATIENCE {
            return Ok(None);
        }
        std::hint::spin_loop();
    }
}

/// An event with its moment, as well as the host knows it.
fn best(driver: &dyn Driver, stream: StreamHandle) -> Result<Option<(EventHandle, Instant)>, DriverError> {
    let mut best: Option<(EventHandle, Instant, Duration)> = None;
    for attempt in 0..TRIES.end {
        if attempt >= TRIES.start && best.as_ref().is_some_and(|&(.., took)| took <= WELL) {
            break;
        }
        // SAFETY: the context is current.
        let event = unsafe { driver.create_event(true) }?;
        let watched = watch(driver, stream, event);
        let dropped = match (&watched, &best) {
            (Ok(Some((_, took))), Some((.., least))) if took >= least => Some(event),
            (Ok(Some((host, took))), _) => best.replace((event, *host, *took)).map(|(event, ..)| event),
            _ => Some(event),
        };
        if let Some(event) = dropped {
            // SAFETY: nobody else knows it.
            let _ = unsafe { driver.destroy_event(event) };
        }
        if !matches!(watched, Ok(Some(_))) {
            break;
        }
    }
    Ok(best.map(|(event, host, _)| (event, host)))
}

impl Clock {
    /// A clock with its first anchor; nothing if the device does not answer.
    pub(crate) fn new(driver: &dyn Driver, priority: i32) -> Option<Self> {
        // SAFETY: the context is current.
        let stream = unsafe { driver.create_stream(priority) }.ok()?;
        let tried = Instant::now();
        if let Ok(Some((event, host))) = best(driver, stream) {
            return Some(Self { stream, anchors: vec![Anchor { event, host, device: 0.0 }], tried, missed: false });
        }
        // SAFETY: nobody else knows it.
        let _ = unsafe { driver.destroy_stream(stream) };
        None
    }

    fn last(&self) -> &Anchor {
        // There is one from new() on.
        self.anchors.last().unwrap_or_else(|| unreachable!("a clock has an anchor"))
    }

    /// Puts an anchor down if the last one is old, or if it is not quite new and `now` there is to be one.
    pub(crate) fn refresh(&mut self, driver: &dyn Driver, now: bool) {
        let old = if now { APART } else { LASTING };
        // An issuing thread waits: not time and again.
        let pause = if self.missed && !now { LASTING } else { APART };
        if self.last().host.elapsed() < old || self.tried.elapsed() < pause {
            return;
        }
        self.tried = Instant::now();
        let found = best(driver, self.stream);
        self.missed = !matches!(found, Ok(Some(_)));
        let Ok(Some((event, host))) = found else { return };
        // SAFETY: both are the clock's, timed, and have happened.
        match unsafe { driver.elapsed(self.last().event, event) } {
            Ok(milliseconds) => {
                let device = self.last().device + f64::from(milliseconds) * 1e6;
                self.anchors.push(Anchor { event, host, device });
            }
            // SAFETY: nobody else knows it.
            Err(_) => drop(unsafe { driver.destroy_event(event) }),
        }
    }

    /// When an event happened: nanoseconds since the first anchor, on the device. Of two events the later one never has
    /// the smaller number.
    ///
    /// # Safety
    ///
    /// It is timed, of this context, and has happened.
    pub(crate) unsafe fn time_of(&self, driver: &dyn Driver, event: EventHandle) -> Result<f64, DriverError> {
        let mut next = f64::INFINITY;
        for (at, anchor) in self.anchors.iter().enumerate().rev() {
            // SAFETY: the caller's promise; the anchor has happened.
            let since = f64::from(unsafe { driver.elapsed(anchor.event, event) }?) * 1e6;
            if since >= 0.0 || at == 0 {
                return Ok((anchor.device + since).min(next));
            }
            next = anchor.device;
        }
        Ok(0.0)
    }

    /// The same on the host's clock.
    pub(crate) fn on_host(&self, device: f64) -> Instant {
        let at = self.anchors.partition_point(|anchor| anchor.device <= device).saturating_sub(1);
        let anchor = &self.anchors[at];
        let since = device - anchor.device;
        let rate = self.anchors.get(at + 1).map_or(1.0, |next| {
            let (host, device) =
                (next.host.duration_since(anchor.host).as_secs_f64() * 1e9, next.device - anchor.device);
            if device > 0.0 { host / device } else { 1.0 }
        });
        let moved = Duration::from_secs_f64((since * rate).abs() / 1e9);
        if since < 0.0 { anchor.host.checked_sub(moved).unwrap_or(anchor.host) } else { anchor.host + moved }
    }

    /// Gives the driver's objects back.
    pub(crate) fn destroy(self, driver: &dyn Driver) {
        for anchor in &self.anchors {
            // SAFETY: nobody else knows it.
            let _ = unsafe { driver.destroy_event(anchor.event) };
        }
        // SAFETY: as above.
        let _ = unsafe { driver.destroy_stream(self.stream) };
    }
}
