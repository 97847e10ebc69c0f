//! How a worker lies down; see `sleep.md`.

use super::{LOOKS, Worker};
use crate::sync::Parker;
use std::time::{Duration, Instant};

/// Looks for work, before it sleeps, of a worker that was woken soon after it had lain down, the last few times: 200 us.
const LOOKS_OF_WOKEN: u32 = 8 * LOOKS;
/// A sleep that was not worth its system calls.
const NAP: Duration = Duration::from_micros(200);
/// How long the first nap is, how long naps become, and after how long a worker that naps sleeps. Models know no time: there
/// is one nap, and it is over when it begins.
const SHORTEST_NAP: Duration = Duration::from_micros(if cfg!(loom) { 0 } else { 50 });
const LONGEST_NAP: Duration = Duration::from_micros(if cfg!(loom) { 0 } else { 1000 });
const NAPPING: Duration = Duration::from_millis(if cfg!(loom) { 0 } else { 20 });

impl Worker<'_> {
    /// Sleeps until woken. Answers whether to go on; see `sleep.md`.
    pub(super) fn sleep(&mut self, parker: &Parker) -> bool {
        self.seat.fall_asleep();
        self.lane.drowse();
        if self.leaves() {
            return false; // whatever the counts say: nobody needs them any more
        }
        if self.has_work() && self.lane.try_rouse() {
            if self.seat.claim() {
                return true;
            }
            // Another thread has just claimed this sleeper and counts it as searching: its token comes.
            self.lane.drowse();
        }
        let asleep = Instant::now();
        if !(self.lane.lends() && self.nap(parker)) {
            self.rest(parker);
        }
        // Waking it takes its publisher a system call, and everybody 50 us.
        self.patience = if asleep.elapsed() < NAP { LOOKS_OF_WOKEN.min(2 * self.patience) } else { LOOKS };
        if self.pool.is_stopping() {
            // A stop wakes without claiming. Its unit may be gone, taken for a worker that had retired.
            if self.seat.claim() && !self.lane.try_rouse() {
                self.lane.begin_search();
            }
            return !self.leaves();
        }
        true
    }

    /// Sleeps for moments, and looks for work in between, while its last op is not long ago: until it has found some or
    /// has a token, which it answers. Pushes do not wake it meanwhile, so that a [waiting thread](crate::pool::guest)
    /// can be in its place.
    fn nap(&self, parker: &Parker) -> bool {
        self.lane.set_napping(true);
        let mut idle = Duration::ZERO;
        let woken = loop {
            let nap = idle.clamp(SHORTEST_NAP, LONGEST_NAP);
            let woken = if parker.park(Some(Instant::now() + nap)) { Some(true) } else { self.look_up(parker) };
            idle += nap;
            if woken.is_some() || idle >= NAPPING {
                break woken;
            }
        };
        self.lane.set_napping(false);
        // Pushes until here woke none.
        woken.or_else(|| self.look_up(parker)).unwrap_or(false)
    }

    /// Wakes up if there is something to do and no guest does it. Answers whether it has.
    fn look_up(&self, parker: &Parker) -> Option<bool> {
        if !self.has_work() || !self.lane.try_rouse() {
            return None;
        }
        if !self.seat.claim() {
            // As above: another thread has claimed this sleeper.
            self.lane.drowse();
            parker.park(None);
        }
        Some(true)
    }

    /// Sleeps until it has a token. The host hears of it if that takes long, as often as it wants to.
    fn rest(&self, parker: &Parker) {
        let host = &self.pool.host;
        while let Some(patience) = host.rests_after() {
            if parker.park(Some(Instant::now() + patience)) {
                return;
            }
            host.worker_rests();
        }
        parker.park(None);
    }

    /// Whether everything is done and the thread is to end. The others are told.
    fn leaves(&self) -> bool {
        let over = self.pool.is_over();
        if over {
            self.pool.stop();
        }
        over
    }

    /// Sleeps as a spare one: it counts neither as searching nor as sleeping.
    pub(super) fn retire(&mut self, parker: &Parker) {
        self.seat.fall_asleep();
        self.searching = false;
        if self.end_search() && self.has_work() {
            self.pool.wake_one(self.lane, false);
        }
        self.rest(parker);
        // Its waker counts it as searching; a pool that stops wakes it without.
        self.searching = !self.seat.claim();
        self.search();
    }
}
