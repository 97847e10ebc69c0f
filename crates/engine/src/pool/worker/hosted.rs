//! Hosted ops: many in one stay in the host, but not too long.

use super::{Worker, WorkerSeat};
use crate::op::OpPtr;
use crate::sched::PullNothing;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a batch of hosted ops may keep native ones waiting, and how often it asks.
const HOSTED_PATIENCE: Duration = Duration::from_micros(200);
/// How long a batch may keep the host from threads outside the engine, unless the host itself takes it away. Longer
/// than the 5 ms after which a thread that waits for Python's GIL asks for it: a worker that leaves the GIL just before
/// takes it again before that thread has woken up, and so for ever.
const HOSTED_BATCH: Duration = Duration::from_millis(25);
/// How long a worker stays outside after it has been inside for so long altogether, for the same reason: batches may be
/// short, because native ops wait.
const HOSTED_PAUSE: Duration = Duration::from_micros(200);
const HOSTED_ASKS: u32 = 16;

impl Worker<'_> {
    /// Enters the host and runs hosted ops there, if there are any and no other thread waits to enter. Answers whether
    /// it did.
    pub(super) fn run_hosted(&mut self) -> bool {
        if !self.has_hosted() {
            return false;
        }
        if !self.pool.shut_gate() {
            return false;
        }
        self.found();
        if let Some(op) = self.next.take() {
            self.native.push(op); // it is not to be run inside
        }
        // A batch may last, and so may the way in.
        self.settle_kept();
        self.share();
        let host = Arc::clone(&self.pool.host);
        let mut inside = Duration::ZERO;
        host.enter(&mut || {
            self.pool.open_gate();
            inside = self.hosted_batch();
        });
        self.has_been_inside(inside);
        true
    }

    /// Runs an op that was drawn, in the host if it is hosted.
    pub(super) fn run_drawn(&mut self, op: OpPtr) -> Option<OpPtr> {
        // SAFETY: a pulled op is this thread's, and was not run.
        if !unsafe { (*op.as_ptr()).payload.assume_init_ref().is_hosted() } {
            return self.run(op);
        }
        let shut = self.pool.shut_gate(); // another worker of this engine may be waiting already
        let host = Arc::clone(&self.pool.host);
        let (mut finished, mut inside) = (None, Duration::ZERO);
        host.enter(&mut || {
            if shut {
                self.pool.open_gate();
                self.see_to_left();
            }
            let start = Instant::now();
            finished = self.run(op);
            inside = start.elapsed();
        });
        self.has_been_inside(inside);
        finished
    }

    /// Wakes workers for the ops of threads that have found the gate shut: they have left that to who opens it.
    fn see_to_left(&self) {
        if self.lane.wants_waking() && self.has_work() {
            self.pool.wake_one(self.lane, false);
        }
        if self.pool.has_other_lanes() && self.pool.registrar.has_news() {
            // What was pushed for other lanes may not be registered.
            self.pool.registrar.drive(None, &mut PullNothing { register: true });
        }
        self.pool.wake_others(self.lane);
    }

    /// Stays outside for a moment if it has been inside for long.
    fn has_been_inside(&mut self, inside: Duration) {
        self.inside += inside;
        if self.inside > HOSTED_BATCH {
            self.inside = Duration::ZERO;
            std::thread::sleep(HOSTED_PAUSE);
        }
    }

    /// Runs hosted ops for a while. Answers for how long.
    fn hosted_batch(&mut self) -> Duration {
        let start = Instant::now();
        let mut ran = 0_u32;
        loop {
            let op = self.next.take().or_else(|| self.hosted.pop()).or_else(|| {
                self.follow_up(None, true);
                self.next.take().or_else(|| self.steal(&self.hosted, |seat| &seat.hosted)).inspect(|_| self.pass_on())
            });
            let Some(op) = op else { return start.elapsed() };
            if ran == 0 {
                self.see_to_left();
            }
            let finished = self.run(op);
            self.pace.count();
            self.follow_up(finished, true);
            ran += 1;
            if ran.is_multiple_of(HOSTED_ASKS) {
                let native = self.pool.registrar.ready(self.lane.native_queue()) > 0 || !self.native.is_empty();
                if start.elapsed() > if native { HOSTED_PATIENCE } else { HOSTED_BATCH } {
                    break;
                }
            }
        }
        // The next op is hosted, and must not be taken for a native one.
        if let Some(op) = self.next.take() {
            self.hosted.push(op);
        }
        start.elapsed()
    }

    pub(super) fn has_hosted(&self) -> bool {
        self.pool.registrar.ready(self.lane.hosted_queue()) > 0 || self.lane.seats().any(WorkerSeat::has_hosted)
    }
}
