//! How often to look at a device that will not say by itself when it is done.

use std::time::{Duration, Instant};

/// Looks are without pause for so long: waking up from a sleep takes longer.
const EAGER: Duration = Duration::from_micros(30);
/// Then with pauses of this part of the time waited so far, within these bounds: a wait for some milliseconds of work
/// is to see its end a few hundredths later at most, as one without sleep would. A look takes about 1 us.
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
        let pause = pause_at(self.since.elapsed());
        if pause.is_none() {
            std::hint::spin_loop();
        }
        pause
    }

    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

fn pause_at(age: Duration) -> Option<Duration> {
    (age >= EAGER).then(|| (age / SHARE).clamp(SHORTEST, LONGEST))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, SHORTEST, pause_at};
    use std::time::Duration;

    #[test]
    fn an_end_is_seen_within_a_small_part_of_the_wait() {
        assert_eq!(pause_at(Duration::from_micros(29)), None);
        for age in (30..100_000).map(Duration::from_micros) {
            let pause = pause_at(age).expect("it sleeps");
            assert!(pause <= LONGEST && (pause <= SHORTEST || pause <= age / 64), "{age:?}: {pause:?}");
        }
    }
}
