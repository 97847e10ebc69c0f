//! Captures of other libraries, which forbid calls to threads that have nothing to do with them.
//!
//! While some thread captures in CUDA's global mode, as torch does, the driver refuses to tell any thread whether an event
//! has happened, or to allocate, and *spoils that capture*. The calls of this crate change no capture but its own, and a
//! thread may say so: in relaxed mode nothing is refused. Threads that do nothing else stay in it; on others it lasts as long
//! as the crate's own calls.

use crate::driver::{CaptureMode, Driver};
use std::cell::Cell;

#[derive(Clone, Copy, PartialEq)]
enum Thread {
    /// Not asked yet.
    Unknown,
    /// Runs a call of a user's.
    Theirs,
    /// A worker's, or the poller's.
    Ours,
    /// The same, in relaxed mode.
    Relaxed,
}

thread_local! {
    static THREAD: Cell<Thread> = const { Cell::new(Thread::Unknown) };
}

/// Says that the calling thread runs nothing of users' own.
pub(crate) fn own_thread() {
    THREAD.set(Thread::Ours);
}

/// Puts the calling thread into relaxed mode. Answers the mode to go back to, if it is to go back.
#[inline]
pub(crate) fn relax(driver: &dyn Driver) -> Option<CaptureMode> {
    match THREAD.get() {
        Thread::Relaxed => None,
        thread => relax_first(driver, thread),
    }
}

#[inline(never)]
fn relax_first(driver: &dyn Driver, thread: Thread) -> Option<CaptureMode> {
    // A refusal of the driver's here comes below, too, where it can be told.
    let before = driver.exchange_capture_mode(CaptureMode::RELAXED).ok();
    match thread {
        Thread::Unknown if !weft_engine::is_worker() => THREAD.set(Thread::Theirs),
        Thread::Theirs => {}
        _ => {
            THREAD.set(Thread::Relaxed);
            return None;
        }
    }
    before.filter(|before| *before != CaptureMode::RELAXED)
}
