//! How often to look at a device that will not say by itself when it is done.

use std::time::{Duration, Instant};

/// Looks are without pause for so long: waking up from a sleep takes longer.
const EAGER: Duration = Duration::from_micros(30);
/// Then with pauses of this part of the time waited so far, within these bounds: whoever waits for some milliseconds of
/// work is to see its end a few hundredths later at most, as one who never sleeps would. A look takes about 1 us.
const SHARE: u32 = 64;
const SHORTEST: Duration = Duration::from_micros(20);
const LONGEST: Duration = Duration::from_micros(125);

/// One wait for a device.
#[derive(Debug)]
pub(crate) struct Backoff {
    since: Instant,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now() }
    }

    /// How long to sleep before the next look; nothing for not at all.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let age = self.since.elapsed();
        if age < EAGER {
            std::hint::spin_loop();
            return None;
        }
        Some((age / SHARE).clamp(SHORTEST, LONGEST))
    }

    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }
}
