//! The clock of a trace: a raw count, turned into nanoseconds when the trace is read.

use std::time::{Instant, SystemTime};

/// The count now. It runs at one rate, the same for all threads.
#[inline]
pub(crate) fn ticks() -> u64 {
    imp::ticks()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    use std::arch::x86_64::{__cpuid, _rdtsc};
    use std::sync::LazyLock;

    /// Whether the time-stamp counter is a clock: it does not stop or change its rate, and the kernel, which has compared
    /// those of all processors, offers it as one.
    static IS_CLOCK: LazyLock<bool> = LazyLock::new(|| {
        const LEAF: u32 = 0x8000_0007;
        let invariant = __cpuid(LEAF & 0x8000_0000).eax >= LEAF && __cpuid(LEAF).edx & (1 << 8) != 0;
        let offered = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
        // Other systems than Linux set the counters of all processors to one time and say nothing.
        let trusted =
            offered.map_or(!cfg!(target_os = "linux"), |offered| offered.split(' ').any(|name| name == "tsc"));
        invariant && trusted
    });

    #[inline]
    pub(super) fn ticks() -> u64 {
        // SAFETY: every x86-64 processor has the instruction.
        if *IS_CLOCK { unsafe { _rdtsc() } } else { super::of_system() }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod imp {
    #[inline]
    pub(super) fn ticks() -> u64 {
        let ticks;
        // SAFETY: the virtual counter can be read by everybody on the systems that Rust's std knows.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod imp {
    #[inline]
    pub(super) fn ticks() -> u64 {
        super::of_system()
    }
}

/// Nanoseconds of the system's monotonic clock.
#[cfg_attr(all(target_arch = "aarch64", not(miri)), allow(dead_code))]
#[cold]
fn of_system() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A moment, by the raw count and by the system.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) ticks: u64,
    pub(crate) instant: Instant,
}

impl Moment {
    pub(crate) fn now() -> Self {
        let before = ticks();
        let instant = Instant::now();
        Self { ticks: before.midpoint(ticks()), instant }
    }
}

/// Turns counts into nanoseconds since the start of a trace.
pub(crate) struct Scale {
    start: u64,
    nanoseconds_per_tick: f64,
    /// Nanoseconds from the start to the end.
    pub(crate) duration: i64,
}

impl Scale {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // a trace of 100 days is exact
    pub(crate) fn between(start: Moment, end: Moment) -> Self {
        let elapsed = end.instant.duration_since(start.instant).as_nanos() as f64;
        let ticks = end.ticks.saturating_sub(start.ticks).max(1) as f64;
        Self { start: start.ticks, nanoseconds_per_tick: elapsed / ticks, duration: elapsed as i64 }
    }

    /// Nanoseconds of a count; 0 is that of something that has not happened, and nothing else's.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // as above
    pub(crate) fn nanoseconds(&self, ticks: u64) -> i64 {
        match ticks {
            0 => 0,
            ticks => ((ticks.saturating_sub(self.start) as f64 * self.nanoseconds_per_tick) as i64).max(1),
        }
    }
}

/// Seconds since 1970; 0 where no date is to be had, as in isolation.
pub(crate) fn epoch() -> f64 {
    if cfg!(miri) {
        return 0.0;
    }
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
